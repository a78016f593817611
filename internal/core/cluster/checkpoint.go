package cluster

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
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

	Reserved []Reservation `json:"reserved,omitempty"` // rising purposes
}

type wantJSON struct {
	Member string `json:"member"`
	Since  int64  `json:"since"`
	From   *int64 `json:"from,omitempty"`
	To     *int64 `json:"to,omitempty"`
	Node   *int64 `json:"node,omitempty"`
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
		if want.node != noNode {
			j.Node = &want.node
		}
		w.Wanting = append(w.Wanting, j)
	}
	for r := range s.Reservations() {
		w.Reserved = append(w.Reserved, *r)
	}
	for first, last := range s.free.fresh.all() {
		w.Fresh = append(w.Fresh, [2]int64{first, last})
	}
	for _, node := range s.free.freed.all() {
		w.Freed = append(w.Freed, node)
	}
	return w
}
