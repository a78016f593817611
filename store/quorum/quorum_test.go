package quorum

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.uber.org/goleak"

	"github.com/firn-id/firn/internal/base/clusterid"
	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/internal/test/certtest"
	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/etcdserver"
	"github.com/firn-id/firn/store/quorum/internal/keyring"
	"github.com/firn-id/firn/store/quorum/internal/plan"
)

const patience = 60 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a quorum of machines in this process.
type world struct {
	t        *testing.T
	key      string
	machines []string
	dirs     map[string]string
	running  map[string]*Quorum
}

func newWorld(t *testing.T, machines int) *world {
	t.Helper()
	w := &world{t: t, key: filepath.Join(t.TempDir(), "key"), dirs: map[string]string{}, running: map[string]*Quorum{}}
	if err := os.WriteFile(w.key, []byte(keyring.NewKey(time.Now()).String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range machines {
		w.add()
	}
	t.Cleanup(func() {
		for _, q := range w.running {
			q.Close()
		}
	})
	return w
}

// add adds a machine that is not started yet.
func (w *world) add() string {
	address := proxytest.FixedAddress(w.t)
	w.machines = append(w.machines, address)
	w.dirs[address] = filepath.Join(w.t.TempDir(), "data")
	return address
}

func (w *world) config(self string) Config {
	c := Config{
		Machines: append([]string(nil), w.machines...), Self: self, KeyFile: w.key, Dir: w.dirs[self],
		Version: "test", Node: func() string { return "node-" + self },
	}
	if testing.Verbose() {
		c.Logger = slog.New(slog.NewTextHandler(w.t.Output(), nil)).With("at", self)
	}
	return c
}

func (w *world) start(self string) *Quorum {
	w.t.Helper()
	return w.startWith(w.config(self))
}

// startAll starts all machines.
func (w *world) startAll() {
	w.t.Helper()
	for _, address := range w.machines {
		w.start(address)
	}
}

func (w *world) startWith(c Config) *Quorum {
	w.t.Helper()
	q, err := New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := q.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.running[c.Self] = q
	return q
}

func (w *world) stop(self string) {
	w.running[self].Close()
	delete(w.running, self)
}

// open waits until the store can be used.
func (w *world) open(q *Quorum) Store {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for {
		s, err := q.Open(ctx)
		if err == nil {
			w.t.Cleanup(func() { _ = s.Close() })
			return s
		}
		if !errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
			w.t.Fatalf("Open: %v\nstatus: %+v", err, q.Status(w.t.Context()))
		}
	}
}

// until waits until a condition holds.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("not after %v: %s; %+v", patience, what, w.statuses())
		}
	}
}

func (w *world) statuses() (all string) {
	for self, q := range w.running {
		all += fmt.Sprintf("\n%s: %+v", self, q.Status(w.t.Context()))
	}
	return all
}

func put(key, value string) store.Txn {
	return store.Txn{Then: []store.Op{store.Put(key, []byte(value))}}
}

// voters waits until a quorum has that many voters that answer, with the names of their nodes.
func (w *world) voters(q *Quorum, want int) {
	w.t.Helper()
	w.until(fmt.Sprintf("%d voters", want), func() bool {
		n := 0
		for _, m := range q.Status(w.t.Context()).Machines {
			if m.Role == Voter && m.Err == "" && m.Doing == "" && m.Node == "node-"+m.Address {
				n++
			}
		}
		return n == want
	})
}

