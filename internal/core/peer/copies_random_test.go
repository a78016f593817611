package peer

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store/memstore"
)

// family is a world in which members are copied and set back at any moment.
type family struct {
	*world
	*rand.Rand
	living    []*kin
	snapshots []*image
	backups   []memstore.Backup
	loses     bool // the store is set back
	given     map[firn.ID]*kin
	twice     int
	told      []string // what happened, for people
}

// kin is a member, and what it is a copy of.
type kin struct {
	*node
	of *image // nil: of nobody
}

// image is a snapshot of a member, and the instant from which on nothing may come twice that a copy and its original
// make: until then the original had reserved, or had a write under way.
type image struct {
	*snapshot
	of    *kin
	until time.Time
}

// until returns the instant from which on an ID may not be made by both.
func (k *kin) until(other *kin) (until time.Time) {
	line := map[*kin]bool{k: true}
	for a := k; a.of != nil; a = a.of.of {
		line[a.of.of] = true
	}
	last := other // of the ancestors that both have, the latest
	for ; !line[last]; last = last.of.of {
		if last.of == nil {
			return time.Time{} // they are not of one line
		}
		until = later(until, last.of.until)
	}
	for a := k; a != last; a = a.of.of {
		until = later(until, a.of.until)
	}
	return until
}

func (f *family) say(format string, args ...any) {
	f.told = append(f.told, fmt.Sprintf("%v: ", time.Since(epoch))+fmt.Sprintf(format, args...))
}

func (f *family) any() *kin { return f.living[f.IntN(len(f.living))] }

// take has everybody make IDs for so long.
func (f *family) take(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		for _, k := range f.living {
			id, err := k.Next(f.t.Context())
			if err != nil {
				if !errors.Is(err, ErrNotReady) {
					f.t.Errorf("%s: %v", k.name, err)
				}
				continue
			}
			other, before := f.given[id]
			at, _ := layout.Time(id)
			switch {
			case !before:
				f.given[id] = k
			case k == other || !at.Before(other.until(k)):
				f.t.Errorf("%s gave %d of %v, which %s gave before", k.name, id, at, other.name)
			default:
				f.twice++
			}
		}
	}
}

// snapshot keeps a snapshot of somebody who has joined, and is not about to leave what it has to a copy.
func (f *family) snapshot(k *kin) *image {
	synctest.Wait()
	if _, l, _ := k.mem.Load().look(); l == nil || l.copied.Load() {
		return nil
	}
	i := &image{snapshot: k.snapshot(), of: k}
	now, _ := k.wall.read()
	i.until = later(i.reserved, time.Unix(0, now).Add(window+time.Second))
	f.snapshots = append(f.snapshots, i)
	return i
}

// resume has a copy go on. Its clock is right, or as it was.
func (f *family) resume(i *image) {
	off := time.Duration(i.of.wall.off.Load())
	if f.IntN(3) == 0 {
		off += time.Until(i.at)
	}
	k := &kin{i.resume(fmt.Sprint(i.of.name, ".", len(f.told)), off), i}
	f.say("%s goes on from %s of %v, with its clock off by %v", k.name, i.of.name, i.at.Sub(epoch), off)
	f.living = append(f.living, k)
}

