//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/responsive"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/quorum"
)

// The leader is killed ten times. No caller notices, and horizons are soon written again.
func TestTheLeaderIsKilled(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	q := newKeepers(t, 3, "--window=6s")
	q.start()
	c, s := q.callers(), q.store()
	for range 10 {
		leads := q.leader()
		c.served(10)
		end, begun := q.writes(s), time.Now()
		leads.crash()
		q.extendAgain(q.others(leads)...)
		q.lasted("both others have written a horizon after the leader was killed", begun, 5*time.Second)
		q.measured("no write succeeds after the leader was killed", begun, end(), 5*time.Second)
		begun = time.Now()
		leads.start()
		leads.ready()
		q.lasted("a killed machine is ready again", begun, 5*time.Second)
		q.whole()
		// what was sent before the crash may have counted above, with a horizon that is soon reached
		q.extendAgain(q.list...)
	}
	q.unnoticed(c)
	q.ledger.unique(t, 100)
}

// The leader is frozen for longer than its session and its window, and another node takes its node ID. When it wakes up
// it repeats nothing.
func TestTheLeaderIsFrozen(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	q := newKeepers(t, 3, "--window=12s", "--ttl=5s")
	q.start()
	c, s := q.callers(), q.store()
	c.served(10)
	leads := q.leader()
	id := leads.nodeID()
	end, begun := q.writes(s), time.Now()
	leads.goesDown()
	leads.signal(syscall.SIGSTOP)
	q.extendAgain(q.others(leads)...)
	q.lasted("both others have written a horizon after the leader was frozen", begun, 9*time.Second) // every 4 s
	q.measured("no write succeeds after the leader was frozen", begun, end(), 5*time.Second)
	heir := q.client(fmt.Sprint("--node=", id), "--wait")
	heir.ready()
	onHeir := newAudience(t, q.ledger, heir.transport.DialContext, heir.url)
	time.Sleep(time.Until(begun.Add(20 * time.Second)))
	leads.signal(syscall.SIGCONT)
	begun = time.Now()
	c.served(10)
	leads.ready()
	q.lasted("a frozen machine gives IDs again", begun, 10*time.Second)
	q.whole()
	if saw := onHeir.finish(); len(saw.failed) > 0 {
		responsive.Errorf(t, saw.failed[0].began.Add(-mercy), "the heir refused: %v", saw.failed[0].err)
	}
	q.unnoticed(c)
	q.ledger.unique(t, 100)
}

// nodeID is that of the node in the default sequencer.
func (k *keeper) nodeID() (node int) {
	k.of.t.Helper()
	eventually(k.of.t, func() error {
		id, err := take(caller, k.url+"/api/v1/id")
		if err != nil {
			return err
		}
		k.of.ledger.add([]int64{id})
		_, text, err := k.get(fmt.Sprint(k.url, "/api/v1/ids/", id))
		var said struct{ Node int }
		err = errors.Join(err, json.Unmarshal([]byte(text), &said))
		node = said.Node
		return err
	})
	return node
}

// store is a client of the quorum's store.
func (q *keepers) store() quorum.Store {
	q.t.Helper()
	client, err := quorum.New(quorum.Config{
		Machines: strings.Split(addresses(q.list), ","), Self: quorum.NoMachine,
		KeyFile: q.key,
	})
	if err == nil {
		err = client.Start()
	}
	if err != nil {
		q.t.Fatal(err)
	}
	q.t.Cleanup(client.Close)
	var s quorum.Store
	eventually(q.t, func() (err error) {
		s, err = client.Open(q.t.Context())
		return err
	})
	q.t.Cleanup(func() { _ = s.Close() })
	return s
}

// put is an entry in the log of the quorum.
func put(writer int) store.Txn {
	return store.Txn{Then: []store.Op{store.Put(fmt.Sprint("test/", writer), make([]byte, 200))}}
}

// write makes so many entries.
func (q *keepers) write(s quorum.Store, entries int) {
	q.t.Helper()
	// thousands of writes to disks that others use as well
	ctx, cancel := context.WithTimeout(q.t.Context(), 5*patience)
	defer cancel()
	const writers = 32
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for done := 0; done < (entries+writers-1)/writers; {
				_, err := s.Commit(ctx, put(i))
				if ctx.Err() != nil {
					q.t.Errorf("writing: %v", err)
					return
				}
				if err == nil {
					done++
				}
			}
		})
	}
	all.Wait()
}

