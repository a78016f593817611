package peer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
)

// A member that was started says how far it has come, and every method answers before it has joined.
func TestStart(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		client := w.service.Client("a")
		defer client.Close()
		client.CutOff(true)
		gate := make(chan struct{})
		m, err := Start(func(ctx context.Context) (store.Store, error) {
			select {
			case <-gate:
				return client, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}, Options{TTL: ttl, Window: window})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Leave()
		refuses(t, m, errOpening)
		if log, err := m.Log(); log != nil || !errors.Is(err, errOpening) {
			t.Errorf("Log: %v, %v", log, err)
		}
		close(gate)
		synctest.Wait()
		refuses(t, m, errJoining)
		if log, err := m.Log(); log != client || err != nil {
			t.Errorf("Log: %v, %v", log, err)
		}
		within, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := m.Wait(within); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Wait: %v; want why it takes so long", err)
		}
		client.CutOff(false)
		if err := m.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := m.Ready(); err != nil || m.ID() == "" || m.Value().Size() != 1 {
			t.Errorf("Ready: %v, as %q of %d members", err, m.ID(), m.Value().Size())
		}
		m.Leave()
		refuses(t, m, errLeft)
		if err := m.Wait(t.Context()); !errors.Is(err, errLeft) {
			t.Errorf("Wait: %v", err)
		}
	})
}

// refuses checks what a member answers that is not one of the cluster.
func refuses(t *testing.T, m *Member, why error) {
	t.Helper()
	ctx, d := t.Context(), cluster.Define(firn.Default)
	_, ensured := m.EnsureSequencer(ctx, "orders", d)
	_, attached := m.Attach(ctx, "orders")
	_, onDemand := m.AttachOnDemand(ctx, "orders")
	_, created := m.Create(ctx, "orders", d)
	_, found := m.Lookup(ctx, "orders")
	for what, err := range map[string]error{
		"Ready": m.Ready(), "EnsureSequencer": ensured, "Attach": attached, "AttachOnDemand": onDemand,
		"Create": created, "Lookup": found, "Destroy": m.Destroy(ctx, "orders"),
	} {
		if !errors.Is(err, ErrNotReady) || !errors.Is(err, why) {
			t.Errorf("%s: %v; want %v", what, err, why)
		}
	}
	if errors.Is(why, errLeft) {
		return
	}
	if _, ok := m.Sequencer("orders"); ok || len(m.Sequencers()) > 0 || m.ID() != "" && why == errOpening ||
		m.Value().Position() != 0 {
		t.Errorf("it has sequencers, or the ID %q, or a value", m.ID())
	}
	if stats := m.Stats(); stats.Joined || stats.Session {
		t.Errorf("Stats: %+v", stats)
	}
	if why == errOpening {
		_, pulses := m.Pulses(ctx)
		_, owners := m.Owners(ctx, "orders")
		_, resumed := m.Resume(ctx)
		for what, err := range map[string]error{"Pulses": pulses, "Owners": owners, "Resume": resumed} {
			if !errors.Is(err, errOpening) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

// An open that fails is tried again if that may help.
func TestAStoreThatDoesNotOpen(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		client := w.service.Client("a")
		defer client.Close()
		failed := fmt.Errorf("%w: not yet", store.ErrUnavailable)
		tries := 0
		open := func(context.Context) (store.Store, error) {
			if tries++; tries < 4 {
				return nil, failed
			}
			return client, nil
		}
		m, err := Start(open, Options{TTL: ttl, Window: window})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Leave()
		if err := m.Wait(t.Context()); err != nil || tries != 4 {
			t.Errorf("after %d tries: %v", tries, err)
		}
		tries, failed = 0, errors.New("its data are damaged")
		m, err = Start(open, Options{TTL: ttl, Window: window})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Leave()
		if err := m.Wait(t.Context()); !errors.Is(err, failed) || !errors.Is(m.Err(), failed) ||
			!errors.Is(m.Ready(), failed) || tries != 1 {
			t.Errorf("after %d tries: %v", tries, err)
		}
	})
}

// While a store does not open, the member says why, and is ready soon after it has opened.
func TestWhyAStoreDoesNotOpen(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		client := w.service.Client("a")
		defer client.Close()
		tries := 0
		m, err := Start(func(context.Context) (store.Store, error) {
			switch tries++; {
			case tries <= 40:
				return nil, fmt.Errorf("%w: waiting for b", store.ErrUnavailable)
			default:
				return client, nil
			}
		}, Options{TTL: ttl, Window: window})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Leave()
		synctest.Wait()
		if err := m.Ready(); !errors.Is(err, errOpening) || !strings.Contains(err.Error(), "waiting for b") {
			t.Errorf("Ready: %v", err)
		}
		began := time.Now()
		if err := m.Wait(t.Context()); err != nil || time.Since(began) > 30*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestLeaveEndsTheOpening(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		m, err := Start(func(ctx context.Context) (store.Store, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		m.Leave()
		if m.Err() != nil || !errors.Is(m.Ready(), errLeft) {
			t.Errorf("Err: %v, Ready: %v", m.Err(), m.Ready())
		}
	})
}
