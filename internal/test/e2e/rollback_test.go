//go:build unix

package e2e

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/testenv"
)

// Two nodes under load whose clocks are 8 s apart stay up when etcd loses its data: each uses up what it has written
// down, gives nothing for a while, and goes on by itself. A node that is started meanwhile gives IDs in the end. No ID
// comes twice.
func TestEtcdLosesItsData(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	for name, prepare := range map[string]func(*testing.T, *etcdtest.Server) (lose func(*testing.T)){
		"wiped": func(_ *testing.T, s *etcdtest.Server) func(*testing.T) {
			return func(t *testing.T) { s.Wipe(t) }
		},
		"set back to a backup": func(t *testing.T, s *etcdtest.Server) func(*testing.T) { return s.Backup(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := etcdtest.Start(t, etcdtest.Options{})
			l := new(ledger)
			a := serveSteppable(t, "a", with(server, short...)...)
			a.ready(t, l)
			lose := prepare(t, server)
			b := serve(t, "b", with(server, short...)...)
			b.ready(t, l)
			becomeOneRing(t, patience, []*node{a, b}) // so that both have seen more than the backup has
			a.ready(t, l)
			a.step(8 * time.Second)
			onA, onB := a.load(t, l, 2), b.load(t, l, 2)
			a.taken(t, l, 500)
			b.taken(t, l, 500)

			lose(t)
			late := serve(t, "late", with(server, short...)...)
			a.unready(t, l)
			b.unready(t, l)
			for _, n := range []*node{late, a, b} {
				n.ready(t, l)
			}
			onA.finish()
			onB.finish()
			for _, n := range []*node{a, b} {
				select {
				case <-n.exited:
					t.Errorf("%s has ended", n.name)
				default:
				}
			}
			l.unique(t, 1000)
		})
	}
}

// An operator who knows that nobody else gives IDs need not wait.
func TestResumeAfterALoss(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	l := new(ledger)
	n := serve(t, "node", with(server, "--ttl=2s", "--window=3s")...)
	n.ready(t, l)
	server.Wipe(t)
	n.unready(t, l)
	path, err := firn()
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		out, err := exec.Command(path, "cluster", "resume", "--admin", n.admin).CombinedOutput()
		if err == nil && strings.Contains(string(out), "all nodes may give IDs now") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("firn cluster resume: %v: %s\n%s", err, out, n.log)
		}
	}
	n.ready(t, l)
	l.unique(t, 2)
}
