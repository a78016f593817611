package quorum

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
)

// recordKey is the key in the store that says which cluster this is, and who should keep it.
const recordKey = "quorum"

// record is what the key holds.
type record struct {
	Cluster  string   `json:"cluster"`
	Machines []string `json:"machines"` // ordered
}

func (r record) put() (store.Op, error) {
	text, err := json.Marshal(r)
	return store.Put(recordKey, text), err
}

// readRecord reads the record; if there is none, it is zero.
func readRecord(ctx context.Context, s store.Store) (r record, err error) {
	r, _, err = readRecordAt(ctx, s)
	return r, err
}

func readRecordAt(ctx context.Context, s store.Store) (r record, at store.Condition, err error) {
	kv, err := s.Get(ctx, recordKey)
	at = store.Condition{Key: recordKey, Version: kv.Version}
	if err != nil || kv.Version == 0 {
		return r, at, err
	}
	if err := json.Unmarshal(kv.Value, &r); err != nil {
		return r, at, fmt.Errorf("the key %q of the store can't be read: %w", recordKey, err)
	}
	return r, at, nil
}

// setRecord changes the machines of the record to what next returns for it.
func (q *Quorum) setRecord(ctx context.Context, s store.Store, next func(record) ([]string, error)) error {
	var wanted []string // by the try before
	for tries := 0; ; tries++ {
		r, at, err := readRecordAt(ctx, s)
		if err != nil {
			return err
		}
		if wanted != nil && slices.Equal(r.Machines, wanted) { // a write in doubt was applied
			return nil
		}
		if r.Machines, err = next(r); err != nil {
			return err
		}
		slices.Sort(r.Machines)
		put, err := r.put()
		if err != nil {
			return err
		}
		_, err = s.Commit(ctx, store.Txn{If: []store.Condition{at}, Then: []store.Op{put}})
		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrAmbiguous) {
			return err
		}
		wanted = r.Machines
		if err := retry.Sleep(ctx, backoff.After(tries)); err != nil {
			return err
		}
	}
}

// refresh reads the record as this server knows it.
func (s *server) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, doWithin)
	defer cancel()
	found, err := s.Range(ctx,
		&etcdserverpb.RangeRequest{Key: []byte(etcdstore.DefaultPrefix + "/" + recordKey), Serializable: true})
	if err != nil || len(found.Kvs) == 0 {
		return err
	}
	var r record
	if err := json.Unmarshal(found.Kvs[0].Value, &r); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = r
	return nil
}

func (s *server) record() record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// ensureRecord makes sure that the store says which cluster it is. Whoever is first in a new one also writes the floor.
func (q *Quorum) ensureRecord(ctx context.Context, s *server) error {
	mine := q.disk.get()
	found, err := readRecord(ctx, s.local)
	if err != nil {
		return err
	}
	if found.Cluster == "" {
		if err := q.putRecord(ctx, s, mine); err != nil {
			return err
		}
	} else if found.Cluster != mine.Cluster {
		err := fmt.Errorf("the data directory says that it belongs to cluster %s, and the store in it that it is %s: "+
			"the directory was put together from two", mine.Cluster, found.Cluster)
		q.fail(err)
		return err
	}
	return s.refresh(ctx)
}

func (q *Quorum) putRecord(ctx context.Context, s *server, mine written) error {
	r := record{Cluster: mine.Cluster}
	for _, m := range s.members() {
		r.Machines = append(r.Machines, m.Address)
	}
	slices.Sort(r.Machines)
	txn := store.Txn{If: []store.Condition{{Key: recordKey}}}
	put, err := r.put()
	if err != nil {
		return err
	}
	txn.Then = append(txn.Then, put)
	why, late := q.foundedLate(time.Now())
	if late = late && mine.Founded; late {
		put, err := floor.Open(nil, q.selfAddress(), why)
		if err != nil {
			return err
		}
		txn.Then = append(txn.Then, put)
	}
	_, err = s.local.Commit(ctx, txn)
	if errors.Is(err, store.ErrConflict) { // another machine was first
		return nil
	}
	if err == nil && late {
		q.log.Warn("a cluster is formed, and may not be the first: to avoid duplicates, no ID is made for a while",
			"why", why)
	}
	return err
}

// firstWithin is how long after its key was made a cluster counts as the first one.
const firstWithin = time.Hour

// foundedLate reports whether a cluster that is formed now may not be the first, and why: members of an earlier one,
// whose machines have all lost their data, may still use what they have reserved. The floor is then open from the
// beginning.
func (q *Quorum) foundedLate(now time.Time) (why string, late bool) {
	if q.since.IsZero() {
		return "the cluster was formed, and nobody knows since when its certificates are in use", true
	}
	age := now.Sub(q.since)
	why = fmt.Sprintf("the cluster was formed %v after its key was made: an earlier one may have lost all its data",
		age.Round(time.Second))
	return why, age > firstWithin || age < -firstWithin
}
