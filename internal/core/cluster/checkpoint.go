package cluster

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// checkpointJSON is a whole value as JSON.
type checkpointJSON struct {
	Version    int                            `json:"version"`
	Position   int64                          `json:"position"`
	Entries    int64                          `json:"entries"`
	Ring       []memberJSON                   `json:"ring"` // each watches the next, the last one the first
	Joins      []joinJSON                     `json:"joins"`
	Sequencers map[string]sequencerCheckpoint `json:"sequencers"`
	Expelled   []expelledJSON                 `json:"expelled,omitempty"` // rising positions
	Policy     []Share                        `json:"policy,omitempty"`   // rising names
	Region     Region                         `json:"region,omitzero"`    // of the sequencers
	Skipped    []skippedJSON                  `json:"skipped,omitempty"`  // rising positions
}

type skippedJSON struct {
	Entry string `json:"entry"`
	At    int64  `json:"at"` // its position
}

type expelledJSON struct {
	ID string `json:"id"`
	At int64  `json:"at"` // the position of its expel
}

type memberJSON struct {
	ID     string `json:"id"`
	Joined int64  `json:"joined"`
	Serves string `json:"serves,omitempty"` // a sequencer of the policy
}

type joinJSON struct {
	Joiner   string `json:"joiner"`
	Target   string `json:"target"`
	Accepted bool   `json:"accepted"`
}

type sequencerCheckpoint struct {
	Definition Definition `json:"definition"`
	Created    int64      `json:"created"`
	Wanting    []wantJSON `json:"wanting"` // in the order in which the members attached
	Fresh      [][2]int64 `json:"fresh"`   // stretches of node IDs that were never used: first and last
	Freed      []int64    `json:"freed"`   // node IDs given back, the longest free first
	Start      int64      `json:"start,omitempty"`

	Allocation *Allocation `json:"allocation,omitempty"` // if it is another than that of the definition
	Drained    []string    `json:"drained,omitempty"`
}

type wantJSON struct {
	Member string  `json:"member"`
	Since  int64   `json:"since"`
	From   *int64  `json:"from,omitempty"`
	To     *int64  `json:"to,omitempty"`
	Most   int     `json:"node_ids,omitempty"` // how many it wants, if more than one
	Node   *int64  `json:"node,omitempty"`
	More   []int64 `json:"more,omitempty"` // the node IDs that it has beside Node, in the order of Sequencer.Held
}

