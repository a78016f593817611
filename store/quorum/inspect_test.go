package quorum

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store/quorum/internal/keyring"
)

// Who inspects a quorum learns where nothing answers, where something else does, and what its own data is to the
// cluster.
func TestInspect(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	w := newWorld(t, 1)
	self := w.machines[0]
	w.open(w.start(self))
	silent := w.add()
	otherKey := w.config(w.add())
	otherKey.Machines, otherKey.KeyFile = []string{otherKey.Self}, filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(otherKey.KeyFile, []byte(keyring.NewKey(time.Now()).String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.startWith(otherKey)
	hangs, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	w.machines = append(w.machines, hangs.Addr().String())

	c := w.config("")
	c.Machines = append(c.Machines, "none.invalid:7420")
	for _, tt := range []struct {
		self, dir, state, listen string
	}{
		{self, w.dirs[self], "started", self},
		{silent, w.dirs[silent], "empty", silent},
		{NoMachine, w.dirs[self], "", ""},
	} {
		c.Self, c.Dir = tt.self, tt.dir
		q, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		i := q.Inspect(t.Context())
		q.Close()
		if i.SelfErr != nil || i.DataErr != nil || i.Data.State != tt.state ||
			(i.Data.Cluster == i.Status.Cluster) != (tt.state == "started") || i.Listen != tt.listen {
			t.Errorf("as %s: %+v", tt.self, i)
		}
		if !slices.Equal(i.Strangers, []string{otherKey.Self}) {
			t.Errorf("strangers are %q; want %s", i.Strangers, otherKey.Self)
		}
		reached := 0
		for _, m := range i.Status.Machines {
			if m.Err == "" {
				reached++
			}
		}
		if reached != 1 || len(i.Status.Machines) != 5 || !i.Status.Majority {
			t.Errorf("%+v", i.Status)
		}
	}
	c.Self = "" // all of them are
	q, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if i := q.Inspect(t.Context()); i.SelfErr == nil || i.Self != "" {
		t.Errorf("it is %q, %v", i.Self, i.SelfErr)
	}
	if _, err := os.Stat(w.dirs[silent]); !os.IsNotExist(err) {
		t.Errorf("it made a directory: %v", err)
	}
}