// writes writes all the time until end, which waits for a last one, and says for how long none succeeded.
func (q *keepers) writes(s quorum.Store) (end func() time.Duration) {
	var longest time.Duration
	last := make(chan struct{})
	ctx, cancel := context.WithTimeout(q.t.Context(), patience)
	var ended sync.WaitGroup
	ended.Go(func() {
		for latest := time.Now(); ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			if _, err := s.Commit(ctx, put(0)); err != nil {
				continue
			}
			now := time.Now()
			longest, latest = max(longest, now.Sub(latest)), now
			select {
			case <-last:
				return
			default:
			}
		}
		q.t.Error("no write succeeds")
	})
	return func() time.Duration {
		defer cancel()
		close(last)
		ended.Wait()
		return longest
	}
}

// Each machine in turn is down while more is written than the others keep in their logs. It gets what it missed.
func TestAMachineMissesMuch(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	q := newKeepers(t, 3, "--window=6s")
	q.start()
	c, s := q.callers(), q.store()
	for _, k := range q.list {
		c.served(10)
		k.crash()
		q.write(s, 12_000)
		begun := time.Now()
		k.start()
		q.whole()
		q.lasted("a machine that missed 12,000 entries has caught up", begun, 10*time.Second)
	}
	q.unnoticed(c)
	q.ledger.unique(t, 100)
}

// Two of three machines are down: for less than the window, which nobody notices, and for more, when the third gives no
// IDs from its horizon on until one is back.
func TestTwoOfThreeAreDown(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	const window = 12 * time.Second
	q := newKeepers(t, 3, "--window="+window.String())
	q.start()
	c := q.callers()
	left := q.leader()
	down := q.others(left)
	at := slices.Index(q.asked, left)
	for range 3 {
		c.served(10)
		q.extendAgain(left)
		crash(down...)
		c.served(25, at)
		for _, k := range down {
			k.start()
		}
		q.whole()
	}
	for range 2 {
		c.served(10)
		q.extendAgain(left)
		crash(down...)
		crashed := time.Now()
		left.goesDownAt(crashed.Add(window / 2)) // its horizon is further ahead
		eventually(t, func() error {
			if left.isReady() == nil {
				return fmt.Errorf("%s is ready, %v after the others were killed", left.name, time.Since(crashed))
			}
			return nil
		})
		if out, err := left.firn("quorum", "status"); err == nil {
			t.Errorf("firn quorum status succeeds without a majority: %s", out)
		}
		begun := time.Now()
		for _, k := range down {
			k.start()
		}
		left.ready()
		q.lasted("IDs again after two of three are back", begun, 5*time.Second)
		q.whole()
	}
	q.unnoticed(c)
	q.ledger.unique(t, 100)
}

// Two of three machines are killed, and one of them is back when the third gives no IDs any more. Nobody waits for the
// session of the one that stays dead, whether that of the third has ended meanwhile or not.
func TestOneOfTwoComesBack(t *testing.T) {
	testenv.Slow(t)
	for _, ttl := range []string{"20s", "10s"} {
		t.Run(ttl, func(t *testing.T) {
			t.Parallel()
			const window = 12 * time.Second
			q := newKeepers(t, 3, "--window="+window.String(), "--ttl="+ttl)
			q.start()
			c := q.callers()
			for i := range 5 {
				c.served(10)
				left := q.list[i%3]
				down := q.others(left)
				back, dead := down[i%2], down[1-i%2]
				q.extendAgain(q.list...)
				crash(down...)
				left.goesDownAt(time.Now().Add(window / 2)) // its horizon is further ahead
				eventually(t, func() error {
					if left.isReady() == nil {
						return fmt.Errorf("%s is ready, though the others were killed", left.name)
					}
					return nil
				})
				begun := time.Now()
				back.start()
				for _, k := range []*keeper{left, back} {
					k.ready()
				}
				t.Logf("IDs again after %v", time.Since(begun).Round(time.Millisecond))
				q.lasted("IDs again when one of two is back", begun, 5*time.Second)
				dead.start()
				q.whole()
			}
			q.unnoticed(c)
			q.ledger.unique(t, 100)
		})
	}
}

