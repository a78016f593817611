package peer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/base/clusterid"
	"github.com/firn-id/firn/internal/base/fresh"
	"github.com/firn-id/firn/store"
)

// The key
//
//	cluster
//
// of the store holds the cluster's ID, by which callers notice that two nodes know nothing of each other. No ID rests
// on it. Whoever finds none before it joins puts one. A member that had joined before puts that of then, so that a
// cluster keeps its ID after the store has lost data.

// Cluster returns the ID of the cluster that the member has joined, or is about to: 1 to 64 letters and digits, which
// two clusters do not have in common but by a chance of 1 in 10^12. It is empty until the member has read it from the
// store, before its first join. It changes when the store has lost data and another process put an ID first.
func (m *Member) Cluster() string {
	if id := m.cluster.Load(); id != nil {
		return *id
	}
	return ""
}

// identify makes sure that the store holds the cluster's ID, and that the member knows it. False: not yet; look again
// later.
func (p *player) identify(ctx context.Context) (time.Duration, bool) {
	if p.identified {
		return 0, true
	}
	if wait := time.Until(p.retry); wait > 0 {
		return wait, false
	}
	id, err := p.clusterID(ctx)
	if err != nil {
		p.troubles.note(ctx, "can't read or write the cluster's ID at present, trying again", err)
		wait := backoff.After(p.failed)
		p.failed++
		p.retry = time.Now().Add(wait)
		return wait, false
	}
	p.failed, p.identified = 0, true
	if was := p.Cluster(); was != "" && was != id {
		p.log.Warn("the cluster has another ID: the store has lost data, and another member was the first to "+
			"give it one", "was", was, "cluster", id)
	}
	p.cluster.Store(&id)
	return 0, true
}

// clusterID returns the ID in the store, once it has put one if there was none. A write in doubt needs no care: the
// next goes out under the same condition.
func (m *Member) clusterID(ctx context.Context) (string, error) {
	kv, err := m.store.Get(ctx, clusterid.Key)
	switch id := string(kv.Value); {
	case err != nil:
		return "", err
	case kv.Version != 0:
		return id, clusterid.Validate(id)
	}
	id := m.Cluster()
	if id == "" {
		id = strings.ToLower(fresh.Text()[:8])
	}
	_, err = m.store.Commit(ctx, store.Txn{
		If: []store.Condition{{Key: clusterid.Key}}, Then: []store.Op{store.Put(clusterid.Key, []byte(id))},
	})
	if errors.Is(err, store.ErrConflict) {
		return "", fmt.Errorf("%w: another member wrote first: %w", store.ErrUnavailable, err)
	}
	return id, err
}
