package quorum

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// A machine that is reached by the addresses of the others, too, as when their names lead to it, does not take its own
// answers for theirs: it would form a cluster that nobody has agreed to.
func TestNamesThatLeadToOneMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	self := w.machines[0]
	for range 2 {
		w.machines = append(w.machines, alias(t, self))
	}
	q := w.start(self)
	for deadline := time.Now().Add(20 * time.Second); ; {
		_, err := q.Open(t.Context())
		if err == nil {
			t.Fatal("one machine has formed a cluster of three")
		}
		if strings.Contains(err.Error(), "it is answered by "+self) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not say what is wrong, but %v", err)
		}
	}
	if s := q.Status(t.Context()); s.Cluster != "" || s.Majority {
		t.Errorf("it is in cluster %q, and a majority is %t; want neither", s.Cluster, s.Majority)
	}
}

// alias returns an address that leads to another one.
func alias(t *testing.T, to string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.2:0") // after 127.0.0.1, which so founds
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer from.Close()
				c, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer c.Close()
				go func() {
					_, _ = io.Copy(c, from)
					_ = c.Close()
				}()
				_, _ = io.Copy(from, c)
			}()
		}
	}()
	return l.Addr().String()
}