// All three machines are killed at once, 20 times.
func TestAllMachinesAreKilled(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	q := newKeepers(t, 3, "--window=6s")
	q.start()
	c := q.callers()
	for range 20 {
		c.served(3)
		crash(q.list...)
		begun := time.Now()
		for _, k := range q.list {
			k.start()
		}
		for _, k := range q.list {
			k.ready()
		}
		q.lasted("ready after all were killed", begun, 10*time.Second)
	}
	q.whole()
	q.unnoticed(c)
	q.ledger.unique(t, 100)
}

// empty takes a machine's directory away, and returns where it is now.
func (k *keeper) empty() string {
	k.of.t.Helper()
	aside := filepath.Join(k.of.t.TempDir(), "aside")
	if err := os.Rename(k.dir, aside); err != nil {
		k.of.t.Fatal(err)
	}
	return aside
}

// A machine whose directory was emptied comes back by its own start, whichever it is.
func TestAnEmptiedMachine(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	q := newKeepers(t, 3, "--window=6s", "--ttl=5s")
	q.start()
	c := q.callers()
	for _, k := range q.list {
		c.served(10)
		k.crash()
		k.empty()
		begun := time.Now()
		k.start()
		q.whole()
		q.lasted("an emptied machine is back", begun, 10*time.Second)
	}
	q.unnoticed(c)
	q.ledger.unique(t, 100)
}

// Two of three machines are emptied while the third is down. They wait for it, and when it is back all wait for the
// data that is lost. Then that is found.
func TestTwoEmptiedMachines(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	q := newKeepers(t, 3, "--window=6s")
	q.start()
	c := q.callers()
	c.served(10)
	before, err := q.list[0].status()
	if err != nil {
		t.Fatal(err)
	}
	third, two := q.list[0], q.list[1:] // without the third, who forms a cluster is down
	for range 2 {
		crash(q.list...)
		var aside []string
		for _, k := range two {
			aside = append(aside, k.empty())
			k.start()
		}
		for _, k := range two {
			k.waits(third.address, "a new one needs all machines")
		}
		third.start()
		for _, k := range two {
			k.waits("cluster "+before.Cluster, "a majority of the machines has lost it", "restore a backup")
		}
		third.waits(two[0].address, two[1].address, "restore a backup")
		for _, k := range q.list {
			if err := k.isReady(); err == nil {
				t.Errorf("%s is ready", k.name)
			}
		}
		crash(two...)
		for i, k := range two {
			if err := os.RemoveAll(k.dir); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(aside[i], k.dir); err != nil {
				t.Fatal(err)
			}
			k.start()
		}
		q.whole()
		if now, err := third.status(); err != nil || now.Cluster != before.Cluster {
			t.Errorf("cluster %s: %v; want %s", now.Cluster, err, before.Cluster)
		}
		third, two = q.list[2], q.list[:2]
	}
	q.unnoticed(c)
	q.ledger.unique(t, 100)
}

// All machines are emptied. Within an hour of the making of the key that is like the first start.
func TestAllMachinesAreEmptied(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	q := newKeepers(t, 3, "--window=6s")
	q.start()
	c := q.callers()
	c.served(10)
	crash(q.list...)
	storeIsLost(t)
	begun := time.Now()
	for _, k := range q.list {
		k.empty()
		k.start()
	}
	q.whole()
	q.lasted("a new cluster in place of an emptied one", begun, 5*time.Second)
	c.served(10)
	q.unnoticed(c)
	q.ledger.unique(t, 100)
}