// Three machines form a cluster, in any order; each sees what another writes. One that was emptied comes back by
// itself.
func TestThreeMachines(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	first := w.start(w.machines[1])
	if _, err := first.Open(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Open of one of three: %v", err)
	}
	third := w.start(w.machines[2])
	began := time.Now()
	second := w.start(w.machines[0])
	for _, q := range []*Quorum{first, second, third} {
		s := w.open(q)
		if _, err := s.Commit(t.Context(), put(q.selfAddress(), "1")); err != nil {
			t.Error(err)
		}
	}
	t.Logf("ready after %v", time.Since(began))
	s := w.open(first)
	if s.Traits().Shared {
		t.Error("it says that it is shared; its first member would wait")
	}
	if kvs, err := s.List(t.Context(), "127"); err != nil || len(kvs) != 3 {
		t.Errorf("List = %v, %v", kvs, err)
	}
	emptied := w.machines[0]
	w.stop(emptied)
	if err := os.RemoveAll(w.dirs[emptied]); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	again := w.start(emptied)
	if kvs, err := w.open(again).List(t.Context(), "127"); err != nil || len(kvs) != 3 {
		t.Errorf("List = %v, %v", kvs, err)
	}
	t.Logf("back after %v", time.Since(began))
	w.voters(first, 3)
}

// A machine that is lost for good is replaced by another one, and so is one that lives; then these two are removed, and
// go on as clients.
func TestReplaceAndRemove(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	w := newWorld(t, 3)
	w.startAll()
	a, b, c := w.machines[0], w.machines[1], w.machines[2]
	q := w.running[a]
	if _, err := w.open(q).Commit(t.Context(), put("key", "1")); err != nil {
		t.Fatal(err)
	}
	w.voters(q, 3)
	w.stop(b)
	w.machines = []string{a, c}
	d := w.add()
	if err := q.Replace(t.Context(), b, d); err != nil {
		t.Fatal(err)
	}
	if kv, err := w.open(w.start(d)).Get(t.Context(), "key"); err != nil || string(kv.Value) != "1" {
		t.Errorf("Get on the new machine: %+v, %v", kv, err)
	}
	w.voters(q, 3)
	w.machines = []string{a, d}
	e := w.add()
	s := w.open(w.start(e)) // it is a client until it takes the place
	session, err := s.OpenSession(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Replace(t.Context(), c, e); err != nil {
		t.Fatal(err)
	}
	w.until("the new machine votes", func() bool {
		return slices.ContainsFunc(q.Status(t.Context()).Machines, func(m Machine) bool {
			return m.Address == e && m.Role == Voter && m.Doing == ""
		})
	})
	w.voters(q, 3)
	if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.PutEphemeral("e", nil, session)}}); err != nil {
		t.Errorf("a machine has ended its own session when it got a server: %v", err)
	}
	if err := q.Remove(t.Context(), d, e); err != nil {
		t.Fatal(err)
	}
	w.voters(q, 1)
	w.until("one member", func() bool { return len(q.report().Members) == 1 })
	for _, q := range w.running {
		if kv, err := w.open(q).Get(t.Context(), "key"); err != nil || string(kv.Value) != "1" {
			t.Errorf("Get on %s: %+v, %v", q.selfAddress(), kv, err)
		}
	}
}

// The end of a machine that is killed hands nothing over, and its clients reach nothing more; the others go on, and it
// comes back to its data.
func TestKill(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	w := newWorld(t, 3)
	w.startAll()
	first := w.running[w.machines[0]]
	s := w.open(first)
	session, err := s.OpenSession(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(),
		store.Txn{Then: []store.Op{store.PutEphemeral("mine", []byte("1"), session)}}); err != nil {
		t.Fatal(err)
	}
	w.voters(first, 3)
	first.Kill()
	if _, err := s.Commit(t.Context(), put("key", "1")); err == nil {
		t.Error("a client of a machine that was killed commits")
	}
	if err := session.Close(t.Context()); err == nil {
		t.Error("a client of a machine that was killed ends its session")
	}
	second := w.open(w.running[w.machines[1]])
	w.until("the others have a leader", func() bool {
		_, err := second.Commit(t.Context(), put("key", "2"))
		return err == nil
	})
	if kv, err := second.Get(t.Context(), "mine"); err != nil || kv.Version == 0 {
		t.Errorf("what the session holds: %+v, %v", kv, err)
	}
	if kv, err := w.open(w.start(w.machines[0])).Get(t.Context(), "key"); err != nil || string(kv.Value) != "2" {
		t.Errorf("Get on the machine that is back: %+v, %v", kv, err)
	}
}

