package respapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/test/servertest"
)

// What a client announces costs no memory.
func TestAnnouncedMemory(t *testing.T) {
	s := newServer(t, newCounting())
	for _, says := range []string{
		"*1000000000\r\n", "*1024\r\n$16000\r\n", "*1\r\n$536870912\r\n",
		"*1024\r\n" + strings.Repeat("$9\r\n123456789\r\n", 1000),
		strings.Repeat("x", 1<<20),
	} {
		const clients = 20
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range clients {
			talk(s, says, maxCommand)
		}
		runtime.ReadMemStats(&after)
		if per := (after.TotalAlloc - before.TotalAlloc - uint64(clients*len(says))) / clients; per > 256<<10 {
			t.Errorf("%.30q costs %d bytes", says, per)
		}
	}
}

// untilClosed reads until the other end closes the connection, and returns how long that took and how much came.
func untilClosed(t *testing.T, c net.Conn) (time.Duration, int64) {
	t.Helper()
	since := time.Now()
	n, err := io.Copy(io.Discard, c)
	if err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("reading: %v", err)
	}
	return time.Since(since), n
}

// A client that is idle is disconnected after a while, which begins again with each command.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served(t, newServer(t, newCounting()), func(l *listener) {
			c := l.dial(t)
			for range 3 {
				time.Sleep(idleFor - 2*slack) // simulated
				if got := c.ask("PING"); got != "+PONG" {
					t.Fatal(got)
				}
			}
			if after, _ := untilClosed(t, c); after < idleFor-slack || after > idleFor {
				t.Errorf("closed after %v, want %v", after, idleFor)
			}
		})
	})
}

// A command that was begun must be complete soon, however eagerly its bytes come.
func TestSlowWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served(t, newServer(t, newCounting()), func(l *listener) {
			c := l.dial(t)
			if got := c.ask("PING"); got != "+PONG" {
				t.Fatal(got)
			}
			since := time.Now()
			for {
				if _, err := c.Write([]byte("x")); err != nil {
					break
				}
				time.Sleep(time.Second) // simulated
			}
			if after := time.Since(since); after < readWithin || after > readWithin+time.Second {
				t.Errorf("closed after %v, want %v", after, readWithin)
			}
		})
	})
}

// The time to take a reply begins with the reply, however long its command had to wait.
func TestReplyToACommandThatWaited(t *testing.T) {
	const waits = writeWithin - time.Second
	synctest.Test(t, func(t *testing.T) {
		issuer := &servertest.Issuer{Before: func(context.Context) error {
			time.Sleep(waits) // simulated
			return nil
		}}
		served(t, newServer(t, issuer), func(l *listener) {
			c := l.dial(t)
			if _, err := c.Write([]byte(array("INCR", "default"))); err != nil {
				t.Fatal(err)
			}
			time.Sleep(waits + writeWithin - 2*slack)
			if _, err := c.Read(make([]byte, 1)); err != nil {
				t.Error("the reply was not there any more:", err)
			}
		})
	})
}

// A client that takes no replies can't send more commands for long, and is disconnected.
func TestReaderThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served(t, newServer(t, newCounting()), func(l *listener) {
			c := l.dial(t)
			since, taken := time.Now(), 0
			for {
				n, err := c.Write([]byte(array("ECHO", strings.Repeat("x", 8000))))
				if taken += n; err != nil {
					break
				}
			}
			if after := time.Since(since); after < writeWithin-slack || after > writeWithin {
				t.Errorf("closed after %v, want %v", after, writeWithin)
			}
			if taken > 4*maxCommand {
				t.Errorf("it took %d bytes of commands whose replies nobody read", taken)
			}
		})
	})
}

