package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn/internal/test/proxytest"
)

// starter starts servers as tests do, and ends them.
type starter struct {
	testing.TB // nil: what is not below is not called
	ctx        context.Context
	ends       []func()
	counts     bool // what clients send
	messages   atomic.Int64
}

// skip is why a service can't be started here, failure why one was not.
type (
	skip    string
	failure string
)

func (*starter) Helper() {}

func (s *starter) Context() context.Context { return s.ctx }

func (s *starter) Cleanup(end func()) { s.ends = append(s.ends, end) }

func (*starter) Name() string { return "bench" }

func (*starter) Fatal(args ...any) { panic(failure(fmt.Sprint(args...))) }

func (*starter) Fatalf(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

func (*starter) Error(args ...any) { fmt.Fprintln(os.Stderr, args...) }

func (*starter) Errorf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func (*starter) Log(args ...any) {}

func (*starter) Logf(string, ...any) {}

func (*starter) Skip(args ...any) { panic(skip(fmt.Sprint(args...))) }

func (*starter) Skipf(format string, args ...any) { panic(skip(fmt.Sprintf(format, args...))) }

func (s *starter) must(err error) {
	if err != nil {
		s.Fatal(err)
	}
}

// TempDir makes a folder that ends with the servers.
func (s *starter) TempDir() string {
	dir, err := os.MkdirTemp("", "firn-bench-")
	s.must(err)
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (s *starter) end() {
	for i := len(s.ends) - 1; i >= 0; i-- {
		s.ends[i]()
	}
}

// guarded runs what starts servers, and ends them. It returns why one can't be started here, or was not.
func guarded(ctx context.Context, run func(on *starter) error) (skipped string, err error) {
	on := &starter{ctx: ctx}
	defer on.end()
	defer func() {
		switch gaveUp := recover().(type) {
		case nil:
		case skip:
			skipped = string(gaveUp)
		case failure:
			err = errors.New(string(gaveUp))
		default:
			panic(gaveUp)
		}
	}()
	return "", run(on)
}

// counted is the address of a proxy that counts what clients send to a server.
func (s *starter) counted(server string) string {
	s.counts = true
	proxy := proxytest.New(s, server)
	proxy.Inspect(func(d proxytest.Direction, _ []byte) proxytest.Fate {
		if d == proxytest.ToServer {
			s.messages.Add(1)
		}
		return proxytest.Forward
	})
	return proxy.Address()
}
