package etcdserver

import (
	"reflect"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// Entries that a server had and never committed stay in its log when it is sent a snapshot in their place. They are not
// committed because the snapshot goes further.
func TestEntriesBeforeASnapshotAreNotCommitted(t *testing.T) {
	dir := &Dir{Path: t.TempDir()}
	log, err := wal.Create(zap.NewNop(), datadir.ToWALDir(dir.Path), nil)
	if err != nil {
		t.Fatal(err)
	}
	save := func(commit, first, last, term uint64) {
		t.Helper()
		var entries []*raftpb.Entry
		for i := first; i <= last; i++ {
			entries = append(entries, &raftpb.Entry{Index: &i, Term: &term, Data: []byte("x")})
		}
		if err := log.Save(&raftpb.HardState{Term: &term, Commit: &commit}, entries); err != nil {
			t.Fatal(err)
		}
	}
	save(2, 1, 4, 2) // the last two are not committed
	index, term := uint64(10), uint64(3)
	if err := log.SaveSnapshot(&walpb.Snapshot{
		Index: &index, Term: &term,
		ConfState: &raftpb.ConfState{},
	}); err != nil {
		t.Fatal(err)
	}
	save(12, 11, 13, 3)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	all, err := dir.Committed()
	var indices []uint64
	for _, e := range all {
		indices = append(indices, e.Index)
	}
	if err != nil || !reflect.DeepEqual(indices, []uint64{11, 12}) {
		t.Errorf("committed are %v, %v; want 11 and 12", indices, err)
	}
}
