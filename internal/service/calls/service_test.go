package calls_test

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
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/quorum"
)

// fake is a service of a member that has not joined, with a test's default sequencer.
func fake(t *testing.T, i *servertest.Issuer, o calls.Options) *calls.Service {
	t.Helper()
	o.Default = i
	return calls.New(servertest.Waiting(t, "it waits"), o)
}

// opens returns a function that makes an Issuer wait until a gate opens.
func opens(gate <-chan struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func anyone(t *testing.T) *auth.Caller {
	t.Helper()
	who, err := new(auth.Policy).Admit("")
	if err != nil {
		t.Fatal(err)
	}
	return who
}

const name = peer.DefaultSequencer

// The service serves MaxCalls calls at a time; it refuses one more at once, and serves it when there is room.
func TestCallsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		s := fake(t, &servertest.Issuer{Before: opens(gate)}, calls.Options{MaxCalls: 2})
		who := anyone(t)
		served := make(chan error)
		for range 2 {
			go func() {
				_, _, err := s.Next(t.Context(), who, name)
				served <- err
			}()
		}
		synctest.Wait()
		_, _, err := s.Next(t.Context(), who, name)
		if !errors.Is(err, calls.ErrCrowded) || calls.CodeOf(err) != codes.Overloaded ||
			calls.RetryAfter(err) != time.Second {
			t.Errorf("one too many: %v (%s)", err, calls.CodeOf(err))
		}
		close(gate)
		for range 2 {
			if err := <-served; err != nil {
				t.Error(err)
			}
		}
		if _, _, err := s.Next(t.Context(), who, name); err != nil {
			t.Errorf("there is room again: %v", err)
		}
	})
}

// Many returns the error of deliver, and names the most IDs that a call may ask for.
func TestMany(t *testing.T) {
	s := fake(t, new(servertest.Issuer), calls.Options{})
	gone := errors.New("gone")
	err := s.Many(t.Context(), anyone(t), "", name, 3, func(b *calls.Batch) error {
		if ids := slices.Concat(slices.Collect(b.All())...); !slices.Equal(ids,
			[]firn.ID{servertest.First, servertest.First + 1, servertest.First + 2}) {
			t.Errorf("they are %v", ids)
		}
		return gone
	})
	if !errors.Is(err, gone) {
		t.Errorf("%v, want what deliver returned", err)
	}
	for _, count := range []int{0, -1, calls.MaxCount + 1} {
		err := s.Many(t.Context(), anyone(t), "", name, count, nil)
		if calls.CodeOf(err) != codes.BadRequest ||
			!strings.Contains(err.Error(), fmt.Sprintf("count is %d; want a number from 1 to 100000", count)) {
			t.Errorf("%d: %v", count, err)
		}
	}
}

// The error of a call that takes too long tells the node's rate.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fake(t, &servertest.Issuer{Before: opens(nil)}, calls.Options{})
		began := time.Now()
		_, _, err := s.Next(t.Context(), anyone(t), name)
		if took := time.Since(began); took != 10*time.Second || calls.CodeOf(err) != codes.Overloaded {
			t.Errorf("%v (%s) after %v", err, calls.CodeOf(err), took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := s.Next(ctx, anyone(t), name); !errors.Is(err, context.Canceled) {
			t.Errorf("the caller is gone: %v", err)
		}
	})
}

