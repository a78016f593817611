package calls_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store/quorum"
)

// slowQuorum takes a second to tell how often it was asked.
type slowQuorum struct {
	calls.Quorum
	asked atomic.Uint64
}

func (q *slowQuorum) Status(context.Context) quorum.Status {
	n := q.asked.Add(1)
	time.Sleep(time.Second)
	return quorum.Status{Machines: []quorum.Machine{{Index: n}}}
}

// However many watch the quorum, the machines are asked once in two seconds; who does not wait gets what they said
// before.
func TestRecentQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := new(slowQuorum)
		s := calls.New(servertest.Waiting(t, "it waits"), calls.Options{Quorum: q})
		look := func(patience time.Duration) uint64 {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			status := s.RecentQuorum(ctx)
			if status == nil {
				return 0
			}
			return status.Machines[0].Index
		}
		if n := look(time.Second / 2); n != 0 {
			t.Errorf("before the first answer it is %d", n)
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if n := look(time.Minute); n != 1 {
					t.Errorf("who waits gets %d", n)
				}
			})
		}
		all.Wait()
		time.Sleep(time.Second - time.Nanosecond) // two since it was asked
		if n := look(time.Minute); n != 1 || q.asked.Load() != 1 {
			t.Errorf("soon after it is %d, asked %d times", n, q.asked.Load())
		}
		time.Sleep(time.Nanosecond)
		if n := look(time.Second / 2); n != 1 || q.asked.Load() != 2 {
			t.Errorf("who does not wait gets %d, asked %d times", n, q.asked.Load())
		}
		if n := look(time.Minute); n != 2 {
			t.Errorf("who waits gets %d", n)
		}
	})
	if s := calls.New(servertest.Waiting(t, "it waits"), calls.Options{}).RecentQuorum(t.Context()); s != nil {
		t.Errorf("without a quorum it is %v", s)
	}
}
