package appends_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/appends"
)

// hostile is a log that loses answers and applies tries late, while others append
// to it, checkpoint it and trim it.
type hostile struct {
	rng        *rand.Rand
	now        store.Position
	entries    map[string]store.Position
	checkpoint store.Version
	trimmed    store.Position
	late       []func()
	added      map[string][]store.Position // all that ever were, by ID
}

func (h *hostile) Look(context.Context) (appends.Seen, error) {
	h.happen()
	if h.rng.IntN(10) == 0 {
		return appends.Seen{}, store.ErrUnavailable
	}
	return h.seen(""), nil
}

func (h *hostile) Try(_ context.Context, id string, _ []byte, checkpoint store.Version) (appends.Seen, error) {
	h.happen()
	defer h.happen()
	apply := func() {
		h.now++
		if h.entries[id] == 0 && h.checkpoint == checkpoint {
			h.entries[id] = h.now
			h.added[id] = append(h.added[id], h.now)
		}
	}
	switch h.rng.IntN(6) {
	case 0: // it was lost
		return appends.Seen{}, store.ErrAmbiguous
	case 1: // its answer was lost
		apply()
		return appends.Seen{}, store.ErrAmbiguous
	case 2, 3: // it takes effect whenever it likes
		h.late = append(h.late, apply)
		return appends.Seen{}, store.ErrAmbiguous
	case 4:
		if h.rng.IntN(2) == 0 {
			return appends.Seen{}, store.ErrRefused
		}
		return appends.Seen{}, store.ErrUnavailable
	}
	apply()
	return h.seen(id), nil
}

func (h *hostile) seen(id string) appends.Seen {
	return appends.Seen{Entry: h.entries[id], Checkpoint: h.checkpoint, Trimmed: h.trimmed, Now: h.now}
}

// happen lets a few things happen.
func (h *hostile) happen() {
	for range h.rng.IntN(3) {
		switch h.rng.IntN(4) {
		case 0:
			h.now++
			h.entries[fmt.Sprintf("other-%d", h.now)] = h.now
		case 1:
			if n := len(h.late); n > 0 {
				i := h.rng.IntN(n)
				apply := h.late[i]
				h.late = slices.Delete(h.late, i, i+1)
				apply()
			}
		case 2:
			if at := h.trimmed + store.Position(h.rng.Int64N(int64(h.now-h.trimmed)+1)); at > h.trimmed {
				h.now++
				h.checkpoint, h.trimmed = store.Version(h.now), at
			}
		case 3:
			for id, at := range h.entries {
				if at <= h.trimmed {
					delete(h.entries, id)
				}
			}
		}
	}
}

// Whatever becomes of the tries, no entry is added twice; a position is that of
// the entry; and what is said not to be there never will be.
func TestOnceOrNotAtAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outcomes := make(map[string]int)
		for seed := range uint64(20_000) {
			h := &hostile{
				rng: rand.New(rand.NewPCG(seed, 1)), now: 1,
				entries: make(map[string]store.Position), added: make(map[string][]store.Position),
			}
			a := appends.New(h, time.Second)
			for call := range 3 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(h.rng.IntN(4))*time.Second)
				at, err := a.Append(ctx, "a", nil)
				cancel()
				switch {
				case err == nil:
					outcomes["added"]++
					if !slices.Contains(h.added["a"], at) {
						t.Fatalf("seed %d: call %d says that it is at %d; it was added at %v", seed, call,
							at, h.added["a"])
					}
				case errors.Is(err, store.ErrAmbiguous):
					outcomes["in doubt"]++
					continue
				default:
					outcomes["not added"]++
					for len(h.late) > 0 {
						h.happen()
					}
					if len(h.added["a"]) > 0 {
						t.Fatalf("seed %d: call %d says %v; it was added at %v", seed, call, err, h.added["a"])
					}
				}
				break
			}
			for len(h.late) > 0 {
				h.happen()
			}
			if len(h.added["a"]) > 1 {
				t.Fatalf("seed %d: it was added at %v", seed, h.added["a"])
			}
		}
		for _, outcome := range []string{"added", "in doubt", "not added"} {
			if outcomes[outcome] < 1000 {
				t.Errorf("only %d calls of %v ended like this: %s", outcomes[outcome], outcomes, outcome)
			}
		}
	})
}