// The last machine of several may go on as a quorum of one, and becomes the first of several again; the others may not.
func TestTheLastOneGoesOnAlone(t *testing.T) {
	testenv.Slow(t)
	testenv.Slow(t)
	t.Parallel()
	w := newWorld(t, 3)
	w.startAll()
	a, b, c := w.machines[0], w.machines[1], w.machines[2]
	q := w.running[a]
	if _, err := w.open(q).Commit(t.Context(), put("key", "1")); err != nil {
		t.Fatal(err)
	}
	w.voters(q, 3)
	w.until("all know who the machines are", func() bool {
		return len(w.running[a].others()) == 2 && CheckOne(w.dirs[a]) != nil
	})
	if err := q.Remove(t.Context(), b, c); err != nil {
		t.Fatal(err)
	}
	w.voters(q, 1)
	w.until("the others know that they are removed", func() bool {
		return w.running[b].disk.get().State == plan.Removed && w.running[c].disk.get().State == plan.Removed
	})
	for _, address := range []string{a, b, c} {
		w.stop(address)
		if err := CheckOne(w.dirs[address]); (err == nil) != (address == a) {
			t.Errorf("of %s, when only %s is left: %v", address, a, err)
		}
	}
	alone, err := tryOne(Config{Dir: w.dirs[a]})
	if err != nil {
		t.Fatal(err)
	}
	if kv, err := alone.Get(t.Context(), "key"); err != nil || string(kv.Value) != "1" {
		t.Errorf("Get alone: %+v, %v", kv, err)
	}
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	w.machines = []string{a}
	if kv, err := w.open(w.start(a)).Get(t.Context(), "key"); err != nil || string(kv.Value) != "1" {
		t.Errorf("Get in a quorum again: %+v, %v", kv, err)
	}
}

// A quorum of one becomes the first of three.
func TestGrow(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	w := newWorld(t, 3)
	first := w.machines[1]
	alone, err := tryOne(Config{Dir: w.dirs[first]})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := alone.Commit(t.Context(), put("key", "1")); err != nil {
		t.Fatal(err)
	}
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	w.startAll()
	for _, q := range w.running {
		if kv, err := w.open(q).Get(t.Context(), "key"); err != nil || string(kv.Value) != "1" {
			t.Errorf("Get on %s: %+v, %v", q.selfAddress(), kv, err)
		}
		w.voters(q, 3)
	}
}

// What was backed up is there after a restore, as a new cluster with a floor.
func TestBackupAndRestore(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	w := newWorld(t, 3)
	w.startAll()
	q := w.running[w.machines[0]]
	for _, key := range []string{"key", clusterid.Key} {
		if _, err := w.open(q).Commit(t.Context(), put(key, "1")); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "backup")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(q.Backup(t.Context(), f), f.Close()); err != nil {
		t.Fatal(err)
	}
	restore := RestoreConfig{
		Backup: file, As: w.machines[2], Dir: filepath.Join(t.TempDir(), "restored"),
		KeyFile: w.key,
	}
	if _, err := Restore(t.Context(), restore); err == nil || !strings.Contains(err.Error(), "is alive") {
		t.Errorf("Restore while the former cluster is alive: %v", err)
	}
	for _, address := range w.machines {
		w.stop(address)
		w.dirs[address] = filepath.Join(t.TempDir(), "data")
	}
	done, err := Restore(t.Context(), restore)
	if err != nil || len(done.Silent) != 3 {
		t.Fatalf("Restore = %+v, %v", done, err)
	}
	w.dirs[w.machines[2]] = restore.Dir
	w.startAll()
	for _, q := range w.running {
		s := w.open(q)
		if kv, err := s.Get(t.Context(), "key"); err != nil || string(kv.Value) != "1" {
			t.Errorf("Get on %s: %+v, %v", q.selfAddress(), kv, err)
		}
		wantOpen(t, s)
		if kv, err := s.Get(t.Context(), clusterid.Key); err != nil || kv.Version != 0 {
			t.Errorf("the cluster has the ID %q of the former one, as another restored from the same backup would: %v",
				kv.Value, err)
		}
		w.voters(q, 3)
	}
}