// All machines are emptied, long after their key was made, while a client uses what it has reserved. The new cluster
// gives no ID before that is over, and says why.
func TestAllMachinesAreEmptiedLate(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	const window = 6 * time.Second
	q := newKeepers(t, 3, "--window="+window.String())
	q.newKey(24 * time.Hour)
	q.start()
	former := q.client()
	former.ready()
	onFormer := newAudience(t, q.ledger, former.transport.DialContext, former.url)
	onFormer.served(25)
	before, err := q.list[0].status()
	if err != nil {
		t.Fatal(err)
	}
	crash(q.list...)
	begun := time.Now()
	for _, k := range q.list {
		k.empty()
		k.start()
	}
	for _, k := range q.list {
		k.refuses("members make no IDs before") // for that reason or because of what the former client found
	}
	if !slices.ContainsFunc(q.list, func(k *keeper) bool {
		return said(k.log.String(), "24h0m.* after its key was made")
	}) {
		t.Error("no machine says that its key is old")
	}
	q.whole()
	if took := time.Since(begun); took < window {
		t.Errorf("the new cluster gives IDs after %v", took)
	}
	if now, err := q.list[0].status(); err != nil || now.Cluster == before.Cluster {
		t.Errorf("cluster %s, %v; it was %s before", now.Cluster, err, before.Cluster)
	}
	onFormer.served(25)
	onFormer.finish()
	c := q.callers()
	c.served(25)
	q.unnoticed(c)
	q.ledger.unique(t, 100)
}

