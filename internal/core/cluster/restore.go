package cluster

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// DecodeCheckpoint reads what EncodeCheckpoint wrote. An *UnreadableError is returned when data is anything else:
// another version, or a value that no log can lead to.
func DecodeCheckpoint(data []byte) (Value, error) {
	var version struct {
		Version int `json:"version"`
	}
	data, err := expanded(data)
	if err == nil {
		err = json.Unmarshal(data, &version)
	}
	if err == nil && !readable(version.Version) {
		err = fmt.Errorf("a checkpoint of version %d; this program reads versions 1 to %d", version.Version, Version)
	}
	var r checkpointJSON
	if err == nil {
		err = strictJSON(data, &r)
	}
	if err != nil {
		return Value{}, &UnreadableError{Err: err}
	}
	v, err := r.value()
	if err != nil {
		return Value{}, &UnreadableError{Err: fmt.Errorf("checkpoint: %w", err)}
	}
	return v, nil
}

// expanded returns the JSON of a checkpoint, which may be compressed.
func expanded(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) { // the magic number of gzip
		return data, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	data, err = io.ReadAll(io.LimitReader(z, longest+1))
	if err == nil && len(data) > longest {
		err = fmt.Errorf("a checkpoint of more than %d bytes", longest)
	}
	return data, err
}

// value restores one part after the other. Each must fit those before it, as it does in every value that a log leads
// to.
func (r checkpointJSON) value() (Value, error) {
	v := Value{position: r.Position, entries: r.Entries}
	if r.Position < 0 || r.Entries < 0 {
		return v, fmt.Errorf("position %d after %d entries; want neither negative", r.Position, r.Entries)
	}
	for _, restore := range []func(checkpointJSON) error{
		v.restorePolicy, v.restoreRing, v.restoreJoins, v.restoreSequencers, v.restoreExpelled, v.restoreSkipped,
	} {
		if err := restore(r); err != nil {
			return v, err
		}
	}
	return v, nil
}

func (v *Value) restorePolicy(r checkpointJSON) error {
	for _, s := range r.Policy {
		q, ok := r.Sequencers[s.Sequencer]
		if !ok || q.Definition.Claimed() || v.shares.has(s.Sequencer) {
			return fmt.Errorf("a share for %q; want sequencers that there are, with node IDs, and each once",
				s.Sequencer)
		}
		v.shares = v.shares.put(s.Sequencer, share{percent: s.Percent})
	}
	return checkShares(v.Policy())
}

func (v *Value) restoreRing(r checkpointJSON) error {
	joined := make(map[int64]bool, len(r.Ring))
	for i, m := range r.Ring {
		next, before := r.Ring[(i+1)%len(r.Ring)].ID, r.Ring[(i+len(r.Ring)-1)%len(r.Ring)].ID
		if err := checkID("id", m.ID); err != nil {
			return err
		}
		if v.peers.has(m.ID) {
			return fmt.Errorf("the member %q is in the ring twice", m.ID)
		}
		if m.Joined < 0 || m.Joined > r.Position || joined[m.Joined] {
			return fmt.Errorf("the member %q joined at %d; want 0 to %d, another for each member", m.ID,
				m.Joined, r.Position)
		}
		joined[m.Joined] = true
		v.peers = v.peers.putMarked(m.ID, &peer{joined: m.Joined, watches: next, watcher: before}, true)
		if m.Serves == "" {
			continue
		}
		share, ok := v.shares.get(m.Serves)
		if !ok {
			return fmt.Errorf("the member %q serves %q; want a sequencer of the policy", m.ID, m.Serves)
		}
		share.members = share.members.put(m.Joined, m.ID)
		v.shares, v.assigned = v.shares.put(m.Serves, share), v.assigned.put(m.ID, m.Serves)
	}
	return nil
}

