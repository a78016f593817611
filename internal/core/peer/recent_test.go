package peer

import (
	"fmt"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
)

// A member remembers the last entries, a bounded number, and the value from before them: applied to that they lead to
// what it has reached. A log that begins again is another one.
func TestTheEndOfTheLogIsRemembered(t *testing.T) {
	m := new(Member)
	if _, _, err := m.Recent(); err == nil {
		t.Error("it remembers what it has not read")
	}
	v := cluster.Value{}
	add := func(n int) {
		t.Helper()
		var entries []store.LogEntry
		for range n {
			at := v.Position() + 1
			c := cluster.PrepareJoin{Joiner: fmt.Sprintf("member%07d", at%7)}
			data, err := cluster.Encode(c, time.Unix(at, 0))
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, store.LogEntry{Position: store.Position(at), Data: data})
			v, _ = cluster.Apply(v, cluster.Entry{Position: at, Command: c})
		}
		beyond := store.LogEntry{Position: store.Position(v.Position() + 1)} // it could not be read
		m.tail.add(append(entries, beyond), v)
	}
	for i, n := range []int{1, 5, 1, recentEntries, 3, 2 * recentEntries, 1, recentEntries - 1, 7} {
		add(n)
		batch, _, err := m.Recent()
		if err != nil {
			t.Fatal(err)
		}
		replayed := cluster.Value{}
		if batch.Checkpoint != nil {
			if replayed, err = cluster.DecodeCheckpoint(batch.Checkpoint.Value); err != nil {
				t.Fatal(err)
			}
		}
		for _, e := range batch.Entries {
			entry, err := cluster.Decode(int64(e.Position), e.Data)
			if err != nil {
				t.Fatal(err)
			}
			replayed, _ = cluster.Apply(replayed, entry)
		}
		have, want := len(batch.Entries), int(min(v.Position(), recentEntries))
		if replayed.Position() != v.Position() || replayed.String() != v.String() || have < want ||
			have > 4*recentEntries {
			t.Errorf("step %d: %d entries, up to %d, want at least %d, up to %d", i, have, replayed.Position(),
				want, v.Position())
		}
	}
	m.tail.restart(cluster.Value{})
	if _, _, err := m.Recent(); err == nil {
		t.Error("it remembers another log")
	}
}
