package peer

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store/memstore"
)

// A job that ends without Leave blocks the next one for a while. The next one says whom it waits for, and for how long.
func TestAJoinSaysWhomItWaitsFor(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		first := w.start("first")
		first.ready(time.Second)
		dead := first.id()
		first.crash()
		var log strings.Builder
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		client := w.service.Client("next")
		defer client.Close()
		_, err := Join(ctx, client,
			Options{TTL: ttl, Window: window, Owner: "next", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for _, want := range []string{
			"it has not joined the cluster: for 2s it has waited for the member " + dead,
			`owner "first"`, "wrote its pulse ",
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v; want %q", err, want)
			}
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		if got := strings.Count(log.String(), "the join waits for a member to accept it"); got != 1 ||
			!strings.Contains(log.String(), "member="+dead+" owner=first") {
			t.Errorf("the log has %d lines for this:\n%s", got, log.String())
		}
	})
}

// The next one takes the place of one that was killed, long before the session of that ends.
func TestOneThatWasKilledDoesNotBlockTheNext(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		first := w.start("first")
		first.ready(time.Second)
		dead := first.id()
		first.crash()
		next := w.start("next")
		next.ready(callAfter + answerMost + time.Second)
		if w.value().IsMember(dead) {
			t.Errorf("%s is still a member", dead)
		}
	})
}

// Leave ends in time although the store answers nothing, or refuses everything.
func TestLeaveWhileTheStoreIsAway(t *testing.T) {
	for name, fault := range map[string]memstore.Fault{
		"silent":  {Delay: time.Hour},
		"refuses": {Outcome: memstore.FailBefore},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.two()
				w.service.Inject(func(c memstore.Call) memstore.Fault {
					if c.Client == a.name {
						return fault
					}
					return memstore.Fault{}
				})
				began := time.Now()
				a.leave()
				if took := time.Since(began); took > leaveWithin {
					t.Errorf("Leave took %v, want at most %v", took, leaveWithin)
				}
				w.service.Inject(nil)
				b.serves(time.Second)
				synctest.Wait()
			})
		})
	}
}