// A caller that may only take IDs can't administer, and a caller without rights can't do anything.
func TestRights(t *testing.T) {
	s := fake(t, new(servertest.Issuer), calls.Options{})
	ctx, who := t.Context(), anyone(t)
	for what, do := range map[string]func(*auth.Caller) error{
		"create": func(who *auth.Caller) error {
			_, _, err := s.Create(ctx, who, "orders", cluster.Define(firn.Default), 0)
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
		if err := do(who); calls.CodeOf(err) != codes.Forbidden {
			t.Errorf("%s by anyone: %v", what, err)
		}
		if err := do(nil); calls.CodeOf(err) != codes.Unauthenticated {
			t.Errorf("%s without a caller: %v", what, err)
		}
	}
	if _, _, err := s.Next(ctx, nil, name); calls.CodeOf(err) != codes.Unauthenticated {
		t.Errorf("an ID without a caller: %v", err)
	}
}

// A service that drains is not ready, and still issues IDs.
func TestDrain(t *testing.T) {
	s := fake(t, new(servertest.Issuer), calls.Options{})
	if err := s.Ready(); err != nil {
		t.Errorf("before: %v", err)
	}
	s.Drain()
	if err := s.Ready(); !errors.Is(err, calls.ErrDraining) || s.Serving().Err() == nil {
		t.Errorf("after: %v", err)
	}
	if _, _, err := s.Next(t.Context(), anyone(t), name); err != nil {
		t.Errorf("an ID: %v", err)
	}
}

// Every kind of error has its own code.
func TestCodes(t *testing.T) {
	s := fake(t, &servertest.Issuer{Err: fmt.Errorf("%w: busy", store.ErrUnavailable)}, calls.Options{})
	for _, tt := range []struct {
		err   error
		code  codes.Code
		after time.Duration
	}{
		{calls.Input(errors.New("no number")), codes.BadRequest, 0},
		{&auth.LimitError{Caller: "app", Rate: 5, RetryAfter: 3 * time.Second}, codes.RateLimited, 3 * time.Second},
		{&auth.LimitError{Caller: "app", Rate: 5}, codes.RateLimited, 0},
		{auth.ErrUnauthenticated, codes.Unauthenticated, 0},
		{auth.ErrNoToken, codes.Unauthenticated, 0},
		{&auth.SecretError{}, codes.Unauthenticated, 0},
		{&auth.DeniedError{Err: auth.ErrForbidden}, codes.Forbidden, 0},
		{auth.ErrNotKept, codes.NotReady, time.Second},
		{&peer.ExistsError{}, codes.Exists, 0},
		{&peer.RefusedError{Command: cluster.Expel{}}, codes.Refused, 0},
		{&peer.SkipError{}, codes.Refused, 0},
		{&cluster.PrefixError{}, codes.Refused, 0},
		{&calls.MajorityError{}, codes.Refused, 0},
		{quorum.ErrClient, codes.Refused, 0},
		{&cluster.UnreadableError{Err: errors.New("torn")}, codes.Unreadable, 0},
		{peer.ErrAttachedAgain, codes.AttachedAgain, 0},
		{peer.ErrDestroyed, codes.UnknownSequencer, 0},
		{peer.ErrNoSequencer, codes.UnknownSequencer, 0},
		{peer.ErrUnfit, codes.Unfit, time.Second},
		{fmt.Errorf("%w: %w", peer.ErrNotReady, peer.ErrCopied), codes.Copied, time.Second},
		{fmt.Errorf("%w: %w", peer.ErrNotReady, peer.ErrDrained), codes.Detached, time.Second},
		{fmt.Errorf("%w: %w", peer.ErrNotReady, &peer.ClockError{}), codes.Clock, time.Second},
		{fmt.Errorf("%w: %w", peer.ErrNotReady, &peer.OrderError{}), codes.Clock, time.Second},
		{calls.ErrCrowded, codes.Overloaded, time.Second},
		{&calls.ElsewhereError{Code: codes.RateLimited, Retry: time.Minute}, codes.RateLimited, time.Minute},
		{fmt.Errorf("%w: %w", context.DeadlineExceeded, peer.ErrNotReady), codes.NotReady, time.Second},
		{store.ErrAmbiguous, codes.Unavailable, time.Second},
		{fmt.Errorf("%w: %w", peer.ErrNotReady, peer.ErrWaiting), codes.Waiting, time.Second},
		{fmt.Errorf("%w: %w", peer.ErrNotReady, peer.ErrDetached), codes.Detached, time.Second},
		{calls.ErrDraining, codes.NotReady, time.Second},
		{firn.ErrLifetime, codes.Lifetime, time.Second},
		{fmt.Errorf("%w: %w", peer.ErrNotReady, firn.ErrLifetime), codes.Lifetime, time.Second},
		{errors.New("surprise"), codes.Internal, 0},
	} {
		if code := s.Refuse(calls.Origin{}, "a call", tt.err); code != tt.code || calls.RetryAfter(tt.err) != tt.after {
			t.Errorf("%v: %s, again in %v; want %s in %v", tt.err, code, calls.RetryAfter(tt.err), tt.code, tt.after)
		}
	}
	if _, _, err := s.Next(t.Context(), anyone(t), name); calls.CodeOf(err) != codes.Unavailable {
		t.Errorf("%v", err)
	}
	if _, _, err := s.Next(t.Context(), anyone(t), "orders"); calls.CodeOf(err) != codes.NotReady {
		t.Errorf("another sequencer: %v", err)
	}
	if _, _, err := s.Next(t.Context(), anyone(t), "No Name"); calls.CodeOf(err) != codes.BadRequest {
		t.Errorf("no name: %v", err)
	}
}
