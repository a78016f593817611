package peer

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// recorded are the minutes that were written, each with when, and how many reads that took.
type recorded struct {
	mu     sync.Mutex
	writes []time.Time
	gets   int
}

// record has a world note what its members write of history.
func (w *world) record() *recorded {
	r := new(recorded)
	w.service.Inject(func(c memstore.Call) memstore.Fault {
		r.mu.Lock()
		defer r.mu.Unlock()
		if c.Op == memstore.Commit && strings.HasPrefix(c.Txn.Then[0].Key, history) {
			r.writes = append(r.writes, time.Now())
		}
		if c.Op == memstore.Get && strings.HasPrefix(c.Key, history) {
			r.gets++
		}
		return memstore.Fault{}
	})
	return r
}

// take returns what was recorded, and forgets it.
func (r *recorded) take() (writes []time.Time, gets int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	writes, gets = r.writes, r.gets
	r.writes, r.gets = nil, 0
	return writes, gets
}

// Each minute is written once in the whole cluster, and all members read the same hour.
func TestOneMemberWritesEachMinute(t *testing.T) {
	for _, size := range []int{1, 2, 7} {
		inBubble(t, func(t *testing.T, w *world) {
			var nodes []*node
			for i := range size {
				n := w.start(fmt.Sprint("n", i), func(c *setup) {
					c.Vitals = func() Vitals { return Vitals{Ready: i > 0, Rate: 10.04} }
				})
				n.ready(time.Minute)
				nodes = append(nodes, n)
			}
			time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(95 * time.Second)))
			r := w.record()
			const minutes = 70
			time.Sleep(minutes * time.Minute)
			if writes, gets := r.take(); len(writes) != minutes || gets != minutes*min(size, turns) {
				t.Errorf("of %d members: %d writes and %d reads of a key in %d minutes", size,
					len(writes), gets, minutes)
			}
			for _, n := range nodes {
				hour, err := n.mem.Load().History(t.Context())
				if err != nil || len(hour) != kept {
					t.Fatalf("%s reads %d minutes, %v", n.name, len(hour), err)
				}
				for i, m := range hour {
					if i > 0 && m.At.Sub(hour[i-1].At) != time.Minute {
						t.Fatalf("%v follows %v", m.At, hour[i-1].At)
					}
					if m.Members != size || m.Ready != size-1 || m.Rate != 10*float64(size) || len(m.Nodes) != size {
						t.Fatalf("of %d members: %+v", size, m)
					}
					for k, one := range m.Nodes {
						if one.Offset.Abs() > time.Second {
							t.Errorf("the clock of %s is %v off, and all are one", one.Owner, one.Offset)
						}
						one.Offset = 0
						if want := (NodeMinute{fmt.Sprint("n", k), k > 0, 10, 0}); one != want {
							t.Fatalf("have %+v, want %+v", one, want)
						}
					}
				}
				if last := hour[len(hour)-1].At; time.Since(last) > time.Minute {
					t.Errorf("the last minute is %v", last)
				}
			}
		})
	}
}

// Where the member whose turn it is does not write, the next one does, 10 s later; a minute after which a fourth is
// dead, too, is left out.
func TestTheNextMemberWritesTheMinute(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var nodes []*node
		for i := range 6 {
			n := w.start(fmt.Sprint("n", i))
			n.ready(time.Minute)
			nodes = append(nodes, n)
		}
		for dead := range turns + 1 {
			at := time.Now().Truncate(time.Minute).Add(3 * time.Minute)
			time.Sleep(time.Until(at.Add(-time.Second)))
			for _, n := range nodes {
				turn := n.mem.Load().turn(at)
				n.client.CutOff(turn >= 0 && turn < dead)
			}
			r := w.record()
			time.Sleep(55 * time.Second)
			writes, _ := r.take()
			switch {
			case dead == turns && len(writes) > 0:
				t.Errorf("with %d dead: written at %v", dead, writes)
			case dead < turns && (len(writes) != 1 || writes[0].Sub(at) != time.Duration(dead)*turnEvery):
				t.Errorf("with %d dead: written at %v, want one %d turns after %v", dead, writes, dead, at)
			}
			for _, n := range nodes {
				n.client.CutOff(false)
			}
			time.Sleep(5 * time.Minute)
		}
	})
}

// A store that loses data loses minutes, and nothing else comes of it. Foreign values and minutes that are yet to come
// are no minutes, and are written over.
func TestHistoryOfAStoreThatLosesData(t *testing.T) {
	for name, loss := range losses {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.two()
				time.Sleep(20 * time.Minute)
				lose := loss(w)
				time.Sleep(5 * time.Minute)
				lose()
				time.Sleep(5 * time.Minute)
				for _, n := range []*node{a, b} {
					n.ready(time.Second)
					hour, err := n.mem.Load().History(t.Context())
					if err != nil || len(hour) == 0 || time.Since(hour[len(hour)-1].At) > time.Minute {
						t.Fatalf("%s reads %v, %v", n.name, hour, err)
					}
					if name == "wiped" && len(hour) > 5 {
						t.Errorf("%s reads %d minutes", n.name, len(hour))
					}
				}
			})
		})
	}
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		now := time.Now().Truncate(time.Minute)
		for i := range kept {
			value := "foreign"
			if i%2 == 0 {
				value = fmt.Sprintf(`{"at":%q}`, now.Add(time.Duration(10+i)*time.Hour).Format(time.RFC3339))
			}
			put(t, w, store.Put(fmt.Sprint(history, i), []byte(value)))
		}
		m := a.mem.Load()
		if hour, err := m.History(t.Context()); err != nil || len(hour) > 0 {
			t.Errorf("it reads %v, %v", hour, err)
		}
		time.Sleep(kept*time.Minute + turnEvery) // the last one is written by then
		if hour, err := m.History(t.Context()); err != nil || len(hour) != kept {
			t.Errorf("it reads %d minutes, %v", len(hour), err)
		}
	})
}

// A minute of 1024 members is small enough for a value of any store, and so is one of any number: of many it tells no
// more than the sums.
func TestAMinuteOfThousands(t *testing.T) {
	for size, most := range map[int]int{1024: 128 << 10, mostNodes: store.MaxBytes / 2, 10_000: 200} {
		pulses := map[string]Pulse{}
		for i := range size {
			pulses[fmt.Sprint(i)] = Pulse{
				Owner:  fmt.Sprintf("ids-%04d.eu-central-1.example.org", i),
				Vitals: Vitals{Ready: true, Rate: 1234.56, Offset: -12345678},
			}
		}
		minute := minuteOf(time.Now(), pulses)
		value, err := json.Marshal(minute)
		if err != nil || len(value) > most || minute.Ready != size || minute.Members != size {
			t.Errorf("of %d members, %d ready: it has %d bytes, %v; want at most %d", minute.Members, minute.Ready,
				len(value), err, most)
		}
	}
}

// A member knows when the store last answered a write of its vital signs.
func TestAnswered(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		time.Sleep(window)
		if ago := time.Since(a.mem.Load().Answered()); ago < 0 || ago > window/2 {
			t.Errorf("it answered %v ago", ago)
		}
		a.client.CutOff(true)
		cut := time.Now()
		time.Sleep(2 * window)
		if at := a.mem.Load().Answered(); at.IsZero() || at.After(cut) {
			t.Errorf("it answered at %v, after it was cut off at %v", at, cut)
		}
	})
}