func (f *family) event() {
	k := f.any()
	switch f.IntN(9) {
	case 0:
		f.say("a snapshot of %s", k.name)
		f.snapshot(k)
	case 1: // a clone, at once
		if i := f.snapshot(k); i != nil && len(f.living) < 8 {
			f.resume(i)
		}
	case 2: // a snapshot goes on; its original does, too, or it has ended: then it is set back
		if len(f.snapshots) == 0 || len(f.living) >= 8 {
			return
		}
		i := f.snapshots[f.IntN(len(f.snapshots))]
		if f.IntN(2) == 0 {
			for j, k := range f.living {
				if k == i.of && len(f.living) > 1 {
					f.say("%s ends", k.name)
					k.client.CutOff(true)
					f.living = append(f.living[:j:j], f.living[j+1:]...)
					break
				}
			}
		}
		f.resume(i)
	case 3:
		f.say("%s is cut off", k.name)
		k.client.CutOff(true)
	case 4:
		f.say("%s is connected", k.name)
		k.client.CutOff(false)
	case 5:
		if _, l, _ := k.mem.Load().look(); l != nil {
			f.say("the session of %s ends", k.name)
			f.service.Expire(l.session)
		}
	case 6:
		f.say("calls of %s fail at times", k.name)
		seed := f.Uint64()
		k.client.Inject(func(c memstore.Call) memstore.Fault {
			r := rand.New(rand.NewPCG(seed, uint64(time.Now().UnixNano())))
			outcome := memstore.Outcome(max(0, r.IntN(8)-4))
			return memstore.Fault{Outcome: outcome, Delay: time.Duration(r.Int64N(int64(time.Second)))}
		})
	case 7:
		f.say("calls of %s pass", k.name)
		k.client.Inject(nil)
	case 8:
		if !f.loses {
			return
		}
		if len(f.backups) == 0 || f.IntN(3) == 0 {
			f.say("a backup")
			f.backups = append(f.backups, f.service.Backup())
		} else if f.IntN(3) == 0 {
			f.say("the store is set back")
			f.service.RollBack(f.backups[f.IntN(len(f.backups))], 0)
		}
	}
}

// calm has all that is wrong end, and looks at who is there then.
func (f *family) calm() {
	f.say("calm")
	for _, k := range f.living {
		k.wall.off.Store(0)
		k.client.Inject(nil)
		k.client.CutOff(false)
	}
	f.take(6 * window)
	members, nodes := map[string]*kin{}, map[int64]*kin{}
	for _, k := range f.living {
		if err := k.Ready(); err != nil {
			f.t.Errorf("%s is not ready: %v", k.name, err)
		}
		if other := members[k.id()]; other != nil {
			f.t.Errorf("%s and %s are both %s", other.name, k.name, k.id())
		}
		members[k.id()] = k
		node, _ := k.NodeID()
		if other := nodes[node]; other != nil {
			f.t.Errorf("%s and %s have both the node ID %d", other.name, k.name, node)
		}
		nodes[node] = k
	}
}

// Members are copied and set back at any moment, of others and of copies, while calls fail, sessions end, and the store
// is set back. What comes twice was reserved, or asked for, when a copy was made; all have places of their own at the
// end. Each seed is another world; FIRN_SEED=N runs one.
func TestCopiesAtAnyMoment(t *testing.T) {
	copiesAtAnyMoment(t, 20)
}

func TestCopiesAtAnyMomentFurther(t *testing.T) {
	testenv.Exploration(t)
	copiesAtAnyMoment(t, 500)
}

func copiesAtAnyMoment(t *testing.T, worlds uint64) {
	first, twice, log := uint64(1), 0, slog.New(slog.DiscardHandler)
	if text := os.Getenv("FIRN_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, worlds, log = n, 1, slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	for seed := first; seed < first+worlds; seed++ {
		inBubble(t, func(t *testing.T, w *world) {
			f := &family{world: w, Rand: rand.New(rand.NewPCG(seed, 0)), given: map[firn.ID]*kin{}}
			f.loses = f.IntN(4) == 0
			for i := range 1 + f.IntN(3) {
				f.living = append(f.living, &kin{node: w.start(fmt.Sprint("n", i), unchecked, func(c *setup) {
					c.Logger = log.With("of", c.Owner)
				})})
			}
			f.take(time.Second)
			for range 5 + f.IntN(20) {
				f.take(time.Duration(f.Int64N(int64(window) * 3 / 4)))
				f.event()
			}
			f.calm()
			twice += f.twice
			if t.Failed() {
				t.Logf("seed %d", seed)
				for _, line := range f.told {
					t.Log(line)
				}
			}
		})
		if t.Failed() {
			return
		}
	}
	if twice == 0 && worlds > 1 {
		t.Error("nothing came twice: nobody was copied")
	}
}