// One reply must be read within the limit: IDs are held for it meanwhile, and they are limited for all clients
// together. A client that takes a little now and then does not get more time.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served(t, newServer(t, newCounting()), func(l *listener) {
			var slow []*client
			for range 64 {
				c := l.dial(t)
				if _, err := c.Write([]byte("FIRN.NEXT default 100000\r\n")); err != nil {
					t.Fatal(err)
				}
				slow = append(slow, c)
				synctest.Wait() // the first come first, and what is left is for the others
			}
			other := l.dial(t)
			if got := other.ask("FIRN.NEXT default 100000"); !strings.HasPrefix(got, "-OVERLOADED ") {
				t.Fatalf("so much was held, and another got %.100s", got)
			}
			since := time.Now()
			buffer := make([]byte, 4096)
			for {
				if _, err := slow[0].Read(buffer); err != nil {
					break
				}
				time.Sleep(time.Second) // simulated
			}
			if after := time.Since(since); after > writeWithin {
				t.Errorf("closed after %v, want %v at most", after, writeWithin)
			}
			synctest.Wait()
			if got := other.ask("FIRN.NEXT default 100000"); strings.Count(got, " ") != calls.MaxCount-1 {
				t.Errorf("afterwards another gets %.100s", got)
			}
			for _, c := range slow {
				untilClosed(t, c)
			}
		})
	})
}

// A client that reads many replies has as long for each piece of them as for one.
func TestManyRepliesToASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served(t, newServer(t, newCounting()), func(l *listener) {
			c, ended := l.dial(t), "QUIT\r\n"
			commands := strings.Repeat("COMMAND\r\n", (maxCommand-len(ended))/len("COMMAND\r\n"))
			if _, err := io.WriteString(c, commands+ended); err != nil {
				t.Fatal(err)
			}
			since, last := time.Now(), ""
			for buffer := make([]byte, 1<<20); ; time.Sleep(writeWithin / 4) { // simulated
				n, err := c.Read(buffer)
				if err != nil {
					break
				}
				last = string(buffer[:n])
			}
			if took := time.Since(since); took < 2*writeWithin {
				t.Errorf("the replies came within %v, which shows nothing", took)
			}
			if !strings.HasSuffix(last, "+OK\r\n") {
				t.Errorf("it was closed after %.40q", last)
			}
		})
	})
}

// A large reply comes in pieces, whole, and so do many replies: what is not written yet is never much.
func TestLargestReply(t *testing.T) {
	s := newServer(t, newCounting())
	for _, tt := range []struct {
		says string
		gets int // replies or parts of one
	}{
		{"FIRN.NEXT default 100000\r\n", calls.MaxCount},
		{strings.Repeat("COMMAND DOCS\r\n", 100), 100},
	} {
		k := &script{says: []byte(tt.says), piece: maxCommand}
		c := newConn(s, k, 1)
		c.serve()
		got, err := show(k.hears.String())
		if tt.gets == 100 {
			got = strings.ReplaceAll(strings.ReplaceAll(got, " ", ""), "\n", " ")
		}
		if err != nil || strings.Count(got, " ") != tt.gets-1 {
			t.Errorf("%.30q gets %.100s, %v", tt.says, got, err)
		}
		if cap(c.out) > 4*piece {
			t.Errorf("%d bytes were kept for %.30q", cap(c.out), tt.says)
		}
	}
}

// limited allows one ID at a time.
type limited struct{ *servertest.Issuer }

func (l limited) FillAfter(context.Context, firn.ID, time.Duration, []firn.ID) error {
	return &auth.LimitError{Rate: 1}
}

// What a client may have one by one it gets also when it asks for it in a pipeline.
func TestPipelineBeyondALimit(t *testing.T) {
	f := newCounting()
	got := replies(t, newServer(t, limited{f}), strings.Repeat(array("INCR", "default"), 3))
	if want := fmt.Sprintf("%d\n%d\n%d", first, first+1, first+2); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A listener that fails ends Serve, unless that passes.
func TestFailingListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		surprise := errors.New("surprise")
		l := &failing{listener: newListener(), errs: []error{passing{}, passing{}, surprise}}
		if err := newServer(t, newCounting()).Serve(l); !errors.Is(err, surprise) || len(l.errs) != 0 {
			t.Errorf("Serve: %v", err)
		}
	})
}

type failing struct {
	*listener
	errs []error
}

func (f *failing) Accept() (net.Conn, error) {
	err := f.errs[0]
	f.errs = f.errs[1:]
	return nil, err
}

// passing is an error such as too many open files.
type passing struct{}

func (passing) Error() string   { return os.ErrDeadlineExceeded.Error() }
func (passing) Temporary() bool { return true }
