package quorum

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/place"
	"github.com/firn-id/firn/store/quorum/internal/plan"
)

// restored makes the data of a quorum of one and restores it, for one machine.
func (w *world) restored(as string) (dir string) {
	w.t.Helper()
	from := filepath.Join(w.t.TempDir(), "from")
	alone, err := tryOne(Config{Dir: from})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := alone.Commit(w.t.Context(), put("key", "1")); err != nil {
		w.t.Fatal(err)
	}
	if err := alone.Close(); err != nil {
		w.t.Fatal(err)
	}
	dir = filepath.Join(w.t.TempDir(), "restored")
	if _, err := Restore(w.t.Context(), RestoreConfig{Backup: from, As: as, Dir: dir}); err != nil {
		w.t.Fatal(err)
	}
	return dir
}

// copied copies a data directory, without the file that says where it belongs unless it is to stay.
func (w *world) copied(dir string, withPlace bool) string {
	w.t.Helper()
	to := filepath.Join(w.t.TempDir(), "copy")
	err := os.CopyFS(to, os.DirFS(dir))
	if err == nil && !withPlace {
		err = os.Remove(filepath.Join(to, place.File))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return to
}

// refuses starts a machine and expects that it does not run, and says why.
func (w *world) refuses(self, want string) {
	w.t.Helper()
	q, err := New(w.config(self))
	if err != nil {
		w.t.Fatal(err)
	}
	if err = q.Start(); err == nil {
		w.running[self] = q
		w.until("it refuses", func() bool {
			_, err = q.Open(w.t.Context())
			return err != nil && !errors.Is(err, store.ErrUnavailable)
		})
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		w.t.Errorf("%s: %v; want %q", self, err, want)
	}
}

// A directory that was restored once, and copied to all three machines, begins one cluster, on the machine that it is
// for: not three.
func TestRestoredOnThreeMachines(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	w := newWorld(t, 3)
	a, b, c := w.machines[0], w.machines[1], w.machines[2]
	dir := w.restored(a)
	for _, address := range w.machines {
		w.dirs[address] = w.copied(dir, true)
	}
	seed := w.start(a)
	for _, address := range []string{b, c} {
		w.refuses(address, fmt.Sprintf("it belongs to the machine %s of a quorum, and this machine is %s", a, address))
	}
	w.until("it waits for both others", func() bool {
		waiting := seed.Status(t.Context()).Waiting
		return strings.Contains(waiting, b) && strings.Contains(waiting, c)
	})
	for _, address := range []string{b, c} {
		w.dirs[address] = filepath.Join(t.TempDir(), "empty")
	}
	w.start(b)
	w.until("one that answers is not enough", func() bool {
		waiting := seed.Status(t.Context()).Waiting
		return !strings.Contains(waiting, b) && strings.Contains(waiting, c)
	})
	w.start(c)
	w.voters(seed, 3)
	cluster := seed.Status(t.Context()).Cluster
	for _, q := range w.running {
		if kv, err := w.open(q).Get(t.Context(), "key"); err != nil || string(kv.Value) != "1" {
			t.Errorf("Get on %s: %+v, %v", q.selfAddress(), kv, err)
		}
		if s := q.Status(t.Context()); s.Cluster != cluster {
			t.Errorf("%s is of cluster %s, and %s of %s", q.selfAddress(), s.Cluster, a, cluster)
		}
	}
}

// Copies that do not say where they belong see each other, and none begins a cluster.
func TestRestoredCopiesSeeEachOther(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	w := newWorld(t, 3)
	dir := w.restored(w.machines[0])
	for _, address := range w.machines {
		w.dirs[address] = w.copied(dir, false)
	}
	a, b := w.start(w.machines[0]), w.start(w.machines[1])
	for _, q := range []*Quorum{a, b} {
		w.until("it refuses", func() bool {
			_, err := q.Open(t.Context())
			return err != nil &&
				strings.Contains(err.Error(), "this machine has data of a quorum of one, or of a backup, and")
		})
	}
	w.refuses(w.machines[2], "give one of them an empty directory")
	for _, q := range w.running {
		if d := q.disk.get(); d.State != plan.Alone {
			t.Errorf("%s says %v", q.selfAddress(), d)
		}
	}
}

// The directory of a machine that is well, copied to another, is refused there: by where it belongs, and without that
// by the member that it is.
func TestCopiedMachine(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	w := newWorld(t, 3)
	w.startAll()
	a, b := w.machines[0], w.machines[1]
	w.voters(w.running[a], 3)
	w.stop(a)
	w.stop(b)
	original := w.dirs[b]
	w.dirs[b] = w.copied(w.dirs[a], true)
	w.refuses(b, "belongs to the machine "+a)
	w.dirs[b] = w.copied(w.dirs[a], false)
	w.start(a)
	w.voters(w.running[a], 2)
	w.refuses(b, "this machine and "+a+" are the same member")
	w.stop(b)
	w.dirs[b] = original
	w.start(b)
	w.voters(w.running[a], 3)
}

// A second process that takes itself for a machine which lives waits, whatever its directory says.
func TestTwinOfAMachine(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	w := newWorld(t, 3)
	w.startAll()
	a := w.machines[0]
	w.voters(w.running[a], 3)
	w.stop(a)
	copied := w.copied(w.dirs[a], true)
	original := w.start(a)
	w.voters(original, 3)
	c := w.config(a)
	c.Dir, c.Listen = copied, "127.0.0.1:0" // as on a host of its own that the others do not reach
	twin, err := New(c)
	if err == nil {
		err = twin.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer twin.Close()
	w.until("the twin waits", func() bool {
		return strings.Contains(twin.Status(t.Context()).Waiting, "another process answers at "+a)
	})
	w.voters(original, 3)
}

// A cluster that begins with a restored directory waits from its first claim on, however late that is: another copy of
// it may have been used. For the same reason its counters stop: the era is another one.
func TestRestoredFloor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	self := w.machines[0]
	w.dirs[self] = w.restored(self)
	s := w.open(w.start(self))
	wantOpen(t, s)
	kv, err := s.Get(t.Context(), floor.EraKey)
	if era, parse := floor.ParseEra(kv.Value); err != nil || parse != nil || era == 0 {
		t.Errorf("the era is %d (%v, %v); want another one than before", era, err, parse)
	}
}