func (v *Value) restoreJoins(r checkpointJSON) error {
	for _, j := range r.Joins {
		target, ok := v.peers.get(j.Target)
		if err := checkID("joiner", j.Joiner); err != nil {
			return err
		}
		if !ok || target.joiner != "" || v.joins.has(j.Joiner) || v.peers.has(j.Joiner) {
			return fmt.Errorf("the join of %q at %q; want a joiner that is no member, and a member that is no "+
				"other's target", j.Joiner, j.Target)
		}
		v.hang(j.Joiner, j.Target, *target)
		v.joins = v.joins.put(j.Joiner, Join{j.Target, j.Accepted})
	}
	return nil
}

// restoreSequencers restores the sequencers, and checks that the members serve them as the policy says.
func (v *Value) restoreSequencers(r checkpointJSON) error {
	for name, s := range r.Sequencers {
		if err := CheckName(name); err != nil {
			return err
		}
		s, err := s.sequencer(*v, name, r.Region)
		if err != nil {
			return fmt.Errorf("sequencer %q: %w", name, err)
		}
		v.sequencers = v.sequencers.put(name, s)
	}
	for member, name := range v.assigned.all() {
		if v.isDrained(member, name) {
			return fmt.Errorf("the member %q serves %q, from which it is drained", member, name)
		}
	}
	settled := *v
	if settled.assign(v.Members()...); settled.assigned != v.assigned {
		return errors.New("the members are not shared out by the policy")
	}
	return nil
}

func (v *Value) restoreExpelled(r checkpointJSON) error {
	at := int64(-1)
	for _, e := range r.Expelled {
		if err := checkID("id", e.ID); err != nil {
			return err
		}
		if e.At <= at || e.At > r.Position || v.expelled.has(e.ID) || v.peers.has(e.ID) || v.joins.has(e.ID) ||
			v.expelled.len() == maxExpelled {
			return fmt.Errorf("%q expelled at %d; want rising positions up to %d, at most %d, and each ID once, no "+
				"member and no joiner", e.ID, e.At, r.Position, maxExpelled)
		}
		at = e.At
		v.expelled, v.expulsions = v.expelled.put(e.ID, at), v.expulsions.put(at, e.ID)
	}
	return nil
}

func (v *Value) restoreSkipped(r checkpointJSON) error {
	at := int64(-1)
	for _, e := range r.Skipped {
		if err := checkID("entry", e.Entry); err != nil {
			return err
		}
		if e.At <= at || e.At > r.Position {
			return fmt.Errorf("%q skipped at %d; want rising positions up to %d", e.Entry, e.At, r.Position)
		}
		at = e.At
		v.skipped = v.skipped.put(at, e.Entry)
	}
	return nil
}

// sequencer returns a sequencer of v, which has its members and its policy already.
func (r sequencerCheckpoint) sequencer(v Value, name string, region Region) (Sequencer, error) {
	s := restored{Sequencer: Sequencer{
		definition: r.Definition, region: region,
		allocation: r.Definition.Allocation.Plain(), created: r.Created,
	}}
	if r.Allocation != nil {
		s.allocation = r.Allocation.Plain()
		if err := s.allocation.Validate(); err != nil {
			return s.Sequencer, err
		}
	}
	switch {
	case s.definition == (Definition{}):
		return s.Sequencer, errors.New("it has no definition")
	case s.created < 0 || s.created > v.position:
		return s.Sequencer, fmt.Errorf("created at %d; want 0 to %d", s.created, v.position)
	case s.definition.Claimed() &&
		(r.Start != 0 || r.Allocation != nil || len(r.Wanting)+len(r.Drained)+len(r.Reserved) > 0):
		return s.Sequencer, errors.New("its IDs are claimed; want no node IDs, and nobody who wants one")
	}
	err := s.restoreFree(r)
	if err == nil {
		err = s.restoreReserved(r, v.position)
	}
	if err == nil {
		err = s.restoreWanting(r, v, name)
	}
	if err == nil {
		err = s.restoreDrained(r, v)
	}
	switch {
	case err != nil:
	case s.accounted != s.all.Size():
		err = fmt.Errorf("%d node IDs are free, held or reserved; want %d", s.accounted, s.all.Size())
	case s.allocate(v.peers.len()) != s.Sequencer:
		err = errors.New("its node IDs are not held by the first in line")
	}
	return s.Sequencer, err
}

