package quorum

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store/internal/etcdserver"
	"github.com/firn-id/firn/store/quorum/internal/plan"
)

func TestParted(t *testing.T) {
	log := func(from, to, term uint64) (all []etcdserver.Entry) {
		for i := from; i <= to; i++ {
			all = append(all, etcdserver.Entry{Index: i, Term: term, Sum: uint32(i)})
		}
		return all
	}
	forged := log(1, 9, 2)
	forged[6].Sum++ // by two leaders of one term
	for name, c := range map[string]struct {
		mine, theirs []etcdserver.Entry
		at           uint64
	}{
		"the same":               {log(1, 9, 2), log(1, 9, 2), 0},
		"mine is shorter":        {log(1, 5, 2), log(1, 9, 2), 0},
		"mine is longer":         {log(1, 9, 2), log(1, 5, 2), 0},
		"nothing in common":      {log(1, 5, 2), log(7, 9, 3), 0},
		"another term":           {log(1, 9, 2), append(log(1, 5, 2), log(6, 7, 3)...), 6},
		"another content":        {log(1, 9, 2), forged, 7},
		"theirs begins later":    {log(1, 9, 2), log(8, 9, 3), 8},
		"nothing is known of it": {log(1, 9, 2), nil, 0},
	} {
		if at := parted(c.mine, c.theirs); at != c.at {
			t.Errorf("%s: they part at %d; want %d", name, at, c.at)
		}
	}
	if got := latest(log(1, 200, 1), 150); len(got) != compared || got[0].Index != 151-compared ||
		got[compared-1].Index != 150 {
		t.Errorf("the latest up to 150 are %v", got)
	}
}

// A majority of the voters decides whose log goes on, and not one machine, which may be the one that was set back.
func TestSide(t *testing.T) {
	same := []etcdserver.Entry{{Index: 1, Term: 1}, {Index: 2, Term: 1}}
	other := []etcdserver.Entry{{Index: 1, Term: 1}, {Index: 2, Term: 2}}
	later := []etcdserver.Entry{{Index: 9, Term: 2}}
	for name, c := range map[string]struct {
		voters int
		logs   [][]etcdserver.Entry // of the others that run
		want   side
	}{
		"alone":                              {1, nil, majority},
		"both others agree":                  {3, [][]etcdserver.Entry{same, same}, majority},
		"nothing in common":                  {3, [][]etcdserver.Entry{later, later}, majority},
		"one of three differs":               {3, [][]etcdserver.Entry{other}, unknown},
		"one differs, and one can't tell":    {3, [][]etcdserver.Entry{other, nil}, unknown},
		"one differs, and one is too new":    {3, [][]etcdserver.Entry{other, {{Index: 3, Term: 2}}}, unknown},
		"one differs, and one agrees":        {3, [][]etcdserver.Entry{other, same}, majority},
		"both differ":                        {3, [][]etcdserver.Entry{other, other}, minority},
		"two of five differ":                 {5, [][]etcdserver.Entry{other, other}, unknown},
		"two of five differ, and one agrees": {5, [][]etcdserver.Entry{other, other, same}, unknown},
		"two of five differ, and two agree":  {5, [][]etcdserver.Entry{other, other, same, same}, majority},
		"three of five differ":               {5, [][]etcdserver.Entry{other, other, other, same}, minority},
	} {
		m := meeting{voters: c.voters}
		for i, log := range c.logs {
			m.hear(fmt.Sprint(i), same, log)
		}
		if got := m.side(); got != c.want {
			t.Errorf("%s: side %d; want %d (%+v)", name, got, c.want, m)
		}
	}
}

// What is committed on a disk is read while its server writes, and is the same on all machines.
func TestCommittedEntries(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.startAll()
	s := w.open(w.running[w.machines[0]])
	w.voters(w.running[w.machines[0]], 3)
	for i := range 100 {
		w.until("it is written", func() bool { // a busy machine may be late
			_, err := s.Commit(t.Context(), put("key", fmt.Sprint(i)))
			return err == nil
		})
	}
	w.until("all have 100 entries", func() bool {
		var first []etcdserver.Entry
		for _, q := range w.running {
			entries, err := q.disk.dir.Committed()
			if err != nil || len(entries) < 100 {
				return false
			}
			if at := parted(first, entries); at > 0 {
				t.Errorf("they part at %d", at)
			}
			first = entries
		}
		return true
	})
	for address, q := range w.running {
		m, err := q.meet(t.Context(), q.server.members(), q.askAll(t.Context(), q.others()))
		if err != nil || len(m.differ) > 0 || m.agree != 2 || m.voters != 3 {
			t.Errorf("%s: %+v, %v", address, m, err)
		}
	}
}

