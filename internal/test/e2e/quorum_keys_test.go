//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store/quorum"
)

// useKey has machines that are started from now on use a file with these keys.
func (q *keepers) useKey(keys string) {
	q.t.Helper()
	if err := os.WriteFile(q.key, []byte(keys), 0o600); err != nil {
		q.t.Fatal(err)
	}
}

// keyFile is what the file of the key holds.
func (q *keepers) keyFile() string {
	q.t.Helper()
	text, err := os.ReadFile(q.key)
	if err != nil {
		q.t.Fatal(err)
	}
	return string(text)
}

// saysOtherKey returns nil if a node says of a machine, in its status, that it has another key.
func (k *keeper) saysOtherKey(of *keeper) error {
	s, err := k.status()
	i := slices.IndexFunc(s.Machines, func(m quorum.Machine) bool { return m.Address == of.address })
	if err == nil && (i < 0 || !strings.Contains(s.Machines[i].Err, "has another key")) {
		err = fmt.Errorf("%s does not say that %s has another key: %+v", k.name, of.address, s)
	}
	return err
}

// One of three machines is started with the key of another cluster. Both sides say so, and name the other; the two go
// on.
func TestOneMachineHasAWrongKey(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	q := newKeepers(t, 3, soonWindow)
	q.start()
	c := q.callers()
	wrong := q.list[0]
	right, key := q.others(wrong), q.keyFile()
	c.served(10)
	wrong.stop()
	q.newKey(0)
	wrong.start()
	q.useKey(key)
	for _, k := range right {
		eventually(t, func() error { return k.saysOtherKey(wrong) })
		eventually(t, func() error { return wrong.saysOtherKey(k) })
		eventually(t, func() error {
			if !strings.Contains(k.log.String(), `why="it has another key"`) {
				return errors.New(k.name + " does not log that another key was shown")
			}
			return nil
		})
		wrong.waits(k.address + " (has another key")
	}
	for range 2 {
		q.extendAgain(right...)
	}
	wrong.stop()
	wrong.start()
	q.whole()
	q.unnoticed(c)
	q.ledger.unique(t, 100)
}

// The key is changed by two rounds of restarts. No caller notices who asks the next node once more. Then nobody gets in
// with the former key.
func TestTheKeyOfAQuorumIsChanged(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	path, err := firn()
	if err != nil {
		t.Fatal(err)
	}
	q := newKeepers(t, 3, soonWindow)
	q.start()
	c := q.callers()
	former := q.keyFile()
	both, err := exec.Command(path, "quorum", "key", "--add", q.key).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(both)), "\n")
	for _, keys := range []string{string(both), lines[len(lines)-1] + "\n"} {
		q.useKey(keys)
		for _, k := range q.list {
			c.served(5)
			k.stop()
			k.start()
			q.whole()
		}
	}
	q.unnoticed(c)

	q.useKey(former)
	late := q.client()
	for _, k := range q.list {
		eventually(t, func() error { return late.saysOtherKey(k) })
	}
	q.ledger.unique(t, 100)
}
