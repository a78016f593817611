package auth

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, leave := context.WithCancel(t.Context())
		var refused atomic.Bool
		ctx, stop := While(outer, func() error {
			if refused.Load() {
				return (*Caller)(nil).May(Issue, "")
			}
			return nil
		})
		defer stop()
		time.Sleep(time.Minute)
		if ctx.Err() != nil || Revoked(ctx, nil) != nil {
			t.Errorf("it is over: %v", context.Cause(ctx))
		}
		refused.Store(true)
		time.Sleep(askAgain)
		if synctest.Wait(); !errors.Is(Revoked(ctx, nil), ErrUnauthenticated) {
			t.Errorf("it is over because %v", context.Cause(ctx))
		}
		ended, stop := While(outer, func() error { return nil })
		defer stop()
		leave()
		other := errors.New("other")
		if synctest.Wait(); ended.Err() == nil || Revoked(ended, other) != other {
			t.Errorf("it has ended with %v", context.Cause(ended))
		}
	})
}