// Data that is damaged is like data that is gone: the machine gets a copy from the others, and keeps what it had.
func TestDamagedData(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	w := newWorld(t, 3)
	w.startAll()
	a, b := w.machines[0], w.machines[1]
	if _, err := w.open(w.running[a]).Commit(t.Context(), put("key", "1")); err != nil {
		t.Fatal(err)
	}
	w.voters(w.running[a], 3)
	w.until("b knows the others", func() bool { return len(w.running[b].disk.get().Known) == 3 })
	w.stop(b)
	if err := os.Truncate(filepath.Join(w.dirs[b], "member/snap/db"), 1000); err != nil {
		t.Fatal(err)
	}
	if kv, err := w.open(w.start(b)).Get(t.Context(), "key"); err != nil || string(kv.Value) != "1" {
		t.Errorf("Get: %+v, %v", kv, err)
	}
	w.voters(w.running[a], 3)
	if info, err := os.Stat(filepath.Join(w.dirs[b], "set-aside/snap/db")); err != nil || info.Size() != 1000 {
		t.Errorf("the damaged database is not there: %v", err)
	}
}

// A copy of the data from before is noticed, and replaced.
func TestSetBack(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	w := newWorld(t, 3)
	w.startAll()
	a, b := w.machines[0], w.machines[1]
	s := w.open(w.running[a])
	w.voters(w.running[a], 3)
	w.stop(b)
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(w.dirs[b])); err != nil {
		t.Fatal(err)
	}
	w.start(b)
	w.voters(w.running[a], 3)
	for i := range 100 {
		if _, err := s.Commit(t.Context(), put(fmt.Sprintf("key/%d", i), "1")); err != nil {
			t.Fatal(err)
		}
	}
	before := index(t, copied)
	w.until("a has seen that b has kept more", func() bool { return w.running[a].disk.get().Saw[b] > before })
	w.stop(b)
	if err := errors.Join(os.RemoveAll(w.dirs[b]), os.Rename(copied, w.dirs[b])); err != nil {
		t.Fatal(err)
	}
	if kvs, err := w.open(w.start(b)).List(t.Context(), "key/"); err != nil || len(kvs) != 100 {
		t.Errorf("List: %d keys, %v", len(kvs), err)
	}
	w.voters(w.running[a], 3)
	if _, err := os.Stat(filepath.Join(w.dirs[b], "set-aside")); err != nil {
		t.Errorf("the copy was used: %v", err)
	}
}

// index returns the index of the last entry in a data directory.
func index(t *testing.T, path string) uint64 {
	t.Helper()
	dir, err := etcdserver.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	last, err := dir.Check()
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// Two emptied machines of which the third is down don't form a second cluster, and all three emptied ones do.
func TestNeverTwoClusters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.startAll()
	for _, q := range w.running {
		w.open(q)
	}
	a, b, c := w.machines[0], w.machines[1], w.machines[2]
	former := w.running[a].Status(t.Context()).Cluster
	for _, address := range w.machines {
		w.stop(address)
	}
	for _, address := range []string{b, c} {
		w.dirs[address] = filepath.Join(t.TempDir(), "data")
		w.start(address)
	}
	waits := func(q *Quorum, what string) func() bool {
		return func() bool { return strings.Contains(q.Status(t.Context()).Waiting, what) }
	}
	for _, address := range []string{b, c} {
		w.until("it waits for "+a, waits(w.running[address], a))
		if _, err := w.running[address].Open(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Open: %v", err)
		}
	}
	w.start(a)
	for _, address := range []string{b, c} {
		w.until("it waits for the former cluster", waits(w.running[address], former))
	}
	if got := w.running[a].Status(t.Context()); got.Majority || got.Cluster != former {
		t.Errorf("the one that has its data: %+v", got)
	}
	w.stop(a)
	w.dirs[a] = filepath.Join(t.TempDir(), "data")
	w.start(a)
	for _, q := range w.running {
		w.open(q)
		if now := q.Status(t.Context()).Cluster; now == former || now == "" {
			t.Errorf("the new cluster is %q, after %q", now, former)
		}
	}
}