// The directory of a machine is put back as it was some time ago. The others know what it had: it is replaced by
// itself.
func TestADirectoryOfYesterday(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	q := newKeepers(t, 3, "--window=3s")
	q.start()
	c := q.callers()
	for _, k := range []*keeper{q.list[0], q.list[2]} {
		k.stop()
		copied := filepath.Join(t.TempDir(), "copied")
		if err := os.CopyFS(copied, os.DirFS(k.dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(copied, 0o700); err != nil {
			t.Fatal(err)
		}
		k.start()
		q.whole()
		q.sawMore(k)
		k.crash()
		k.empty()
		if err := os.Rename(copied, k.dir); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		k.start()
		q.whole()
		q.lasted("an old directory is replaced", begun, 10*time.Second)
		if !strings.Contains(k.log.String(), "an old copy of the directory was put back") {
			t.Errorf("%s does not say so:\n%s", k.name, k.log)
		}
	}
	q.unnoticed(c)
	q.ledger.unique(t, 100)
}

// The directory of a machine is put back as it was some seconds ago, as after a power cut with a volatile write cache:
// no other machine has written down yet what it had. It had confirmed that to the leader, and is replaced by itself.
func TestADirectoryOfSomeSecondsAgo(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	q := newKeepers(t, 3, "--window=3s")
	q.start()
	c, s := q.callers(), q.store()
	for _, k := range q.list {
		k.stop()
		copied := filepath.Join(t.TempDir(), "copied")
		if err := os.CopyFS(copied, os.DirFS(k.dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(copied, 0o700); err != nil {
			t.Fatal(err)
		}
		k.start()
		k.ready()
		q.write(s, 300)
		if k == q.leader() { // who leads has confirmed to nobody
			k.stop()
			k.start()
			k.ready()
			q.write(s, 300)
		}
		k.crash()
		k.empty()
		if err := os.Rename(copied, k.dir); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		k.start()
		q.whole()
		q.lasted("a directory of some seconds ago is replaced", begun, 10*time.Second)
		if aside, err := os.Stat(filepath.Join(k.dir, "set-aside")); err != nil || !aside.IsDir() {
			t.Errorf("%s uses the old data: %v\n%s", k.name, err, k.log)
		}
	}
	q.unnoticed(c)
	q.ledger.unique(t, 100)
}

// Two of three machines are set back by some seconds and go on while the third is off. The store has lost data, which a
// node that lives notices: nothing comes twice. When the third is back, it does not run, and says by which command that
// ends.
func TestAMajorityOfSomeSecondsAgo(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	q := newKeepers(t, 3, "--window=6s", "--ttl=5s")
	q.start()
	lives := q.client()
	lives.ready()
	onLives := newAudience(t, q.ledger, lives.transport.DialContext, lives.url)
	c, s := q.callers(), q.store()
	old, third := slices.Clone(q.list[:2]), q.list[2]
	for _, k := range q.list {
		k.stop()
	}
	copies := map[*keeper]string{}
	for _, k := range old {
		copies[k] = filepath.Join(t.TempDir(), "copied")
		if err := errors.Join(os.CopyFS(copies[k], os.DirFS(k.dir)), os.Chmod(copies[k], 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range q.list {
		k.start()
	}
	q.whole()
	q.write(s, 300)
	q.extendAgain(append(slices.Clone(q.list), lives)...)
	c.served(10)
	crash(q.list...)
	storeIsLost(t)
	for _, k := range old {
		k.empty()
		if err := os.Rename(copies[k], k.dir); err != nil {
			t.Fatal(err)
		}
		k.start()
	}
	for _, k := range append(old, lives) {
		k.ready()
	}
	onLives.served(25)
	third.start()
	third.ended()
	if log := third.log.String(); !strings.Contains(log, "differ from entry") ||
		!strings.Contains(log, "mv "+third.dir) {
		t.Fatalf("%s does not say that it has another log:\n%s", third.name, log)
	}
	third.empty()
	third.start()
	q.whole()
	onLives.finish()
	q.unnoticed(c)
	q.ledger.unique(t, 100)
}

// sawMore waits until the others have written down that a machine has more now than it has at present.
func (q *keepers) sawMore(k *keeper) {
	q.t.Helper()
	at := uint64(0)
	eventually(q.t, func() error {
		s, err := k.status()
		for _, m := range s.Machines {
			if m.Address == k.address {
				at = m.Index
			}
		}
		return err
	})
	eventually(q.t, func() error {
		for _, other := range q.others(k) {
			text, err := os.ReadFile(filepath.Join(other.dir, "quorum.json"))
			var says struct{ Saw map[string]uint64 }
			if err == nil {
				err = json.Unmarshal(text, &says)
			}
			if err != nil || says.Saw[k.address] <= at {
				return fmt.Errorf("%s has not seen that %s has more than %d: %s, %w", other.name, k.name, at, text, err)
			}
		}
		return nil
	})
}

// All machines are restarted one after the other, as for an upgrade.
func TestRollingRestartOfAQuorum(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	q := newKeepers(t, 3, "--window=6s")
	q.start()
	c := q.callers()
	for range 3 {
		c.served(10)
		for _, k := range q.list {
			k.stop()
			begun := time.Now()
			k.start()
			k.ready()
			q.lasted("a machine is ready again after SIGTERM", begun, 5*time.Second)
		}
	}
	q.whole()
	c.served(10)
	q.unnoticed(c)
	q.ledger.unique(t, 100)
}

// A quorum of one becomes one of three, two of these are replaced, one dead and one alive, and it is a quorum of one
// again.
func TestOneThreeAndOneAgain(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	q := newKeepers(t, 3, "--window=12s")
	one, lost, spared := q.list[0], q.list[1], q.list[2]
	one.startAs()
	one.ready()
	c := q.callers()
	lost.goesDown()
	spared.goesDown()
	c.served(25, 0)

	lost.start()
	spared.start()
	lost.waits(one.address)
	spared.waits(one.address)
	one.stop()
	begun := time.Now()
	one.start()
	q.whole()
	q.lasted("three from one", begun, 10*time.Second)
	c.served(25)

	lost.crash()
	instead := q.local()
	instead.url, instead.downs = lost.url, lost.downs // callers find it in its place
	q.asked[1] = instead
	begun = time.Now()
	q.replace(lost, instead)
	q.lasted("a dead machine is replaced", begun, 10*time.Second)
	c.served(25)

	begun = time.Now()
	q.replace(spared, q.local())
	q.lasted("a living machine is replaced", begun, 10*time.Second)
	c.served(25) // by the one that was replaced, too: it goes on as a client

	removed := q.others(one)
	begun = time.Now()
	if out, err := one.firn("quorum", "remove", "--yes", removed[0].address, removed[1].address); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	q.list = []*keeper{one}
	q.whole()
	q.lasted("one from three", begun, 10*time.Second)
	c.served(25)
	one.stop()
	one.start()
	q.whole()
	c.served(25)
	q.extendAgain(one, spared, removed[0], removed[1])
	q.unnoticed(c)
	q.ledger.unique(t, 100)
}

// replace has a new machine take the place of another.
func (q *keepers) replace(lost, instead *keeper) {
	q.t.Helper()
	if out, err := q.list[0].firn("quorum", "replace", "--yes", lost.address, instead.address); err != nil {
		q.t.Fatalf("%v: %s", err, out)
	}
	q.list[slices.Index(q.list, lost)] = instead
	instead.start()
	q.whole()
}
