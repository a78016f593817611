package demo

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// patience is how long tests wait for an event, on a busy machine.
const patience = 30 * time.Second

// Callers can connect through a locked gate, but no data passes until it opens; data sent meanwhile then arrives.
func TestGate(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &sync.RWMutex{}
	l := gated{inner, g}
	defer l.Close()
	heard := make(chan string, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b := make([]byte, 10)
				for {
					n, err := c.Read(b)
					if err != nil {
						return
					}
					heard <- string(b[:n])
					if _, err := c.Write(b[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	say := func(c net.Conn, text string) {
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
	}
	echo := func(c net.Conn, within time.Duration) (string, error) {
		if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 10)
		n, err := c.Read(b)
		return string(b[:n]), err
	}
	old := dial()
	defer old.Close()
	say(old, "one")
	if got, err := echo(old, patience); got != "one" || err != nil {
		t.Fatalf("an open gate: %q, %v", got, err)
	}
	<-heard
	g.Lock()
	young := dial()
	defer young.Close()
	for _, c := range []net.Conn{old, young} {
		say(c, "two")
		if got, err := echo(c, 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("through a locked gate came %q, %v", got, err)
		}
	}
	if len(heard) > 0 {
		t.Errorf("behind a locked gate %q was heard", <-heard)
	}
	g.Unlock()
	for _, c := range []net.Conn{old, young} {
		if got, err := echo(c, patience); got != "two" || err != nil {
			t.Errorf("through a gate that is open again came %q, %v", got, err)
		}
	}
}