// A cluster that is formed long after its key was made waits before its first ID: nobody knows whether there was one.
func TestFoundingFloor(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]bool{
		0: false, 50 * time.Minute: false, 70 * time.Minute: true,
		-70 * time.Minute: true,
	} {
		w := newWorld(t, 1)
		made := time.Now().Add(-age)
		if err := os.WriteFile(w.key, []byte(keyring.NewKey(made).String()+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := w.open(w.start(w.machines[0]))
		kv, err := s.Get(t.Context(), floor.Key)
		if err != nil || (kv.Version > 0) != want {
			t.Errorf("of a key made %v ago: floor %s, %v; want one: %v", age, kv.Value, err, want)
		}
		if want {
			wantOpen(t, s)
		}
	}
}

// wantOpen checks that nobody may claim a node ID before a member has said from when on.
func wantOpen(t *testing.T, s store.Store) {
	t.Helper()
	kv, err := s.Get(t.Context(), floor.Key)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := floor.Parse(kv.Value); err != nil || !f.Open || f.Why == "" || f.By == "" {
		t.Errorf("the floor is %q, %v; want one that is open", kv.Value, err)
	}
}

// Without a key, only this user's processes on this machine form a quorum. Wrong settings are named.
func TestNewErrors(t *testing.T) {
	t.Parallel()
	three := []string{"ids-1:7420", "ids-2:7420", "ids-3:7420"}
	for want, c := range map[string]Config{
		"need a key":              {Machines: three},
		"is none of the machines": {Machines: three, Self: "ids-4:7420"},
		"give one of the two":     {Machines: three, KeyFile: "key", CAFile: "ca"},
		"only ca is given":        {Machines: three, CAFile: "ca"},
		"2 machines are named":    {Machines: three[:2]},
		"no such file":            {Machines: three, KeyFile: filepath.Join(t.TempDir(), "nothing")},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want an error that says %q", c, err, want)
		}
	}
}

// The alarm that a database is full, after which etcd writes nothing any more, does not last, even if a machine is
// down.
func TestAlarm(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	w := newWorld(t, 3)
	w.startAll()
	a, b := w.machines[0], w.machines[1]
	s := w.open(w.running[a])
	w.voters(w.running[a], 3)
	w.stop(b)
	etcd := w.running[a].server
	_, err := etcd.Alarm(t.Context(), &etcdserverpb.AlarmRequest{
		Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: uint64(etcd.MemberID()),
		Alarm: etcdserverpb.AlarmType_NOSPACE,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), put("key", "1")); err == nil {
		t.Error("the alarm stops no write: this test shows nothing")
	}
	w.until("writes are possible again", func() bool {
		_, err := s.Commit(t.Context(), put("key", "2"))
		return err == nil
	})
}

// Instead of a key, the machines may have certificates of an authority of their user's.
func TestOwnAuthority(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	dir := t.TempDir()
	own := certtest.NewAuthority(t, "own")
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := write("ca.pem", own.PEM)
	for i, address := range w.machines {
		cert, key := own.Issue(fmt.Sprintf("machine %d", i), x509.ExtKeyUsageAny, time.Time{})
		c := w.config(address)
		c.KeyFile, c.CAFile = "", ca
		c.CertFile, c.CertKeyFile = write(fmt.Sprint(i, ".pem"), cert), write(fmt.Sprint(i, ".key"), key)
		w.startWith(c)
	}
	for _, q := range w.running {
		s := w.open(q)
		if _, err := s.Commit(t.Context(), put(q.selfAddress(), "1")); err != nil {
			t.Error(err)
		}
		wantOpen(t, s) // nobody knows since when there may be a cluster
	}
}
