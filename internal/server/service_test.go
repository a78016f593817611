package server_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/store"
)

// slow gives IDs from 1 on, each call once it is let go; at once when gate is nil.
type slow struct {
	gate chan struct{}
	err  error
}

func (s slow) Next(ctx context.Context) (firn.ID, error) {
	ids := make([]firn.ID, 1)
	err := s.Fill(ctx, ids)
	return ids[0], err
}

func (s slow) Fill(ctx context.Context, ids []firn.ID) error {
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for i := range ids {
		ids[i] = firn.ID(i + 1)
	}
	return s.err
}

func (s slow) Ready() error      { return s.err }
func (slow) Layout() firn.Layout { return firn.Default }

// nowhere is a cluster that has not joined.
type nowhere struct{ server.Cluster }

func (nowhere) Sequencer(string) (*member.Sequencer, bool) { return nil, false }

func (nowhere) Attach(context.Context, string) (*member.Sequencer, error) {
	return nil, fmt.Errorf("%w: it is joining", member.ErrNotReady)
}

func (f nowhere) AttachOnDemand(ctx context.Context, name string) (*member.Sequencer, error) {
	return f.Attach(ctx, name)
}

func anyone(t *testing.T) *auth.Caller {
	t.Helper()
	who, err := new(auth.Policy).Admit("")
	if err != nil {
		t.Fatal(err)
	}
	return who
}

const name = member.DefaultSequencer

// As many calls as are allowed are served at a time; one more is refused at once, and served when there is room.
func TestCallsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		s := server.New(slow{gate: gate}, nowhere{}, server.Options{MaxCalls: 2})
		who := anyone(t)
		served := make(chan error)
		for range 2 {
			go func() {
				_, err := s.Next(t.Context(), who, name)
				served <- err
			}()
		}
		synctest.Wait()
		_, err := s.Next(t.Context(), who, name)
		if !errors.Is(err, server.ErrCrowded) || server.CodeOf(err) != server.Overloaded || server.RetryAfter(err) != time.Second {
			t.Errorf("one too many: %v (%s)", err, server.CodeOf(err))
		}
		close(gate)
		for range 2 {
			if err := <-served; err != nil {
				t.Error(err)
			}
		}
		if _, err := s.Next(t.Context(), who, name); err != nil {
			t.Errorf("there is room again: %v", err)
		}
	})
}

// What deliver returns is what Many returns, and how many there can be is told.
func TestMany(t *testing.T) {
	s := server.New(slow{}, nowhere{}, server.Options{})
	gone := errors.New("gone")
	err := s.Many(t.Context(), anyone(t), "", name, 3, func(b *server.Batch) error {
		if ids := slices.Concat(slices.Collect(b.All())...); fmt.Sprint(ids) != "[1 2 3]" {
			t.Errorf("they are %v", ids)
		}
		return gone
	})
	if !errors.Is(err, gone) {
		t.Errorf("%v, want what deliver returned", err)
	}
	for _, count := range []int{0, -1, server.MaxCount + 1} {
		err := s.Many(t.Context(), anyone(t), "", name, count, nil)
		if server.CodeOf(err) != server.BadRequest || !strings.Contains(err.Error(), fmt.Sprintf("count is %d; want a number from 1 to 100000", count)) {
			t.Errorf("%d: %v", count, err)
		}
	}
}

// A call that takes too long says how many IDs there can be.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server.New(slow{gate: make(chan struct{})}, nowhere{}, server.Options{})
		began := time.Now()
		_, err := s.Next(t.Context(), anyone(t), name)
		if took := time.Since(began); took != 10*time.Second || server.CodeOf(err) != server.Overloaded {
			t.Errorf("%v (%s) after %v", err, server.CodeOf(err), took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Next(ctx, anyone(t), name); !errors.Is(err, context.Canceled) {
			t.Errorf("the caller is gone: %v", err)
		}
	})
}

