package conns

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/test/logtest"
)

// pipes is a listener whose connections the test makes.
type pipes struct {
	net.Listener
	come chan net.Conn
}

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p.come
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

// from is a connection from an address.
type from struct {
	net.Conn
	addr net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.addr }

// crowd are people who come to a listener of a limiter.
type crowd struct {
	t        *testing.T
	limiter  *Limiter
	listener net.Listener
	pipes    pipes
	log      logtest.Journal
	admitted chan net.Conn
}

func newCrowd(t *testing.T, most int) *crowd {
	c := &crowd{t: t, pipes: pipes{come: make(chan net.Conn)}, admitted: make(chan net.Conn, 1)}
	c.limiter = NewLimiter(most, c.log.Logger())
	c.listener = c.limiter.Limit(c.pipes)
	go func() {
		defer close(c.admitted)
		for {
			conn, err := c.listener.Accept()
			if err != nil {
				return
			}
			c.admitted <- conn
		}
	}()
	t.Cleanup(func() { close(c.pipes.come) })
	return c
}

// caller is one of the crowd: its own side, and the server's; nil: it was closed at once.
type caller struct{ here, there net.Conn }

// comes has one come from a host, a nanosecond after the one before.
func (c *crowd) comes(host string) caller {
	c.t.Helper()
	time.Sleep(time.Nanosecond)
	here, there := net.Pipe()
	c.pipes.come <- from{there, at(host)}
	synctest.Wait()
	select {
	case conn := <-c.admitted:
		return caller{here, conn}
	default:
		if (caller{here: here}).open() {
			c.t.Error("who was refused is not told")
		}
		return caller{here: here}
	}
}

// begins has so many come from a host, and begin calls.
func (c *crowd) begins(count int, host string) (all []caller) {
	c.t.Helper()
	for range count {
		v := c.comes(host)
		if !v.regular() {
			c.t.Fatalf("%d of %d from %s get a place", len(all), count, host)
		}
		Begin(v.there)
		all = append(all, v)
	}
	return all
}

// open tells whether the other side has not closed the connection.
func (v caller) open() bool {
	_ = v.here.SetReadDeadline(time.Now())
	_, err := v.here.Read(make([]byte, 1))
	return err != io.EOF
}

// regular tells whether it got one of the places, and has it still.
func (v caller) regular() bool { return v.there != nil && !ProbesOnly(v.there) && v.open() }

// wants compares who has a place still.
func (c *crowd) wants(what string, callers []caller, want ...bool) {
	c.t.Helper()
	got := make([]bool, len(callers))
	for i, v := range callers {
		got[i] = v.regular()
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		c.t.Errorf("%s: their places: %v, want %v", what, got, want)
	}
}

func (c *crowd) counted(open int64, evicted, refused uint64) {
	c.t.Helper()
	n := c.listener.(Counter)
	if n.Open() != open || n.Evicted() != evicted || n.Refused() != refused {
		c.t.Errorf("%d open, %d evicted, %d refused; want %d, %d, %d", n.Open(), n.Evicted(), n.Refused(), open,
			evicted, refused)
	}
}

// The connection that has been idle for longest makes room, whether it has asked before or not.
func TestTheOldestIdleConnectionMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 4)
		a, b, d := c.comes("10.0.0.1"), c.comes("10.0.0.2"), c.comes("10.0.0.3")
		e := c.comes("10.0.0.4")
		all := []caller{a, b, d, e}
		Begin(a.there) // it has a call in progress
		time.Sleep(time.Nanosecond)
		Begin(b.there)
		End(b.there) // and it was idle for the shortest time
		c.log.Wants(t)
		f := c.comes("10.0.0.5")
		c.wants("after the first newcomer", append(all, f), true, true, false, true, true)
		c.log.Wants(t, "limit=4 closed=1 refused=0")
		time.Sleep(time.Nanosecond)
		End(a.there)
		g, h, i := c.comes("10.0.0.6"), c.comes("10.0.0.7"), c.comes("10.0.0.8")
		c.wants("after four", append(all, f, g, h, i), true, false, false, false, false, true, true, true)
		c.counted(4, 4, 0)
	})
}

// The address with the most connections makes room, down to what the newcomer's has.
func TestTheAddressWithTheMostMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 8)
		old := []caller{c.comes("10.0.0.1"), c.comes("10.0.0.2"), c.comes("10.0.0.2"), c.comes("2001:db8::1")}
		many := []caller{c.comes("10.0.0.3"), c.comes("10.0.0.3"), c.comes("10.0.0.3"), c.comes("10.0.0.3")}
		c.comes("10.0.0.4")
		c.wants("many", many, false, true, true, true)
		c.comes("2001:db8::2") // it is another of the same /64
		c.wants("many", many, false, false, true, true)
		c.comes("2001:db8::3")
		c.wants("old", old, true, true, true, false)
		c.wants("many", many, false, false, true, true)
		for _, m := range many {
			Begin(m.there)
		}
		c.comes("10.0.0.1")
		c.wants("old", old, true, false, true, false)
		c.comes("10.0.0.1") // the others have no more than it, or are busy
		c.wants("old", old, false, false, true, false)
	})
}

