package port

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"io"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// behind is a server at a unix socket, whose connections the test serves.
func behind(t *testing.T) (path string, accepted <-chan net.Conn) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	come := make(chan net.Conn)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(patience))
			come <- c
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return path, come
}

// piped is a connection to a port, and what it is piped to.
func piped(t *testing.T) (outside *tls.Conn, inside net.Conn, ended <-chan struct{}) {
	t.Helper()
	path, accepted := behind(t)
	ring := newRing(t)
	p := listen(t, ring)
	end := make(chan struct{})
	p.Handle(Clients, func(c *tls.Conn) {
		Pipe(c, "unix", path)
		close(end)
	})
	outside = dial(t, p, ring, "h2")
	inside = <-accepted
	t.Cleanup(func() { inside.Close() })
	return outside, inside, end
}

func waitFor(t *testing.T, what string, happened <-chan struct{}) {
	t.Helper()
	select {
	case <-happened:
	case <-time.After(patience):
		t.Fatalf("%s: not within %v", what, patience)
	}
}

// A pipe carries any amount both ways at once, and loses nothing.
func TestPipeCarriesBothWays(t *testing.T) {
	outside, inside, end := piped(t)
	sent := make([]byte, 3<<20)
	_, _ = rand.Read(sent)
	for _, way := range [][2]net.Conn{{outside, inside}, {inside, outside}} {
		go func() { _, _ = way[0].Write(sent) }()
	}
	for _, c := range []net.Conn{outside, inside} {
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("it did not arrive as it was sent: %v", err)
		}
	}
	// What was sent last arrives, and then the end.
	_, _ = io.WriteString(inside, "bye")
	inside.Close()
	if got, err := io.ReadAll(outside); string(got) != "bye" || err != nil {
		t.Errorf("%q, %v; want the last words and the end", got, err)
	}
	waitFor(t, "the end of the pipe", end)
}

// When the side outside ends, so does the one inside.
func TestPipeEndsFromOutside(t *testing.T) {
	outside, inside, end := piped(t)
	outside.Close()
	if !ended(inside) {
		t.Error("the side inside stays open")
	}
	waitFor(t, "the end of the pipe", end)
}

// A side that takes nothing does not keep the pipe for ever, whether the other one ends or not.
func TestPipeEndsWhenOneSideIsStalled(t *testing.T) {
	for _, ends := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			writer, a := net.Pipe()
			b, stalled := net.Pipe()
			began := time.Now()
			go func() {
				_, _ = writer.Write(make([]byte, 3*bufferSize))
				if ends {
					writer.Close()
				}
			}()
			go func() { // it is slow, and then takes nothing more
				time.Sleep(stallLimit - 1)
				_, _ = io.ReadFull(stalled, make([]byte, bufferSize))
			}()
			join(a, b)
			if took, want := time.Since(began), 2*stallLimit-1; took != want {
				t.Errorf("it ended after %v; want %v", took, want)
			}
			if !ended(writer) || !ended(stalled) {
				t.Error("a side stays open")
			}
		})
	}
}

// Without anybody to connect to, the connection is closed.
func TestPipeToNobody(t *testing.T) {
	ring := newRing(t)
	p := listen(t, ring)
	p.Handle(Clients, func(c *tls.Conn) { Pipe(c, "unix", filepath.Join(t.TempDir(), "none")) })
	if !ended(dial(t, p, ring, "h2")) {
		t.Error("the connection stays open")
	}
}
