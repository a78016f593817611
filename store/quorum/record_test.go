package quorum

import (
	"context"
	"slices"
	"testing"

	"github.com/firn-id/firn/store"
)

// doubtful is a store of one key whose first write is applied without an answer.
type doubtful struct {
	store.Store
	kv     store.KV
	writes int
}

func (d *doubtful) Get(context.Context, string) (store.KV, error) { return d.kv, nil }

func (d *doubtful) Commit(_ context.Context, txn store.Txn) (store.Version, error) {
	if txn.If[0].Version != d.kv.Version {
		return 0, store.ErrConflict
	}
	d.kv.Version++
	d.kv.Value = txn.Then[0].Value
	if d.writes++; d.writes == 1 {
		return 0, store.ErrAmbiguous
	}
	return d.kv.Version, nil
}

// A change of the record that was applied without an answer is not refused as done already.
func TestRecordInDoubt(t *testing.T) {
	t.Parallel()
	put, err := record{Cluster: "c", Machines: []string{"a:1", "b:1", "c:1"}}.put()
	if err != nil {
		t.Fatal(err)
	}
	s := &doubtful{kv: store.KV{Key: recordKey, Value: put.Value, Version: 1}}
	err = new(Quorum).setRecord(t.Context(), s, func(r record) ([]string, error) { return replaced(r, "b:1", "d:1") })
	if r, failed := readRecord(t.Context(), s); err != nil || failed != nil ||
		!slices.Equal(r.Machines, []string{"a:1", "c:1", "d:1"}) || s.writes != 1 {
		t.Errorf("%v, %v, %v after %d writes", r, err, failed, s.writes)
	}
}