// One address may have nearly all of the places, and never all.
func TestOneAddressCantTakeAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 16)
		many := c.begins(14, "10.0.0.1")
		if c.comes("10.0.0.1").regular() {
			t.Error("an address has a 15th of 16 places")
		}
		others := c.begins(2, "10.0.0.2")
		End(many[3].there)
		last := c.comes("10.0.0.1")
		if many[3].open() || !last.regular() {
			t.Error("its own idle connection makes no room")
		}
		Begin(last.there)
		if c.comes("10.0.0.3").regular() {
			t.Error("the 17th call of 16 gets a place")
		}
		End(others[1].there)
		if c.comes("10.0.0.1").regular() || !others[1].open() {
			t.Error("it takes a place from an address that has fewer")
		}
		if !c.comes("10.0.0.3").regular() || others[1].open() {
			t.Error("an address with no place gets none of one that has more")
		}
	})
}

// Who gets no place may ask how the node is, for a moment: the newest of them.
func TestProbesGetAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 8)
		c.begins(7, "10.0.0.1")
		c.begins(1, "10.0.0.2")
		var probes []caller
		for range probePlaces {
			p := c.comes("10.0.0.1")
			if !ProbesOnly(p.there) {
				t.Fatalf("probe %d gets no place, or one of the others", len(probes))
			}
			probes = append(probes, p)
		}
		Begin(probes[0].there)
		next := c.comes("10.0.0.1")
		if !probes[0].open() || probes[1].open() || !ProbesOnly(next.there) {
			t.Errorf("the oldest that has not asked does not make room: %v, %v", probes[0].open(), probes[1].open())
		}
		c.counted(8+probePlaces, 0, probePlaces+1)
		for _, p := range append(probes, next) {
			Begin(p.there)
		}
		if c.comes("10.0.0.1").there != nil {
			t.Error("one more than all is let in")
		}
		time.Sleep(probesWithin)
		synctest.Wait()
		for i, p := range append(probes, next) {
			if p.open() {
				t.Errorf("probe %d is there still", i)
			}
		}
		c.counted(8, 0, probePlaces+2)
		done := c.comes("10.0.0.1")
		done.there.Close()
		c.counted(8, 0, probePlaces+3)
	})
}

// A batch makes room at a time: not everybody who comes looks for those that have been idle for longest.
func TestRoomIsMadeForSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 640)
		for i := range 640 {
			c.comes(fmt.Sprintf("10.0.%d.1", i%2))
		}
		c.comes("10.0.0.1")
		c.counted(631, 10, 0)
	})
}

// When memory runs out, an eighth goes, idle ones first, and then of whoever has most.
func TestShed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 100)
		few, many := c.begins(2, "10.0.0.1"), c.begins(13, "10.0.0.2")
		End(few[1].there)
		if n := c.limiter.Shed(); n != 2 {
			t.Errorf("%d of 15 are shed", n)
		}
		c.wants("few", few, true, false)
		c.wants("many", many[:2], false, true)
		c.counted(13, 2, 0)
		for range 100 {
			c.limiter.Shed()
		}
		if n := c.limiter.Shed(); n != 0 {
			t.Errorf("%d of none are shed", n)
		}
		c.counted(0, 15, 0)
		many[5].there.Close() // it was closed before, and counts once
		c.counted(0, 15, 0)
	})
}

// A call that changes something is cut off last.
func TestChangesAreShedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 100)
		all := c.begins(3, "10.0.0.1")
		End(all[0].there)
		BeginChange(all[0].there)
		End(all[2].there)
		for i, want := range [][]bool{{true, true, false}, {true, false, false}, {false, false, false}} {
			if n := c.limiter.Shed(); n != 1 {
				t.Errorf("%d are shed", n)
			}
			c.wants(fmt.Sprint("shed ", i+1), all, want...)
		}
	})
}

// Several listeners share the places, and each counts its own.
func TestListenersShareThePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 2)
		other := &crowd{
			t: t, limiter: c.limiter, pipes: pipes{come: make(chan net.Conn)},
			admitted: make(chan net.Conn, 1),
		}
		other.listener = c.limiter.Limit(other.pipes)
		go func() {
			conn, _ := other.listener.Accept()
			other.admitted <- conn
		}()
		c.comes("10.0.0.1")
		c.comes("10.0.0.2")
		other.comes("10.0.0.3")
		c.counted(1, 1, 0)
		other.counted(1, 0, 0)
	})
}

func TestTheLimitIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
		c.begins(1, "10.0.0.1")
		began := time.Now()
		for range 3 {
			c.comes("10.0.0.1")
		}
		c.log.Wants(t, "closed=0 refused=1")
		time.Sleep(time.Minute - time.Since(began) - 1)
		c.comes("10.0.0.1")
		c.log.Wants(t)
		c.comes("10.0.0.1")
		c.log.Wants(t, "closed=0 refused=4")
	})
}

func TestConnectionsThatManyCloseAtOnceCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 3)
		for range 100 {
			var all []caller
			for i := range 3 {
				all = append(all, c.begins(1, fmt.Sprintf("10.0.0.%d", i))...)
			}
			if c.comes("10.0.0.9").regular() {
				t.Fatal("a fourth gets a place")
			}
			var closing sync.WaitGroup
			for i := range 9 {
				closing.Go(func() { all[i%3].there.Close() })
			}
			closing.Wait()
		}
	})
}

// A real connection keeps what net/http needs in order to let answers arrive, and the listener its errors.
func TestLimitOfTCP(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := NewLimiter(1, slog.New(slog.DiscardHandler)).Limit(inner)
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if ProbesOnly(client) {
		t.Error("a connection that no limiter knows is one of its probes")
	}
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Error(err)
	}
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the other side reads %v, want the end", err)
	}
	l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener accepts with %v", err)
	}
	there, _ := net.Pipe()
	if err := (&limitedConn{Conn: there}).CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("half of a pipe closes with %v", err)
	}
}
