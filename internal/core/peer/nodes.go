package peer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
)

// NodeRecord is what the store keeps about a node under its name, also once it is gone. The node writes it with its
// pulse. It decides nothing.
type NodeRecord struct {
	Name    string    `json:"name"`
	Host    string    `json:"host,omitempty"` // see Options.Host
	Place   string    `json:"place"`          // see Options.Place
	Members []string  `json:"members"`        // its member IDs, the latest last; at most 8
	Since   time.Time `json:"since"`          // when it began under the latest of them
	// when it last wrote this. All times are by its clock, less what others take that to be wrong by
	Seen time.Time `json:"seen"`
	// it gives no ID of this instant or later without another write; zero: unknown
	Reserved time.Time `json:"reserved,omitzero"`
	Left     time.Time `json:"left,omitzero"` // when it left in order; zero: it has not
}

// Member returns the node's latest member ID; empty: unknown.
func (r NodeRecord) Member() string {
	if len(r.Members) == 0 {
		return ""
	}
	return r.Members[len(r.Members)-1]
}

// ErrAlive is returned by Forget for a node that has a pulse.
var ErrAlive = errors.New("the node is alive")

// ErrNoNode is returned by Forget when no node has the name.
var ErrNoNode = errors.New("there is no such node")

const (
	nodes = "nodes/"

	keptMembers = 8              // member IDs in a NodeRecord
	keptNodes   = 24 * time.Hour // how long the store keeps the record of a node that is gone
	mostAlike   = 1000           // nodes that ask for the same name
)

func nodeKey(name string) string { return nodes + name }

// readNode reads what a key holds; a foreign value shows as a zero NodeRecord.
func readNode(value []byte) (r NodeRecord) {
	if json.Unmarshal(value, &r) != nil {
		return NodeRecord{}
	}
	return r
}

// Nodes reads what the store keeps about nodes, by name: about all that live, and those that were gone for less than a
// day. The error is one of the store.
func (m *Member) Nodes(ctx context.Context) ([]NodeRecord, error) {
	s, err := m.opened()
	if err != nil {
		return nil, err
	}
	all, err := s.List(ctx, nodes)
	if err != nil {
		return nil, err
	}
	records := make([]NodeRecord, 0, len(all))
	for _, kv := range all {
		if r := readNode(kv.Value); r.Name != "" && r.Member() != "" {
			records = append(records, r)
		}
	}
	slices.SortFunc(records, func(a, b NodeRecord) int { return cmp.Compare(a.Name, b.Name) })
	return records, nil
}

// Forget removes the record of a node that is gone. ErrAlive is returned when it is not, and ErrNoNode when there is no
// record.
func (m *Member) Forget(ctx context.Context, name string) error {
	s, err := m.opened()
	if err != nil {
		return err
	}
	return m.insist(ctx, "can't forget a node at present", func() error {
		kv, err := s.Get(ctx, nodeKey(name))
		switch {
		case err != nil:
			return err
		case kv.Version == 0:
			return ErrNoNode
		}
		pulse, err := s.Get(ctx, pulseKey(readNode(kv.Value).Member()))
		switch {
		case err != nil:
			return err
		case pulse.Version != 0:
			return ErrAlive
		}
		if err = removeNode(ctx, s, kv); errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("%w: the record has changed: %w", store.ErrUnavailable, err)
		}
		return err
	})
}

func removeNode(ctx context.Context, s store.Store, kv store.KV) error {
	_, err := s.Commit(ctx, store.Txn{
		If:   []store.Condition{{Key: kv.Key, Version: kv.Version}},
		Then: []store.Op{store.Delete(kv.Key)},
	})
	return err
}

// forgetOld removes the records of nodes that have been gone for long, given the pulses of the living.
func (m *Member) forgetOld(ctx context.Context, pulses map[string]Pulse) error {
	all, err := m.store.List(ctx, nodes)
	if err != nil {
		return err
	}
	for _, kv := range all {
		r := readNode(kv.Value)
		if _, alive := pulses[r.Member()]; alive || m.trueWall().Sub(r.Seen) < keptNodes {
			continue
		}
		if err := removeNode(ctx, m.store, kv); err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}

// trueWall is the wall clock, less what most others take it to be wrong by.
func (m *Member) trueWall() time.Time {
	now := m.Wall()
	if verdict := m.judged(); verdict.Out() {
		now = now.Add(-verdict.Offset)
	}
	return now
}

// Name returns the node's name among others, as far as it is known: Options.Owner, with a number behind it while
// another node has that. It is safe for concurrent use.
func (m *Member) Name() string {
	if name := m.named.Load(); name != nil {
		return *name
	}
	return m.options.Owner
}

// place tells this node from others that ask for its name.
func (m *Member) place() string { return cmp.Or(m.options.Place, *m.mark.Load()) }

// takeName gives the incarnation a name that no other living node has: the one that the member asks for, or that with a
// number behind it. It prefers one that a node in the same place had, so that names stay over restarts; the pulse of
// that one may outlive its process, so whether it lives is seen only when that should have been written again.
func (m *Member) takeName(ctx context.Context, l *incarnation, taken string) error {
	if m.options.Owner == "" {
		return nil
	}
	for tries := 0; ; tries++ {
		err := m.tryNames(ctx, l, taken)
		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrAmbiguous) {
			return err
		}
		if err := retry.Sleep(ctx, backoff.After(tries)); err != nil {
			return err
		}
	}
}