// scripted is a log that answers as it is told.
type scripted struct {
	mu    sync.Mutex
	try   func(id string, checkpoint store.Version) (appends.Seen, error)
	looks int
}

func (s *scripted) Look(context.Context) (appends.Seen, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	return appends.Seen{Now: 1}, nil
}

func (s *scripted) Try(_ context.Context, id string, _ []byte, checkpoint store.Version) (appends.Seen, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.try(id, checkpoint)
}

// What is known from other calls need not be looked up, and what turns out to be
// out of date costs one more try, at once.
func TestKnowledge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tried []store.Version
		s := &scripted{try: func(_ string, checkpoint store.Version) (appends.Seen, error) {
			tried = append(tried, checkpoint)
			if checkpoint == 7 {
				return appends.Seen{Entry: 20, Checkpoint: 7, Now: 20}, nil
			}
			return appends.Seen{Checkpoint: 7, Trimmed: 6, Now: 19}, nil
		}}
		a := appends.New(s, time.Hour)
		a.Learn(appends.Seen{Checkpoint: 5, Now: 10})
		a.Learn(appends.Seen{Checkpoint: 3, Now: 9}) // older
		start := time.Now()
		for range 2 {
			if at, err := a.Append(t.Context(), "a", nil); at != 20 || err != nil {
				t.Errorf("Append = %d, %v", at, err)
			}
		}
		if want := []store.Version{5, 7, 7}; !slices.Equal(tried, want) || s.looks != 0 || time.Since(start) != 0 {
			t.Errorf("it tried with %v after %d looks and %v, want %v", tried, s.looks, time.Since(start), want)
		}
	})
}

// Calls with one ID take turns; one that ends meanwhile can't tell.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, answer := 0, make(chan struct{})
		s := &blocking{answer: answer, running: &running, t: t}
		a := appends.New(s, time.Second)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if at, err := a.Append(t.Context(), "a", nil); at != 2 || err != nil {
					t.Errorf("Append = %d, %v", at, err)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Append(ctx, "a", nil); !errors.Is(err, store.ErrAmbiguous) ||
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Append whose turn did not come: %v, want ErrAmbiguous and its cause", err)
		}
		close(answer)
		all.Wait()
	})
}

type blocking struct {
	t       *testing.T
	answer  chan struct{}
	running *int
}

func (b *blocking) Look(context.Context) (appends.Seen, error) { return appends.Seen{Now: 1}, nil }

func (b *blocking) Try(context.Context, string, []byte, store.Version) (appends.Seen, error) {
	if *b.running++; *b.running > 1 {
		b.t.Error("two tries of one ID at once")
	}
	<-b.answer
	*b.running--
	return appends.Seen{Entry: 2, Now: 2}, nil
}

// An append in doubt is remembered, but of those that were left only so many, the
// latest. A call that is refused can't tell of it; one that is not in doubt can.
func TestHowManyAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := store.ErrAmbiguous
		s := &scripted{try: func(string, store.Version) (appends.Seen, error) { return appends.Seen{}, answer }}
		a := appends.New(s, time.Hour)
		call := func(i int) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := a.Append(ctx, fmt.Sprint(i), nil)
			return err
		}
		const left = store.MaxInDoubt + 2
		for i := range left {
			if err := call(i); !errors.Is(err, store.ErrAmbiguous) {
				t.Fatalf("Append = %v, want ErrAmbiguous", err)
			}
		}
		answer = store.ErrRefused
		for i := range left + 2 {
			want := store.ErrAmbiguous
			if i < left-store.MaxInDoubt || i >= left {
				want = store.ErrRefused
			}
			err := call(i)
			if !errors.Is(err, want) || errors.Is(err, store.ErrRefused) != (want == store.ErrRefused) {
				t.Fatalf("ID %d of %d, refused: %v, want %v", i, left, err, want)
			}
		}
	})
}