// restored is a sequencer as far as it is restored. Each of its node IDs must be fresh, freed, held or reserved, and
// only once.
type restored struct {
	Sequencer
	all       Range
	known     map[int64]bool // freed, held or reserved
	accounted int64          // how many node IDs are fresh, or known
}

// account counts a node ID that is freed, held or reserved.
func (s *restored) account(node int64) error {
	if s.known[node] || s.free.neverTaken(node) || !s.all.Holds(node) {
		return fmt.Errorf("the node ID %d is there twice, or is not one of %d to %d", node, s.all.From, s.all.To)
	}
	s.known[node] = true
	s.accounted++
	return nil
}

func (s *restored) restoreFree(r sequencerCheckpoint) (err error) {
	if s.all, err = s.region.Nodes(s.definition); err != nil {
		return err
	}
	if s.free.start = max(r.Start, s.all.From); r.Start != 0 && s.free.start > s.all.To {
		return fmt.Errorf("its node IDs start at %d; want %d to %d", r.Start, s.all.From, s.all.To)
	}
	at := s.all.From // the first node ID at which the next stretch may begin
	for _, f := range r.Fresh {
		if f[0] < at || f[1] < f[0] || f[1] > s.all.To {
			return fmt.Errorf("fresh node IDs %d to %d; want %d to %d, rising", f[0], f[1], at, s.all.To)
		}
		s.free = s.free.withFresh(f[0], f[1])
		s.accounted += f[1] - f[0] + 1
		at = f[1] + 2 // adjacent stretches would be one
	}
	s.known = make(map[int64]bool, len(r.Freed))
	for _, node := range r.Freed {
		if err := s.account(node); err != nil {
			return err
		}
		s.free = s.free.give(node)
	}
	return nil
}

func (s *restored) restoreWanting(r sequencerCheckpoint, v Value, name string) error {
	since := s.created
	for _, j := range r.Wanting {
		if !v.peers.has(j.Member) || s.wanting.has(j.Member) || j.Since <= since || j.Since > v.position || !j.sound() {
			return fmt.Errorf("the attach of %q at %d; want each member once, rising positions, and a valid range of "+
				"node IDs, with the one that it has", j.Member, j.Since)
		}
		since = j.Since
		w := &want{member: j.Member, since: j.Since, node: noNode}
		if j.From != nil {
			w.nodes = &Range{From: *j.From, To: *j.To}
		}
		s.Sequencer = s.attach(w)
		serves := v.serves(j.Member, name)
		if !serves {
			s.Sequencer = s.pause(j.Member)
		}
		if j.Node == nil {
			continue
		}
		if !serves {
			return fmt.Errorf("%q has the node ID %d, and serves another sequencer of the policy", j.Member, *j.Node)
		}
		if err := s.account(*j.Node); err != nil {
			return err
		}
		s.Sequencer = s.hold(w, *j.Node)
	}
	return nil
}

func (s *restored) restoreDrained(r sequencerCheckpoint, v Value) error {
	for _, member := range r.Drained {
		if !v.peers.has(member) || s.wanting.has(member) || s.drained.has(member) {
			return fmt.Errorf("%q is drained; want each member once, and none that is attached", member)
		}
		s.drained = s.drained.put(member, struct{}{})
	}
	return nil
}

// sound reports whether the range is absent, or valid with the node ID in it.
func (j wantJSON) sound() bool {
	if j.From == nil || j.To == nil {
		return j.From == nil && j.To == nil
	}
	within := Range{From: *j.From, To: *j.To}
	return 0 <= within.From && within.From <= within.To && (j.Node == nil || within.Holds(*j.Node))
}
