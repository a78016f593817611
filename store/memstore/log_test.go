package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// on injects a fault into calls of one kind, as often as n says.
func on(op memstore.Operation, fault memstore.Fault, n int) memstore.Hook {
	var mu sync.Mutex
	return func(call memstore.Call) memstore.Fault {
		mu.Lock()
		defer mu.Unlock()
		if call.Op != op || n == 0 {
			return memstore.Fault{}
		}
		n--
		return fault
	}
}

func mustAppend(t *testing.T, c *memstore.Client, id string) store.Position {
	t.Helper()
	position, err := c.Append(t.Context(), id, []byte(id))
	if err != nil {
		t.Fatalf("Append(%s): %v", id, err)
	}
	return position
}

// ids of all entries after the checkpoint, and the checkpoint's position.
func logOf(t *testing.T, c *memstore.Client) (ids []string, cut store.Position) {
	t.Helper()
	batch, err := c.Read(t.Context(), 0)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	for _, e := range batch.Entries {
		ids = append(ids, e.ID)
	}
	if batch.Checkpoint != nil {
		cut = batch.Checkpoint.Position
	}
	return ids, cut
}

func mustCut(t *testing.T, c *memstore.Client, at store.Position) {
	t.Helper()
	err := c.Checkpoint(t.Context(), store.Checkpoint{Position: at})
	if err = errors.Join(err, c.Trim(t.Context())); err != nil {
		t.Fatalf("Checkpoint, Trim: %v", err)
	}
}

// Append repeats itself while it is in doubt, and gives up after five seconds.
func TestFaultsOfAnAppend(t *testing.T) {
	const pause = 100 * time.Millisecond
	late := memstore.Fault{Outcome: memstore.ApplyLate, Delay: time.Minute}
	tests := []struct {
		name  string
		fault memstore.Fault
		times int // how many tries have the fault
		took  time.Duration
		want  error
		there bool // when Append returns; an hour later it always is
	}{
		{"none", memstore.Fault{}, 0, 0, nil, true},
		{"slow", memstore.Fault{Delay: time.Second}, 1, time.Second, nil, true},
		{"fails before", memstore.Fault{Outcome: memstore.FailBefore}, 3, 3 * pause, nil, true},
		{"fails after", memstore.Fault{Outcome: memstore.FailAfter}, 3, 3 * pause, nil, true},
		{"applies late", late, 3, 3 * pause, nil, true},
		{"never answers", memstore.Fault{Outcome: memstore.FailAfter}, -1, 5 * time.Second, store.ErrAmbiguous, true},
		{"always applies late", late, -1, 5 * time.Second, store.ErrAmbiguous, false},
		{"slower than it waits", memstore.Fault{Delay: time.Minute}, 1, 5 * time.Second, store.ErrAmbiguous, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := memstore.NewService().Client("c")
				c.Inject(on(memstore.Append, tt.fault, tt.times))
				start := time.Now()
				if _, err := c.Append(t.Context(), "a", nil); !errors.Is(err, tt.want) {
					t.Errorf("Append = %v, want %v", err, tt.want)
				}
				if took := time.Since(start); took != tt.took {
					t.Errorf("Append took %v, want %v", took, tt.took)
				}
				if ids, _ := logOf(t, c); slices.Equal(ids, []string{"a"}) != tt.there {
					t.Errorf("when Append returns the log has %q", ids)
				}
				c.Inject(nil)
				time.Sleep(time.Hour)
				if ids, _ := logOf(t, c); !slices.Equal(ids, []string{"a"}) {
					t.Errorf("an hour later the log has %q, want a once", ids)
				}
			})
		})
	}
}

// An append that never reached the log, be it refused or that the client knew of no log, is no doubt.
func TestAppendThatWasNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memstore.NewService().Client("c")
		c.Inject(on(memstore.Read, memstore.Fault{Outcome: memstore.FailBefore}, 1))
		if _, err := c.Append(t.Context(), "a", nil); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Append = %v, want ErrUnavailable", err)
		}
		mustAppend(t, c, "a")
	})
}