// Nothing that administers is for those who may only take IDs, and nothing at all for nobody.
func TestRights(t *testing.T) {
	s := server.New(slow{}, nowhere{}, server.Options{})
	ctx, who := t.Context(), anyone(t)
	for what, do := range map[string]func(*auth.Caller) error{
		"create": func(who *auth.Caller) error {
			_, _, err := s.Create(ctx, who, "orders", cluster.Define(firn.Default))
			return err
		},
		"destroy":    func(who *auth.Caller) error { _, err := s.Destroy(ctx, who, "orders"); return err },
		"attach":     func(who *auth.Caller) error { _, err := s.Attach(ctx, who, "orders"); return err },
		"detach":     func(who *auth.Caller) error { _, err := s.Detach(ctx, who, "orders"); return err },
		"sequencers": func(who *auth.Caller) error { _, err := s.Sequencers(ctx, who); return err },
		"status":     func(who *auth.Caller) error { _, err := s.Status(ctx, who); return err },
		"value":      func(who *auth.Caller) error { _, err := s.Value(who); return err },
		"log":        func(who *auth.Caller) error { _, err := s.Log(who); return err },
	} {
		if err := do(who); server.CodeOf(err) != server.Forbidden {
			t.Errorf("%s by anyone: %v", what, err)
		}
		if err := do(nil); server.CodeOf(err) != server.Unauthenticated {
			t.Errorf("%s by nobody: %v", what, err)
		}
	}
	if _, err := s.Next(ctx, nil, name); server.CodeOf(err) != server.Unauthenticated {
		t.Errorf("an ID for nobody: %v", err)
	}
}

// Who drains is not ready, and gives IDs.
func TestDrain(t *testing.T) {
	s := server.New(slow{}, nowhere{}, server.Options{})
	if err := s.Ready(); err != nil {
		t.Errorf("before: %v", err)
	}
	s.Drain()
	if err := s.Ready(); !errors.Is(err, server.ErrDraining) || s.Serving().Err() == nil {
		t.Errorf("after: %v", err)
	}
	if _, err := s.Next(t.Context(), anyone(t), name); err != nil {
		t.Errorf("an ID: %v", err)
	}
}

// Every kind of error has a code of its own.
func TestCodes(t *testing.T) {
	s := server.New(slow{err: fmt.Errorf("%w: busy", store.ErrUnavailable)}, nowhere{}, server.Options{})
	for _, tt := range []struct {
		err   error
		code  server.Code
		after time.Duration
	}{
		{server.Input(errors.New("no number")), server.BadRequest, 0},
		{&auth.LimitError{Caller: "app", Rate: 5, RetryAfter: 3 * time.Second}, server.RateLimited, 3 * time.Second},
		{&auth.LimitError{Caller: "app", Rate: 5}, server.RateLimited, 0},
		{&member.ExistsError{}, server.Exists, 0},
		{member.ErrAttachedAgain, server.AttachedAgain, 0},
		{member.ErrDestroyed, server.UnknownSequencer, 0},
		{fmt.Errorf("%w: %w", member.ErrNotReady, member.ErrWaiting), server.Waiting, time.Second},
		{fmt.Errorf("%w: %w", member.ErrNotReady, member.ErrDetached), server.Detached, time.Second},
		{server.ErrDraining, server.NotReady, time.Second},
		{firn.ErrLifetime, server.Lifetime, time.Second},
		{fmt.Errorf("%w: %w", member.ErrNotReady, firn.ErrLifetime), server.Lifetime, time.Second},
		{errors.New("surprise"), server.Internal, 0},
	} {
		if code := s.Refuse(server.Origin{}, "a call", tt.err); code != tt.code || server.RetryAfter(tt.err) != tt.after {
			t.Errorf("%v: %s, again in %v; want %s in %v", tt.err, code, server.RetryAfter(tt.err), tt.code, tt.after)
		}
	}
	if _, err := s.Next(t.Context(), anyone(t), name); server.CodeOf(err) != server.Unavailable {
		t.Errorf("%v", err)
	}
	if _, err := s.Next(t.Context(), anyone(t), "orders"); server.CodeOf(err) != server.NotReady {
		t.Errorf("another sequencer: %v", err)
	}
	if _, err := s.Next(t.Context(), anyone(t), "No Name"); server.CodeOf(err) != server.BadRequest {
		t.Errorf("no name: %v", err)
	}
}