// Two of three machines are set back and go on while the third is off. When that is back, it says what each has lost,
// and by which command that ends; and so it does.
func TestAMajorityIsSetBack(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	w := newWorld(t, 3)
	w.startAll()
	old, third := w.machines[:2], w.machines[2]
	w.open(w.running[third])
	w.voters(w.running[third], 3)
	all := append([]string{third}, old...)
	stopAll := func() {
		for _, m := range all {
			w.stop(m)
		}
	}
	stopAll()
	copies := map[string]string{}
	for _, m := range old {
		copies[m] = filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(copies[m], os.DirFS(w.dirs[m])); err != nil {
			t.Fatal(err)
		}
	}
	w.startAll()
	s := w.open(w.running[third])
	for i := range 20 {
		if _, err := s.Commit(t.Context(), put(fmt.Sprint("lost/", i), "1")); err != nil {
			t.Fatal(err)
		}
	}
	stopAll()
	for _, m := range old {
		if err := errors.Join(os.RemoveAll(w.dirs[m]), os.Rename(copies[m], w.dirs[m])); err != nil {
			t.Fatal(err)
		}
		w.start(m)
	}
	s = w.open(w.running[old[0]])
	if _, err := s.Commit(t.Context(), put("new", "1")); err != nil {
		t.Fatal(err)
	}
	q, err := New(w.config(third))
	if err != nil {
		t.Fatal(err)
	}
	var cutOff atomic.Bool
	cutOff.Store(true)
	q.asker = newAsker(func(ctx context.Context, address, protocol string) (*tls.Conn, error) {
		if address == old[1] && cutOff.Load() {
			return nil, errors.New("cut off")
		}
		return q.connectFor(ctx, address, protocol)
	})
	if err := q.Start(); err != nil {
		t.Fatal(err)
	}
	w.running[third] = q
	w.until("the third waits until the second answers", func() bool {
		waiting := q.Status(t.Context()).Waiting
		return strings.Contains(waiting, "that of "+old[0]+" differ from entry") &&
			strings.Contains(waiting, "waiting for "+old[1]+" (cut off)")
	})
	cutOff.Store(false)
	var said error
	w.until("the third says that it has another log", func() bool {
		_, said = w.running[third].Open(t.Context())
		var differs *partedError
		return errors.As(said, &differs)
	})
	for _, want := range append(old, "differ from entry", "mv "+w.dirs[third], "firn quorum restore "+w.dirs[third]) {
		if !strings.Contains(said.Error(), want) {
			t.Errorf("%v; want %q in it", said, want)
		}
	}
	w.stop(third)
	if err := os.Rename(w.dirs[third], w.dirs[third]+".old"); err != nil {
		t.Fatal(err)
	}
	w.start(third)
	w.voters(w.running[old[0]], 3)
	if kvs, err := w.open(w.running[third]).List(t.Context(), "new"); err != nil || len(kvs) != 1 {
		t.Errorf("the third has %v, %v", kvs, err)
	}
}

// A server that learns that its machine has lost what it had confirmed leaves the data aside; the next process gets a
// copy.
func TestConfirmedAndLost(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	w := newWorld(t, 3)
	w.startAll()
	a, b := w.machines[0], w.machines[1]
	w.open(w.running[a])
	w.open(w.running[b])
	w.voters(w.running[a], 3)
	c := w.config(b)
	var told error
	c.Fatal = func(err error) { told = err }
	w.stop(b)
	q := w.startWith(c)
	w.open(q)
	q.fatal(&etcdserver.DataError{Dir: w.dirs[b], Err: errors.New("set back"), Do: etcdserver.CopyIt})
	if told == nil || !strings.Contains(told.Error(), "start again, to get a copy from the other machines") {
		t.Errorf("it says %v", told)
	}
	if is := q.disk.get().State; is != plan.Lost {
		t.Errorf("the disk says %v", is)
	}
	w.stop(b)
	w.open(w.start(b))
	w.voters(w.running[a], 3)
	if _, err := os.Stat(filepath.Join(w.dirs[b], "set-aside", "wal")); err != nil {
		t.Errorf("the former data is not there: %v", err)
	}
}

// A server stops by itself while its log has entries that are not committed. The machine then knows where its log ends,
// as others may, to whom it has confirmed them: else it would take the data for an old copy. Once its server runs
// again, it does not say that it keeps those entries, which another leader may replace.
func TestUncommittedEnd(t *testing.T) { // not parallel: etcd tells of the server that started last
	testenv.Slow(t)
	w := newWorld(t, 3)
	w.startAll()
	a, b, c := w.machines[0], w.machines[1], w.machines[2]
	q := w.running[a]
	w.open(q)
	w.voters(q, 3)
	w.stop(a)
	q = w.start(a)
	w.voters(q, 3)
	s := q.server
	w.until("a leads", func() bool {
		for _, other := range w.running {
			if o := other.server; o != nil && o.Leader() == o.MemberID() && o != s {
				_ = o.MoveLeader(t.Context(), uint64(o.MemberID()), uint64(s.MemberID())) // else it is tried again
			}
		}
		return s.Leader() == s.MemberID()
	})
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	defer writers.Wait()
	defer cancel()
	for i := range 20 {
		writers.Go(func() {
			for ctx.Err() == nil {
				once, done := context.WithTimeout(ctx, time.Second)
				// without a leader it fails
				_, _ = s.Put(once, &etcdserverpb.PutRequest{Key: fmt.Append(nil, i), Value: []byte("1")})
				done()
			}
		})
	}
	for _, other := range []string{b, c} {
		w.running[other].Kill()
		w.stop(other)
	}
	var last, applied uint64
	w.until("the log has entries that are not committed", func() bool {
		applied = s.AppliedIndex()
		last = s.Confirmed()[uint64(s.MemberID())]
		return s.Leader() == 0 || last > applied && len(w.running) == 1
	})
	cancel()
	s.HardStop()
	w.until("its server has stopped", func() bool {
		return strings.Contains(q.Status(t.Context()).Waiting, "must say first")
	})
	if last = index(t, w.copied(w.dirs[a], false)); last <= s.AppliedIndex() {
		t.Fatalf("the log ends at %d, and %d are applied: this test shows nothing", last, s.AppliedIndex())
	}
	if got := q.machine().Index; got != last {
		t.Errorf("it says that its log ends at entry %d; want %d", got, last)
	}
	w.dirs[b] = filepath.Join(t.TempDir(), "empty")
	w.start(b)
	w.until("the server runs again, without a majority", func() bool {
		return strings.Contains(q.Status(t.Context()).Waiting, "has not found a majority")
	})
	if got := q.machine().Index; got >= last {
		t.Errorf("it says that it keeps entry %d, of which none after %d is committed", got, applied)
	}
}
