package calls_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// slow is a store that takes for ever to write that sequencers of one prefix of names are created, and notes the quotas
// of others.
type slow struct {
	*memstore.Client
	mu     sync.Mutex
	begun  int
	quotas []cluster.Quota
}

func (s *slow) Append(ctx context.Context, id string, data []byte) (store.Position, error) {
	e, err := cluster.Decode(1, data)
	if err != nil {
		return 0, err
	}
	if c, ok := e.Command.(cluster.CreateSequencer); ok {
		s.mu.Lock()
		if !strings.HasPrefix(c.Sequencer, "inv-") {
			s.quotas = c.Quotas
			s.mu.Unlock()
		} else {
			s.begun++
			s.mu.Unlock()
			<-ctx.Done()
			return 0, fmt.Errorf("%w: %w", store.ErrAmbiguous, ctx.Err())
		}
	}
	return s.Client.Append(ctx, id, data)
}

// callersOf are those of tokens that are their names, with what their entries say.
func callersOf(t *testing.T, entries map[string]string) map[string]*auth.Caller {
	t.Helper()
	file, all := filepath.Join(t.TempDir(), "tokens.yaml"), ""
	for name, entry := range entries {
		all += fmt.Sprintf("- {name: %s, sha256: %s, %s}\n", name, auth.Hash(name), entry)
	}
	if err := os.WriteFile(file, []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.OpenTokens(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	callers := map[string]*auth.Caller{}
	for name := range entries {
		if callers[name], err = tokens.Identify(name); err != nil {
			t.Fatal(err)
		}
	}
	return callers
}

// However many a caller creates at a time, another does not wait.
func TestCreatesDoNotWaitForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		callers := callersOf(t,
			map[string]string{"root": "allow: [admin]", "inv": "allow: [admin], sequencers: ['inv-*']"})
		m := &slow{Client: memstore.NewService().Client("a")}
		s := calls.New(servertest.JoinOver(t, m), calls.Options{Default: new(servertest.Issuer)})
		var all sync.WaitGroup
		l := firn.Default
		l.Epoch = time.Now().Add(-time.Hour)
		create := func(who, remote, name string) error {
			ctx := calls.Origin{Protocol: "http", Remote: remote}.In(t.Context())
			_, _, err := s.Create(ctx, callers[who], name, cluster.Define(l), 0)
			return err
		}
		for i := range 500 {
			all.Go(func() {
				if err := create("inv", fmt.Sprintf("10.0.%d.%d:1", i/100, i%100), fmt.Sprint("inv-",
					i)); calls.CodeOf(err) != codes.Unavailable && calls.CodeOf(err) != codes.Overloaded {
					t.Errorf("%v", err)
				}
			})
		}
		synctest.Wait()
		if m.begun < 2 || m.begun > 48 {
			t.Errorf("one caller creates %d sequencers at a time", m.begun)
		}
		if err := create("root", "10.0.0.1:1", "orders"); err != nil {
			t.Errorf("meanwhile: %v", err)
		}
		if len(m.quotas) != 1 || m.quotas[0].Most != calls.DefaultMaxSequencers || m.quotas[0].Names != nil {
			t.Errorf("the quotas %v", m.quotas)
		}
		all.Wait()
	})
}

// A token whose calls take long leaves room for those of others.
func TestNoTokenTakesAllCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		callers := callersOf(t, map[string]string{"slow": "allow: [issue]", "quick": "allow: [issue]"})
		var waits atomic.Int64
		m := &servertest.Issuer{Before: func(ctx context.Context) error {
			if ctx.Value(slowly{}) == nil {
				return nil
			}
			waits.Add(1)
			<-ctx.Done()
			return ctx.Err()
		}}
		s := calls.New(servertest.Join(t), calls.Options{Default: m, MaxCalls: 16})
		for range 2 { // what has ended counts no more
			var all sync.WaitGroup
			var crowded atomic.Int64
			waits.Store(0)
			for range 100 {
				all.Go(func() {
					if _, _, err := s.Next(context.WithValue(t.Context(), slowly{}, true), callers["slow"],
						name); errors.Is(err, calls.ErrCrowded) {
						crowded.Add(1)
					}
				})
			}
			synctest.Wait()
			if waits.Load() != 14 || crowded.Load() != 86 {
				t.Errorf("%d of its calls go on, and %d were refused; want 14 of 16", waits.Load(), crowded.Load())
			}
			if _, _, err := s.Next(t.Context(), callers["quick"], name); err != nil {
				t.Errorf("another: %v", err)
			}
			all.Wait()
		}
	})
}

type slowly struct{} // marks calls that take long
