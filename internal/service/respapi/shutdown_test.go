package respapi

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/test/servertest"
)

// pending gives an ID when it is told to, unless the call ends before.
type pending struct {
	*servertest.Issuer
	asked, answer chan struct{}
}

func newPending() *pending {
	return &pending{newCounting(), make(chan struct{}, 10), make(chan struct{})}
}

func (p *pending) Next(ctx context.Context) (firn.ID, error) {
	p.asked <- struct{}{}
	select {
	case <-p.answer:
		return p.Issuer.Next(ctx)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// While the service drains clients are served. Shutdown disconnects those that are idle or have not said all of a
// command, and waits for those that have.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPending()
		s := newServer(t, p)
		served(t, s, func(l *listener) {
			idle, begun, busy := l.dial(t), l.dial(t), l.dial(t)
			s.service.Drain()
			if got := idle.ask("PING"); got != "+PONG" {
				t.Errorf("draining: %s", got)
			}
			if _, err := begun.Write([]byte("*1\r\n$4\r\nPI")); err != nil {
				t.Error(err)
			}
			reply := make(chan string)
			go func() { reply <- busy.ask("INCR default") }()
			<-p.asked
			done := make(chan error)
			go func() { done <- s.Shutdown(t.Context()) }()
			untilClosed(t, idle)
			untilClosed(t, begun)
			synctest.Wait()
			select {
			case err := <-done:
				t.Fatalf("Shutdown did not wait: %v", err)
			default:
			}
			time.Sleep(2 * slack) // simulated; the connection would get a new deadline now
			close(p.answer)
			if got := <-reply; got != "1152921504606846976" {
				t.Errorf("the last one got %s", got)
			}
			untilClosed(t, busy)
			if err := <-done; err != nil {
				t.Errorf("Shutdown: %v", err)
			}
			if err := s.Serve(newListener()); err != nil {
				t.Errorf("Serve afterwards: %v", err)
			}
		})
	})
}

// Shutdown waits no longer than it is told to; Close ends what is left.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPending()
		s := newServer(t, p)
		served(t, s, func(l *listener) {
			busy := l.dial(t)
			reply := make(chan string)
			go func() { reply <- busy.ask("INCR default") }()
			<-p.asked
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Shutdown: %v", err)
			}
			s.Close()
			if got := <-reply; got != "closed" {
				t.Errorf("the last one got %s", got)
			}
			if err := s.Shutdown(t.Context()); err != nil {
				t.Errorf("Shutdown after Close: %v", err)
			}
		})
	})
}