// tryNames is takeName, once. Taken is a name that another node is known to have.
func (m *Member) tryNames(ctx context.Context, l *incarnation, taken string) error {
	var free store.KV
	for n := 1; n <= mostAlike; n++ {
		name := m.options.Owner
		if n > 1 {
			name = fmt.Sprintf("%s-%d", name, n)
		}
		kv, err := m.store.Get(ctx, nodeKey(name))
		if err != nil {
			return err
		}
		was := readNode(kv.Value)
		if name != taken && was.Place == m.place() {
			return m.putName(ctx, l, kv, name)
		}
		pulse, err := m.store.Get(ctx, pulseKey(was.Member()))
		if err != nil {
			return err
		}
		if free.Key == "" && name != taken && pulse.Version == 0 {
			free = store.KV{Key: nodeKey(name), Version: kv.Version, Value: kv.Value}
		}
		if kv.Version == 0 { // none after it
			break
		}
	}
	if free.Key == "" {
		return nil
	}
	return m.putName(ctx, l, free, free.Key[len(nodes):])
}

// putName has the incarnation take a name, under the condition that its record is as it was read.
func (m *Member) putName(ctx context.Context, l *incarnation, was store.KV, name string) error {
	before := readNode(was.Value)
	ids := append(slices.DeleteFunc(before.Members, func(id string) bool { return id == l.id }), l.id)
	r := NodeRecord{
		Name: name, Host: m.options.Host, Place: m.place(), Members: ids[max(0, len(ids)-keptMembers):],
		Since: l.since, Seen: m.trueWall(),
	}
	var former store.KV
	if id := before.Member(); id != "" && id != l.id {
		var err error
		if former, err = m.store.Get(ctx, pulseKey(id)); err != nil {
			return err
		}
	}
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err = m.store.Commit(ctx, store.Txn{
		If:   []store.Condition{{Key: nodeKey(name), Version: was.Version}},
		Then: []store.Op{store.Put(nodeKey(name), value)},
	}); err != nil {
		return err
	}
	l.node, l.former, l.named = r, former, time.Now()
	m.named.Store(&name)
	return nil
}

// keepName has the incarnation take another name if the node that had its name before lives, which shows when that has
// written its pulse again. The member's renewing is held.
func (m *Member) keepName(ctx context.Context, l *incarnation) error {
	if l.former.Version == 0 || time.Since(l.named) < readPulse(l.former.Value).Every+time.Second {
		return nil
	}
	kv, err := m.store.Get(ctx, l.former.Key)
	if err != nil {
		return err
	}
	if was := l.node.Name; kv.Version != 0 && kv.Version != l.former.Version {
		if err := m.takeName(ctx, l, was); err != nil {
			return err
		}
		m.log.Warn("another node has this name; want another --name for each", "name", was, "named", l.node.Name)
	} else {
		l.former = store.KV{}
	}
	return nil
}

// putNode returns what writes the incarnation's record with a pulse; nil: it has no name.
func (m *Member) putNode(l *incarnation, reserved time.Time) []store.Op {
	if l.node.Name == "" {
		return nil
	}
	r := l.node
	r.Seen, r.Reserved = m.trueWall(), reserved
	value, err := json.Marshal(r)
	if err != nil {
		return nil
	}
	return []store.Op{store.Put(nodeKey(r.Name), value)}
}

// leaveName notes that the node has left, unless it is told otherwise by the pulse: no later pulse writes the record.
func (m *Member) leaveName(ctx context.Context, l *incarnation) error {
	if err := m.keeper.writing.lock(ctx); err != nil {
		return err
	}
	defer m.keeper.writing.unlock()
	if l.node.Name == "" {
		return nil
	}
	l.node.Left = m.trueWall()
	put := m.putNode(l, time.Time{})
	l.node = NodeRecord{}
	_, err := m.store.Commit(ctx, store.Txn{If: []store.Condition{{Key: pulseKey(l.id), Version: l.pulse}}, Then: put})
	return err
}