// A try that takes effect late can do so before or after its entry, or that which
// the next try added, was trimmed: it is added once all the same. Each case is told in steps,
// one a second; the first try takes effect after 2.5 seconds.
func TestLateAppendAroundATrim(t *testing.T) {
	tests := []struct {
		name  string
		steps func(at int, act func(string))
		want  []error // of the repeats, in order
		added int     // how often in the end
	}{
		{
			"trimmed before it applies",
			script("cut", "", "", "repeat"),
			[]error{nil},
			1, // nothing after its first try was trimmed: it is added again
		},
		{
			"entries after its first try trimmed before it applies",
			script("other", "cut", "", "repeat", "repeat"),
			[]error{store.ErrAmbiguous, store.ErrAmbiguous},
			0,
		},
		{
			"trimmed after it applies",
			script("", "", "cut", "repeat", "repeat"),
			[]error{store.ErrAmbiguous, store.ErrAmbiguous},
			1,
		},
		{
			"trimmed after it applies, and appended by another",
			script("", "", "cut", "theirs", "repeat"),
			[]error{nil},
			2, // the other's own
		},
		{
			"repeated before it applies, then trimmed",
			script("repeat", "cut", "", ""),
			[]error{nil},
			1,
		},
		{
			"there, and all before it trimmed",
			script("other", "", "cut before", "repeat"),
			[]error{nil},
			1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc := memstore.NewService()
				c, other := svc.Client("c"), svc.Client("other")
				ctx, stop := context.WithCancel(t.Context())
				added, before := 0, mustAppend(t, c, "before")
				var following sync.WaitGroup
				following.Go(func() {
					for batch := range other.Follow(ctx, 0) {
						for _, e := range batch.Entries {
							if e.ID == "a" {
								added++
							}
						}
					}
				})
				defer following.Wait()
				defer stop()

				c.Inject(on(memstore.Append,
					memstore.Fault{Outcome: memstore.ApplyLate, Delay: 2500 * time.Millisecond}, 1))
				short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				if _, err := c.Append(short, "a", nil); !errors.Is(err, store.ErrAmbiguous) {
					t.Fatalf("Append = %v, want ErrAmbiguous", err)
				}
				var got []error
				for second := range 8 {
					time.Sleep(time.Second)
					synctest.Wait()
					tt.steps(second, func(step string) {
						switch step {
						case "other":
							mustAppend(t, other, "other")
						case "theirs":
							mustAppend(t, other, "a")
						case "repeat":
							_, err := c.Append(t.Context(), "a", nil)
							got = append(got, err)
						case "cut":
							batch, _ := other.Read(t.Context(), 0)
							last := before
							for _, e := range batch.Entries {
								last = e.Position
							}
							mustCut(t, other, last)
						case "cut before":
							mustCut(t, other, before)
						}
					})
				}
				synctest.Wait()
				if len(got) != len(tt.want) || !slices.EqualFunc(got, tt.want, errors.Is) {
					t.Errorf("the repeats came to %v, want %v", got, tt.want)
				}
				if added != tt.added {
					t.Errorf("it was added %d times, want %d", added, tt.added)
				}
			})
		})
	}
}

// script acts one step a second.
func script(steps ...string) func(int, func(string)) {
	return func(at int, act func(string)) {
		if at < len(steps) {
			act(steps[at])
		}
	}
}

// follower collects what a Follow yields, until its context ends.
type follower struct {
	ids         []string
	at          []time.Duration // when each came
	checkpoints int
}

func follow(ctx context.Context, c *memstore.Client, all *sync.WaitGroup) *follower {
	f, start := &follower{}, time.Now()
	all.Go(func() {
		for batch := range c.Follow(ctx, 0) {
			if batch.Checkpoint != nil {
				f.checkpoints++
			}
			for _, e := range batch.Entries {
				f.ids, f.at = append(f.ids, e.ID), append(f.at, time.Since(start))
			}
		}
	})
	return f
}

