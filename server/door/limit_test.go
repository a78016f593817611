package door

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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

// crowd is a limited listener that people come to.
type crowd struct {
	t        *testing.T
	pipes    pipes
	log      journal
	admitted chan net.Conn
}

func newCrowd(t *testing.T, most int) *crowd {
	c := &crowd{t: t, pipes: pipes{come: make(chan net.Conn)}, admitted: make(chan net.Conn, 100)}
	l := Limit(c.pipes, most, c.log.logger())
	go func() {
		defer close(c.admitted)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.admitted <- conn
		}
	}()
	t.Cleanup(func() { close(c.pipes.come) })
	return c
}

// comes returns the server's side of a new connection, and nil if it was turned away.
func (c *crowd) comes() net.Conn {
	c.t.Helper()
	here, there := net.Pipe()
	c.pipes.come <- there
	synctest.Wait()
	select {
	case conn := <-c.admitted:
		return conn
	default:
		if _, err := here.Read(make([]byte, 1)); err != io.EOF {
			c.t.Errorf("who was turned away reads %v, want the end", err)
		}
		return nil
	}
}

func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 2)
		first, second := c.comes(), c.comes()
		if first == nil || second == nil {
			t.Fatal("one of the first two was turned away")
		}
		c.log.wants(t)
		if c.comes() != nil {
			t.Error("a third came in")
		}
		c.log.wants(t, "limit=2 turned_away=1")
		first.Close()
		first.Close() // which counts once
		if c.comes() == nil {
			t.Error("there was room, and it was turned away")
		}
		if c.comes() != nil {
			t.Error("a connection that was closed twice left room for two")
		}
	})
}

func TestTheLimitIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
		c.comes()
		for range 3 {
			c.comes()
		}
		c.log.wants(t, "turned_away=1")
		time.Sleep(time.Minute - 1)
		c.comes()
		c.log.wants(t)
		time.Sleep(time.Nanosecond)
		c.comes()
		c.log.wants(t, "turned_away=4")
	})
}

func TestConnectionsThatManyCloseAtOnceCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 3)
		for range 100 {
			var conns []net.Conn
			for range 3 {
				conn := c.comes()
				if conn == nil {
					t.Fatal("there was room, and it was turned away")
				}
				conns = append(conns, conn)
			}
			if c.comes() != nil {
				t.Fatal("a fourth came in")
			}
			var closing sync.WaitGroup
			for i := range 9 {
				closing.Go(func() { conns[i%3].Close() })
			}
			closing.Wait()
		}
	})
}

func TestWithoutALimitNothingStandsBetween(t *testing.T) {
	p := pipes{}
	if got := Limit(p, 0, nil); got != net.Listener(p) {
		t.Errorf("%+v, want the listener itself", got)
	}
}

// A real connection keeps what net/http needs in order to let answers arrive, and the listener its errors.
func TestLimitOfTCP(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Limit(inner, 1, (&journal{}).logger())
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
	if err := (&counted{Conn: there}).CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("half of a pipe closes with %v", err)
	}
}