// EncodeCheckpoint encodes a whole value as JSON, compressed with gzip if the JSON has 64 KiB or more.
// DecodeCheckpoint returns a value that every later entry changes in the same way. 1000 members in 18 sequencers
// take 1 MB of JSON, and a quarter of that compressed. An error is returned when a field can't be written as
// JSON.
func EncodeCheckpoint(v Value) ([]byte, error) {
	w := checkpointJSON{
		Version: Version, Position: v.position, Entries: v.entries,
		Sequencers: map[string]sequencerCheckpoint{}, Policy: v.Policy(),
	}
	w.Region, _ = v.Region()
	for _, id := range v.ring() {
		p, _ := v.peers.get(id)
		serves, _ := v.assigned.get(id)
		w.Ring = append(w.Ring, memberJSON{id, p.joined, serves})
	}
	for joiner, j := range v.joins.all() {
		w.Joins = append(w.Joins, joinJSON{joiner, j.Target, j.Accepted})
	}
	for name, s := range v.sequencers.all() {
		w.Sequencers[name] = s.checkpoint()
	}
	for at, id := range v.expulsions.all() {
		w.Expelled = append(w.Expelled, expelledJSON{id, at})
	}
	for at, entry := range v.skipped.all() {
		w.Skipped = append(w.Skipped, skippedJSON{entry, at})
	}
	data, err := json.Marshal(w)
	if err != nil || len(data) < compressFrom {
		return data, err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err = z.Write(data)
	err = errors.Join(err, z.Close())
	return b.Bytes(), err
}

// compressFrom is the length in bytes from which EncodeCheckpoint compresses the JSON: people can read a shorter
// one. longest is the limit on the JSON of a compressed checkpoint, in bytes.
const (
	compressFrom = 64 << 10
	longest      = 256 << 20
)

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

func (s Sequencer) checkpoint() sequencerCheckpoint {
	w := sequencerCheckpoint{
		Definition: s.definition, Created: s.created, Allocation: s.changedAllocation(),
		Drained: slices.Collect(keys(s.drained)),
		Start:   s.free.start,
	}
	line := s.waiting
	for _, others := range []tree[int64, string]{s.paused, s.holding} {
		for since, member := range others.all() {
			line = line.put(since, member)
		}
	}
	for _, member := range line.all() {
		want := s.want(member)
		j := wantJSON{Member: member, Since: want.since}
		if want.nodes != nil {
			j.From, j.To = &want.nodes.From, &want.nodes.To
		}
		if want.most > 1 {
			j.Most = want.most
		}
		if len(want.held) > 0 {
			j.Node, j.More = &want.held[0], want.held[1:]
		}
		w.Wanting = append(w.Wanting, j)
	}
	for first, last := range s.free.fresh.all() {
		w.Fresh = append(w.Fresh, [2]int64{first, last})
	}
	for _, node := range s.free.freed.all() {
		w.Freed = append(w.Freed, node)
	}
	return w
}

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

func (r checkpointJSON) value() (Value, error) {
	v := Value{position: r.Position, entries: r.Entries}
	if r.Position < 0 || r.Entries < 0 {
		return v, fmt.Errorf("position %d after %d entries; want neither negative", r.Position, r.Entries)
	}
	for _, s := range r.Policy {
		if _, ok := r.Sequencers[s.Sequencer]; !ok || v.shares.has(s.Sequencer) {
			return v, fmt.Errorf("a share for %q; want sequencers that there are, and each once", s.Sequencer)
		}
		v.shares = v.shares.put(s.Sequencer, share{percent: s.Percent})
	}
	if err := checkShares(v.Policy()); err != nil {
		return v, err
	}
	joined := make(map[int64]bool, len(r.Ring))
	for i, m := range r.Ring {
		next, before := r.Ring[(i+1)%len(r.Ring)].ID, r.Ring[(i+len(r.Ring)-1)%len(r.Ring)].ID
		if err := checkID("id", m.ID); err != nil {
			return v, err
		}
		if v.peers.has(m.ID) {
			return v, fmt.Errorf("the member %q is in the ring twice", m.ID)
		}
		if m.Joined < 0 || m.Joined > r.Position || joined[m.Joined] {
			return v, fmt.Errorf("the member %q joined at %d; want 0 to %d, another for each member", m.ID,
				m.Joined, r.Position)
		}
		joined[m.Joined] = true
		v.peers = v.peers.putMarked(m.ID, &peer{joined: m.Joined, watches: next, watcher: before}, true)
		if m.Serves == "" {
			continue
		}
		share, ok := v.shares.get(m.Serves)
		if !ok {
			return v, fmt.Errorf("the member %q serves %q; want a sequencer of the policy", m.ID, m.Serves)
		}
		share.members = share.members.put(m.Joined, m.ID)
		v.shares, v.assigned = v.shares.put(m.Serves, share), v.assigned.put(m.ID, m.Serves)
	}
	for _, j := range r.Joins {
		target, ok := v.peers.get(j.Target)
		if err := checkID("joiner", j.Joiner); err != nil {
			return v, err
		}
		if !ok || target.joiner != "" || v.joins.has(j.Joiner) || v.peers.has(j.Joiner) {
			return v, fmt.Errorf("the join of %q at %q; want a joiner that is no member, and a member that is no "+
				"other's target", j.Joiner, j.Target)
		}
		v.hang(j.Joiner, j.Target, *target)
		v.joins = v.joins.put(j.Joiner, Join{j.Target, j.Accepted})
	}
	region := r.Region
	for name, r := range r.Sequencers {
		if err := CheckName(name); err != nil {
			return v, err
		}
		s, err := r.sequencer(v, name, region)
		if err != nil {
			return v, fmt.Errorf("sequencer %q: %w", name, err)
		}
		v.sequencers = v.sequencers.put(name, s)
	}
	for member, name := range v.assigned.all() {
		if v.isDrained(member, name) {
			return v, fmt.Errorf("the member %q serves %q, from which it is drained", member, name)
		}
	}
	settled := v
	if settled.assign(v.Members()...); settled.assigned != v.assigned {
		return v, errors.New("the members are not shared out by the policy")
	}
	at := int64(-1)
	for _, e := range r.Expelled {
		if err := checkID("id", e.ID); err != nil {
			return v, err
		}
		if e.At <= at || e.At > r.Position || v.expelled.has(e.ID) || v.peers.has(e.ID) || v.joins.has(e.ID) ||
			v.expelled.len() == maxExpelled {
			return v, fmt.Errorf("%q expelled at %d; want rising positions up to %d, at most %d, and each ID once, no "+
				"member and no joiner", e.ID, e.At, r.Position, maxExpelled)
		}
		at = e.At
		v.expelled, v.expulsions = v.expelled.put(e.ID, at), v.expulsions.put(at, e.ID)
	}
	at = -1
	for _, e := range r.Skipped {
		if err := checkID("entry", e.Entry); err != nil {
			return v, err
		}
		if e.At <= at || e.At > r.Position {
			return v, fmt.Errorf("%q skipped at %d; want rising positions up to %d", e.Entry, e.At, r.Position)
		}
		at = e.At
		v.skipped = v.skipped.put(at, e.Entry)
	}
	return v, nil
}

func (r sequencerCheckpoint) sequencer(v Value, name string, region Region) (Sequencer, error) {
	s := Sequencer{
		definition: r.Definition, region: region, allocation: r.Definition.Allocation.Plain(),
		created: r.Created,
	}
	if r.Allocation != nil {
		s.allocation = r.Allocation.Plain()
		if err := s.allocation.Validate(); err != nil {
			return s, err
		}
	}
	switch {
	case s.definition == (Definition{}):
		return s, errors.New("it has no definition")
	case s.created < 0 || s.created > v.position:
		return s, fmt.Errorf("created at %d; want 0 to %d", s.created, v.position)
	}
	nodes, err := region.Nodes(s.definition)
	if err != nil {
		return s, err
	}
	if s.free.start = max(r.Start, nodes.From); s.free.start > nodes.To {
		return s, fmt.Errorf("its node IDs start at %d; want %d to %d", r.Start, nodes.From, nodes.To)
	}
	accounted := int64(0) // how many node IDs are fresh, freed or held: each must be one of these, once
	at := nodes.From      // the first node ID at which the next stretch may begin
	for _, f := range r.Fresh {
		if f[0] < at || f[1] < f[0] || f[1] > nodes.To {
			return s, fmt.Errorf("fresh node IDs %d to %d; want %d to %d, rising", f[0], f[1], at, nodes.To)
		}
		s.free = s.free.withFresh(f[0], f[1])
		accounted += f[1] - f[0] + 1
		at = f[1] + 2 // adjacent stretches would be one
	}
	known := make(map[int64]bool, len(r.Freed))
	account := func(node int64) error {
		_, last, ok := s.free.fresh.floor(node)
		if known[node] || ok && node <= last || !nodes.Holds(node) {
			return fmt.Errorf("the node ID %d is there twice, or is not one of %d to %d", node, nodes.From, nodes.To)
		}
		known[node] = true
		accounted++
		return nil
	}
	for _, node := range r.Freed {
		if err := account(node); err != nil {
			return s, err
		}
		s.free = s.free.give(node)
	}
	since := s.created
	for _, j := range r.Wanting {
		if !v.peers.has(j.Member) || s.wanting.has(j.Member) || j.Since <= since || j.Since > v.position || !j.sound() {
			return s, fmt.Errorf("the attach of %q at %d; want each member once, rising positions, a valid range of "+
				"node IDs, and at most as many of these as it wants, up to %d", j.Member, j.Since, MaxNodeIDs)
		}
		since = j.Since
		w := &want{member: j.Member, since: j.Since, most: max(j.Most, 1)}
		if j.From != nil {
			w.nodes = &Range{From: *j.From, To: *j.To}
		}
		s = s.attach(w)
		serves := v.serves(j.Member, name)
		if !serves {
			s = s.pause(j.Member)
		}
		held := j.held()
		if len(held) == 0 {
			continue
		}
		if !serves {
			return s, fmt.Errorf("%q has the node ID %d, and serves another sequencer of the policy", j.Member, held[0])
		}
		for _, node := range held {
			if err := account(node); err != nil {
				return s, err
			}
			s.nodes = s.nodes.put(node, j.Member)
		}
		s = s.hold(w, held)
	}
	for _, member := range r.Drained {
		if !v.peers.has(member) || s.wanting.has(member) || s.drained.has(member) {
			return s, fmt.Errorf("%q is drained; want each member once, and none that is attached", member)
		}
		s.drained = s.drained.put(member, struct{}{})
	}
	if accounted != nodes.Size() {
		return s, fmt.Errorf("%d node IDs are free or held; want %d", accounted, nodes.Size())
	}
	if s.allocate(v.peers.len()) != s {
		return s, errors.New("its node IDs are not held by the first in line")
	}
	return s, nil
}

// held returns the node IDs that the member has.
func (j wantJSON) held() []int64 {
	if j.Node == nil {
		return nil
	}
	return append([]int64{*j.Node}, j.More...)
}

// sound reports whether the range is absent, or valid with the node IDs in it, and these are not too many.
func (j wantJSON) sound() bool {
	if j.Most < 0 || j.Most > MaxNodeIDs || len(j.held()) > max(j.Most, 1) || j.Node == nil && j.More != nil {
		return false
	}
	if j.From == nil || j.To == nil {
		return j.From == nil && j.To == nil
	}
	within := Range{From: *j.From, To: *j.To}
	return 0 <= within.From && within.From <= within.To && !slices.ContainsFunc(j.held(), func(node int64) bool {
		return !within.Holds(node)
	})
}