// A follower hears of each entry as late as its client's lag has it, and of what
// was appended in a partition when that ends.
func TestNewsOfEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := memstore.NewService()
		c, other := svc.Client("c"), svc.Client("other")
		var all sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		f := follow(ctx, c, &all)
		synctest.Wait()

		c.Lag(7 * time.Second)
		mustAppend(t, other, "0s")
		time.Sleep(5 * time.Second)
		mustAppend(t, other, "5s")
		time.Sleep(95 * time.Second)
		c.Lag(0)
		c.CutOff(true)
		mustAppend(t, other, "100s")
		time.Sleep(time.Hour)
		c.CutOff(false)
		synctest.Wait()
		mustAppend(t, other, "3700s")
		synctest.Wait()
		stop()
		all.Wait()
		if want := []string{"0s", "5s", "100s", "3700s"}; !slices.Equal(f.ids, want) {
			t.Errorf("the follower has %q, want %q", f.ids, want)
		}
		if want := []time.Duration{7e9, 12e9, 3700e9, 3700e9}; !slices.Equal(f.at, want) {
			t.Errorf("they came after %v, want %v", f.at, want)
		}
	})
}

// A client that reaches the store for a moment only, after that was set back, may hear of the new log. Its Follow does
// not mix two logs: it ends, once it can tell.
func TestAFollowHearsOfAnotherLog(t *testing.T) {
	for _, grows := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			svc := memstore.NewService()
			c, other := svc.Client("c"), svc.Client("other")
			mustAppend(t, other, "lost")
			came := make(chan string, 10)
			go func() {
				for batch, err := range c.Follow(t.Context(), 0) {
					if err != nil {
						came <- fmt.Sprint(errors.Is(err, store.ErrRolledBack))
					}
					for _, e := range batch.Entries {
						came <- e.ID
					}
				}
				close(came)
			}()
			synctest.Wait()
			c.CutOff(true)
			svc.RollBack(memstore.Backup{}, 1000)
			if grows {
				mustAppend(t, other, "new")
			}
			c.CutOff(false)
			c.CutOff(true)
			synctest.Wait()
			c.CutOff(false)
			synctest.Wait()
			var all []string
			for len(came) > 0 {
				all = append(all, <-came)
			}
			if want := []string{"lost", "true"}; !slices.Equal(all, want) {
				t.Errorf("it yields %q, want %q", all, want)
			}
		})
	}
}

// A Follow that has yielded no entry yet notices that the store is behind where it was.
func TestAFollowOfAnEmptyLogHearsOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := memstore.NewService()
		c := svc.Client("c")
		if _, err := c.Commit(t.Context(), put("key")); err != nil {
			t.Fatal(err)
		}
		began, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			for _, err := range c.Follow(t.Context(), 0) {
				if err != nil {
					ended <- err
					return
				}
				close(began)
			}
		}()
		<-began
		svc.RollBack(memstore.Backup{}, 0)
		if err := <-ended; !errors.Is(err, store.ErrRolledBack) {
			t.Errorf("it ended with %v, want ErrRolledBack", err)
		}
	})
}

// Calls that a Follow sends are repeated until one is answered.
func TestFollowRidesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := memstore.NewService()
		c, other := svc.Client("c"), svc.Client("other")
		mustAppend(t, other, "a")
		c.Inject(on(memstore.Follow, memstore.Fault{Outcome: memstore.FailBefore}, 20))
		var all sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		f := follow(ctx, c, &all)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !slices.Equal(f.ids, []string{"a"}) {
			t.Errorf("the follower has %q, want a", f.ids)
		}

		// It falls behind a trim, and must read again, which fails at first.
		c.CutOff(true)
		mustCut(t, other, mustAppend(t, other, "b"))
		mustAppend(t, other, "c")
		c.Inject(on(memstore.Follow, memstore.Fault{Outcome: memstore.FailAfter}, 20))
		c.CutOff(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		stop()
		all.Wait()
		if !slices.Equal(f.ids, []string{"a", "c"}) || f.checkpoints != 1 {
			t.Errorf("the follower has %q and %d checkpoints, want 1", f.ids, f.checkpoints)
		}
	})
}

// A thousand followers hear of a thousand entries.
func TestManyFollowers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 1000
		svc := memstore.NewService()
		var all sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		var followers []*follower
		for range many {
			followers = append(followers, follow(ctx, svc.Client("c"), &all))
		}
		synctest.Wait()
		other := svc.Client("other")
		for i := range many {
			mustAppend(t, other, fmt.Sprint(i))
		}
		synctest.Wait()
		stop()
		all.Wait()
		for _, f := range followers {
			if len(f.ids) != many {
				t.Fatalf("a follower has %d entries, want %d", len(f.ids), many)
			}
		}
	})
}
