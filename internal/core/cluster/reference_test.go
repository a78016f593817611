package cluster

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// reference is the cluster with plain maps and slices: each rule as it is told, with no thought of speed. It is what
// Apply is compared with.
type reference struct {
	skipped    []int64
	members    []string          // in the order in which they joined
	pairs      map[string]string // watcher to watched
	prepared   map[string]string // joiner to target
	accepted   map[string]string // joiner to target
	sequencers map[string]*plainSequencer
	expelled   []string // the latest last
	policy     []Share  // by name
	serves     map[string]string
}

type plainSequencer struct {
	definition Definition
	allocation Allocation
	region     Region
	ids        []int64 // the node IDs that there are, in the order in which they are given at first
	created    int64
	drained    map[string]bool
	wanting    []string // in the order of their attach
	ranges     map[string]*Range
	nodes      map[string]int64 // by member, of those that have one
	free       []int64
	used       map[int64]bool
	reserved   map[string][]int64
	reservedAt map[string]int64
}

func newReference() *reference {
	return &reference{
		pairs: map[string]string{}, prepared: map[string]string{}, accepted: map[string]string{},
		sequencers: map[string]*plainSequencer{}, serves: map[string]string{},
	}
}

func (r *reference) isMember(id string) bool { return slices.Contains(r.members, id) }

// target returns that of a pending join.
func (r *reference) target(joiner string) (string, bool) {
	if t, ok := r.prepared[joiner]; ok {
		return t, true
	}
	t, ok := r.accepted[joiner]
	return t, ok
}

// watcher returns who watches a member: itself, when it is alone.
func (r *reference) watcher(member string) string {
	for watcher, watched := range r.pairs {
		if watched == member {
			return watcher
		}
	}
	return member
}

func (r *reference) candidates() []string {
	busy := map[string]bool{}
	for _, pending := range []map[string]string{r.prepared, r.accepted} {
		for _, target := range pending {
			busy[target], busy[r.watcher(target)] = true, true
		}
	}
	var free []string
	for _, member := range r.members {
		if !busy[member] {
			free = append(free, member)
		}
	}
	slices.Sort(free)
	return free
}

func (r *reference) forget(joiner string) {
	delete(r.prepared, joiner)
	delete(r.accepted, joiner)
}

func (r *reference) apply(e Entry) Result {
	switch c := e.Command.(type) {
	case PrepareJoin:
		return r.prepare(c.Joiner, e.Position)
	case NotifyWatchers:
		if target, ok := r.prepared[c.Joiner]; ok {
			delete(r.prepared, c.Joiner)
			r.accepted[c.Joiner] = target
			return Applied
		}
	case AcceptJoin:
		if target, ok := r.accepted[c.Joiner]; ok {
			delete(r.accepted, c.Joiner)
			r.pairs[r.watcher(target)] = c.Joiner
			r.pairs[c.Joiner] = target
			r.join(c.Joiner)
			return Applied
		}
	case AbortJoin:
		if _, ok := r.target(c.Joiner); ok {
			r.forget(c.Joiner)
			return Applied
		}
	case Leave:
		return r.leave(c.Member)
	case Skipped:
		r.skipped = append(r.skipped, e.Position)
		return Applied
	case PeerGC, AskClocks:
	case CreateSequencer:
		switch s, ok := r.sequencers[c.Sequencer]; {
		case !ok:
			for _, other := range r.sequencers {
				if other.region != c.Region || c.SolePrefix && other.definition.Prefix == c.Definition.Prefix {
					return Refused
				}
			}
			for _, q := range c.Quotas {
				there := int64(0)
				for name := range r.sequencers {
					if q.Names == nil || slices.Contains(q.Names, name) || slices.Contains(q.Names, name[:1]+"*") {
						there++
					}
				}
				if there >= q.Most {
					return Refused
				}
			}
			s = newPlainSequencer(c)
			s.created = e.Position
			for _, reserve := range c.Reserve {
				if s.reserve(reserve, e.Position) != Applied {
					return Refused
				}
			}
			r.sequencers[c.Sequencer] = s
			return Applied
		case !s.definition.Equal(c.Definition):
			return Refused
		}
	case DestroySequencer:
		if s, ok := r.sequencers[c.Sequencer]; !ok || c.Created != 0 && c.Created != s.created || len(s.reserved) > 0 {
			return Refused
		}
		delete(r.sequencers, c.Sequencer)
		r.policy = slices.DeleteFunc(r.policy, func(s Share) bool { return s.Sequencer == c.Sequencer })
		maps.DeleteFunc(r.serves, func(_, name string) bool { return name == c.Sequencer })
		r.allocate()
		return Applied
	case SetPolicy:
		return r.setPolicy(c)
	case Expel:
		switch {
		case slices.Contains(r.expelled, c.Member):
			return Unchanged
		case r.leave(c.Member) == Unchanged:
			return Refused
		}
		r.expelled = append(r.expelled, c.Member)
		if len(r.expelled) > 256 {
			r.expelled = r.expelled[1:]
		}
		return Applied
	case Allocate:
		s, ok := r.sequencers[c.Sequencer]
		switch {
		case !ok || c.Created != 0 && c.Created != s.created || s.counts():
			return Refused
		case s.allocation == c.Allocation:
			return Unchanged
		}
		s.allocation = c.Allocation
		s.allocate(r, c.Sequencer)
		return Applied
	case Drain:
		result := r.change(c.Sequencer, c.Member, func(s *plainSequencer) bool {
			if s.drained[c.Member] {
				return false
			}
			s.detach(c.Member)
			s.drained[c.Member] = true
			if r.serves[c.Member] == c.Sequencer {
				delete(r.serves, c.Member)
			}
			return true
		})
		r.allocate()
		return result
	case Undrain:
		result := r.change(c.Sequencer, c.Member, func(s *plainSequencer) bool {
			if !s.drained[c.Member] {
				return false
			}
			delete(s.drained, c.Member)
			return true
		})
		r.allocate()
		return result
	case Move:
		return r.move(c)
	case Reserve:
		s, ok := r.sequencers[c.Sequencer]
		if !ok || c.Created != 0 && c.Created != s.created || s.counts() {
			return Refused
		}
		return s.reserve(c.Reserving, e.Position)
	case Release:
		s, ok := r.sequencers[c.Sequencer]
		switch {
		case !ok || c.Created != 0 && c.Created != s.created || s.counts():
			return Refused
		case s.reserved[c.For] == nil || s.reservedAt[c.For] != c.Since:
			return Unchanged
		}
		s.free = append(s.free, s.reserved[c.For]...)
		delete(s.reserved, c.For)
		s.allocate(r, c.Sequencer)
		return Applied
	case Attach:
		if s := r.sequencers[c.Sequencer]; s != nil && s.drained[c.Member] {
			return Refused
		}
		return r.change(c.Sequencer, c.Member, func(s *plainSequencer) bool {
			if slices.Contains(s.wanting, c.Member) || s.drained[c.Member] {
				return false
			}
			s.wanting = append(s.wanting, c.Member)
			s.ranges[c.Member] = c.Nodes
			return true
		})
	case Detach:
		return r.change(c.Sequencer, c.Member, func(s *plainSequencer) bool { return s.detach(c.Member) })
	case Decline:
		return r.change(c.Sequencer, c.Member, func(s *plainSequencer) bool {
			if s.holder(c.Node) != c.Member {
				return false
			}
			s.giveBack(c.Member)
			s.take(c.Member, s.firstFree(c.Member))
			return true
		})
	}
	return Unchanged
}

// move gives a node ID to a member: whoever held it gives it back before, and the member the one that it held; and if
// the allocation has no room for one more holder, the last other one in the line gives its own back.
func (r *reference) move(c Move) Result {
	s, ok := r.sequencers[c.Sequencer]
	if !ok || !slices.Contains(s.wanting, c.To) || s.isReserved(c.Node) || !r.mayHold(c.To, c.Sequencer) ||
		!slices.Contains(s.ids, c.Node) ||
		!s.accepts(c.To, c.Node) {
		return Refused
	}
	holder := s.holder(c.Node)
	if holder == c.To {
		return Unchanged
	}
	s.giveBack(c.To)
	s.giveBack(holder)
	s.take(c.To, c.Node)
	for i := len(s.wanting) - 1; len(s.nodes) > s.holders(r, c.Sequencer); i-- {
		if s.wanting[i] != c.To {
			s.giveBack(s.wanting[i])
		}
	}
	s.allocate(r, c.Sequencer)
	return Applied
}

func (r *reference) prepare(joiner string, position int64) Result {
	_, pending := r.target(joiner)
	candidates := r.candidates()
	switch {
	case slices.Contains(r.expelled, joiner):
		return Unchanged
	case pending || r.isMember(joiner):
		return Unchanged
	case len(r.members) == 0:
		r.join(joiner)
	case len(candidates) == 0:
		return Refused
	default:
		r.prepared[joiner] = candidates[position%int64(len(candidates))]
	}
	return Applied
}

func (r *reference) join(id string) {
	r.members = append(r.members, id)
	r.allocate()
}

func (r *reference) leave(id string) Result {
	if _, pending := r.target(id); pending {
		r.forget(id)
		return Applied
	}
	if !r.isMember(id) {
		return Unchanged
	}
	watcher, watched := r.watcher(id), r.pairs[id]
	for _, pending := range []map[string]string{r.prepared, r.accepted} {
		for joiner, target := range pending {
			if target == id || target == watched {
				delete(pending, joiner)
			}
		}
	}
	delete(r.pairs, id)
	switch {
	case len(r.members) == 2:
		clear(r.pairs)
	case len(r.members) > 2:
		r.pairs[watcher] = watched
	}
	r.members = slices.DeleteFunc(r.members, func(m string) bool { return m == id })
	for _, s := range r.sequencers {
		s.detach(id)
		delete(s.drained, id)
	}
	delete(r.serves, id)
	r.allocate()
	return Applied
}

// allocate shares the members out by the policy, and then allocates the node IDs.
func (r *reference) allocate() {
	r.shareOut()
	for name, s := range r.sequencers {
		s.allocate(r, name)
	}
}

// mayHold tells whether a member may have a node ID, as far as the policy is concerned.
func (r *reference) mayHold(member, name string) bool {
	return r.serves[member] == name || !slices.ContainsFunc(r.policy, func(s Share) bool { return s.Sequencer == name })
}

func (r *reference) setPolicy(c SetPolicy) Result {
	policy := slices.SortedFunc(slices.Values(c.Shares), func(a, b Share) int {
		return strings.Compare(a.Sequencer, b.Sequencer)
	})
	if slices.Equal(policy, r.policy) {
		return Unchanged
	}
	before := map[string]bool{}
	for _, s := range r.policy {
		before[s.Sequencer] = true
	}
	now := map[string]bool{}
	for _, s := range policy {
		if q := r.sequencers[s.Sequencer]; q == nil || q.counts() {
			return Refused
		}
		now[s.Sequencer] = true
	}
	r.policy = policy
	maps.DeleteFunc(r.serves, func(_, name string) bool { return !now[name] })
	r.shareOut()
	for name := range now {
		if before[name] {
			continue
		}
		s := r.sequencers[name]
		for _, member := range slices.Sorted(slices.Values(s.wanting)) {
			if r.serves[member] != name {
				s.giveBack(member)
			}
		}
	}
	r.allocate()
	return Applied
}

// shareOut has every member serve a sequencer of the policy.
func (r *reference) shareOut() {
	var fresh []string
	for _, member := range r.members {
		for _, s := range r.policy {
			if r.serves[member] == "" && !r.sequencers[s.Sequencer].drained[member] {
				fresh = append(fresh, member)
				break
			}
		}
	}
	due := r.due(len(r.serves) + len(fresh))
	lacks := func(name string) int { return due[name] - len(r.servants(name)) }
	for _, member := range fresh {
		stays, best := "", ""
		for _, s := range r.policy {
			name := s.Sequencer
			if r.sequencers[name].drained[member] {
				continue
			}
			if best == "" || lacks(name) > lacks(best) {
				best = name
			}
			if _, holds := r.sequencers[name].nodes[member]; holds && lacks(name) > 0 &&
				(stays == "" || lacks(name) > lacks(stays)) {
				stays = name
			}
		}
		r.serves[member] = cmp.Or(stays, best)
	}
	for {
		way := r.way(lacks)
		if way == nil {
			return
		}
		for i := len(way) - 1; i > 0; i-- {
			member := r.changes(way[i-1], way[i])
			from := r.sequencers[way[i-1]]
			from.giveBack(member)
			r.serves[member] = way[i]
		}
	}
}

// servants are the members that serve a sequencer, in the order in which they joined.
func (r *reference) servants(name string) []string {
	return slices.DeleteFunc(slices.Clone(r.members), func(member string) bool { return r.serves[member] != name })
}

// due is how many of so many members are to serve each sequencer: the whole part of its share, and one more for those
// whose remainders are the largest.
func (r *reference) due(members int) map[string]int {
	given, rest := 0, false
	for _, s := range r.policy {
		given += int(s.Percent)
		rest = rest || s.Percent == 0
	}
	of := 100
	if !rest {
		of = given
	}
	due, remainder, left := map[string]int{}, map[string]int{}, members
	for _, s := range r.policy {
		percent := int(s.Percent)
		if percent == 0 {
			percent = 100 - given
		}
		for (due[s.Sequencer]+1)*of <= members*percent {
			due[s.Sequencer]++
		}
		remainder[s.Sequencer] = members*percent - due[s.Sequencer]*of
		left -= due[s.Sequencer]
	}
	larger := func(a, b string) bool {
		if remainder[a] != remainder[b] {
			return remainder[a] > remainder[b]
		}
		return len(r.servants(a)) > due[a] && len(r.servants(b)) <= due[b]
	}
	var more []string
	for ; left > 0; left-- {
		best := ""
		for _, s := range r.policy {
			if !slices.Contains(more, s.Sequencer) && (best == "" || larger(s.Sequencer, best)) {
				best = s.Sequencer
			}
		}
		more = append(more, best)
	}
	for _, name := range more {
		due[name]++
	}
	return due
}

// way is a shortest chain of sequencers, from one that has too many to one that has too few.
func (r *reference) way(lacks func(string) int) []string {
	var ways [][]string
	seen := map[string]bool{}
	for _, s := range r.policy {
		if lacks(s.Sequencer) < 0 {
			ways = append(ways, []string{s.Sequencer})
			seen[s.Sequencer] = true
		}
	}
	for len(ways) > 0 {
		way := ways[0]
		ways = ways[1:]
		for _, s := range r.policy {
			if seen[s.Sequencer] || r.changes(way[len(way)-1], s.Sequencer) == "" {
				continue
			}
			longer := append(slices.Clone(way), s.Sequencer)
			if lacks(s.Sequencer) > 0 {
				return longer
			}
			seen[s.Sequencer] = true
			ways = append(ways, longer)
		}
	}
	return nil
}

// changes is the last to join of those that could change from one sequencer to another.
func (r *reference) changes(from, to string) string {
	last := ""
	for _, member := range r.servants(from) {
		if !r.sequencers[to].drained[member] {
			last = member
		}
	}
	return last
}

func (r *reference) change(name, member string, do func(*plainSequencer) bool) Result {
	s, ok := r.sequencers[name]
	if !ok || !r.isMember(member) || s.counts() {
		return Refused
	}
	if !do(s) {
		return Unchanged
	}
	s.allocate(r, name)
	return Applied
}

func newPlainSequencer(c CreateSequencer) *plainSequencer {
	d := c.Definition
	s := &plainSequencer{
		definition: d, region: c.Region, allocation: d.Allocation, drained: map[string]bool{},
		ranges: map[string]*Range{}, nodes: map[string]int64{},
		used: map[int64]bool{}, reserved: map[string][]int64{}, reservedAt: map[string]int64{},
	}
	if s.counts() {
		return s
	}
	regions := max(1, int(c.Region.Of))
	for node := range capacityOf(d.Nodes) {
		if node*regions/capacityOf(d.Nodes) == int(c.Region.Number) {
			s.ids = append(s.ids, int64(node))
		}
	}
	if at := slices.Index(s.ids, c.Start); at >= 0 {
		s.ids = slices.Concat(s.ids[at:], s.ids[:at])
	}
	s.free = slices.Clone(s.ids)
	return s
}

// counts tells whether it is a counter: nobody can want a node ID of it.
func (s *plainSequencer) counts() bool { return s.definition.Claimed() }

func capacityOf(nodes int64) int {
	capacity := 1
	for int64(capacity) < nodes {
		capacity *= 2
	}
	return capacity
}

func (s *plainSequencer) detach(member string) bool {
	at := slices.Index(s.wanting, member)
	if at < 0 {
		return false
	}
	s.giveBack(member)
	s.wanting = slices.Delete(s.wanting, at, at+1)
	delete(s.ranges, member)
	return true
}

// giveBack puts the node ID of a member, if it has one, at the end of the free ones.
func (s *plainSequencer) giveBack(member string) {
	if node, ok := s.nodes[member]; ok {
		s.free = append(s.free, node)
		delete(s.nodes, member)
	}
}

// reserve takes node IDs away that are for later or free: those that it names, or the highest for later, the highest
// never used, and then the longest free.
func (s *plainSequencer) reserve(c Reserving, at int64) Result {
	if there := s.reserved[c.For]; there != nil {
		if c.Nodes != nil && slices.Equal(there, c.Nodes) || c.Nodes == nil && len(there) == int(c.Count) {
			return Unchanged
		}
		return Refused
	}
	wanted, later := c.Nodes, s.reserved["later"]
	if c.Nodes == nil {
		var fresh, freed []int64
		for _, node := range s.free {
			if s.used[node] {
				freed = append(freed, node)
			} else {
				fresh = append(fresh, node)
			}
		}
		down := func(a, b int64) int { return cmp.Compare(b, a) }
		slices.SortFunc(fresh, down)
		wanted = slices.Concat(slices.SortedFunc(slices.Values(later), down), fresh, freed)
		if len(wanted) < int(c.Count) {
			return Refused
		}
		wanted = slices.Sorted(slices.Values(wanted[:c.Count]))
	}
	for _, node := range wanted {
		if !slices.Contains(s.free, node) && !slices.Contains(later, node) {
			return Refused
		}
	}
	left := slices.DeleteFunc(slices.Clone(later), func(node int64) bool { return slices.Contains(wanted, node) })
	if s.reserved["later"] = left; len(left) == 0 {
		delete(s.reserved, "later")
	}
	for _, node := range wanted {
		s.remove(node)
	}
	s.reserved[c.For], s.reservedAt[c.For] = wanted, at
	return Applied
}

// isReserved tells whether a node ID is reserved.
func (s *plainSequencer) isReserved(node int64) bool {
	for _, nodes := range s.reserved {
		if slices.Contains(nodes, node) {
			return true
		}
	}
	return false
}

// remove takes a node ID out of the free ones.
func (s *plainSequencer) remove(node int64) {
	s.used[node] = true
	s.free = slices.DeleteFunc(s.free, func(free int64) bool { return free == node })
}

// take gives a free node ID to a member.
func (s *plainSequencer) take(member string, node int64) {
	s.remove(node)
	s.nodes[member] = node
}

// none is no node ID.
const none = -1

// firstFree returns the node ID that has been free longest, of those that a member accepts.
func (s *plainSequencer) firstFree(member string) int64 {
	for _, node := range s.free {
		if s.accepts(member, node) {
			return node
		}
	}
	return none
}

// holder returns who has a node ID, or nobody.
func (s *plainSequencer) holder(node int64) string {
	for member, its := range s.nodes {
		if its == node {
			return member
		}
	}
	return ""
}

func (s *plainSequencer) accepts(member string, node int64) bool {
	r := s.ranges[member]
	return r == nil || r.From <= node && node <= r.To
}

// holders returns how many members are to hold a node ID.
func (s *plainSequencer) holders(r *reference, name string) int {
	members, able := len(r.members), 0
	for _, member := range s.wanting {
		if r.mayHold(member, name) {
			able++
		}
	}
	holders := members
	switch a := s.allocation; a.Kind {
	case AllocateCount:
		holders = int(a.Count)
	case AllocatePercent:
		for holders = 0; int64(holders)*100 < a.Percent*int64(members); {
			holders++
		}
	}
	return min(holders, len(s.ids), able)
}

func (s *plainSequencer) allocate(r *reference, name string) {
	holders, held := s.holders(r, name), 0
	for _, member := range s.wanting {
		if _, ok := s.nodes[member]; ok {
			if held++; held > holders {
				s.giveBack(member)
			}
		}
	}
	for _, member := range s.wanting {
		_, has := s.nodes[member]
		if node := s.firstFree(member); !has && node != none && r.mayHold(member, name) && len(s.nodes) < holders {
			s.take(member, node)
		}
	}
}

// marshal writes what Value.MarshalJSON writes.
func (r *reference) marshal() ([]byte, error) {
	type sequencer struct {
		Nodes      map[int64]string `json:"nodes"`
		Waiting    []string         `json:"waiting"`
		Drained    []string         `json:"drained,omitempty"`
		Allocation *Allocation      `json:"allocation,omitempty"`

		Reserved map[string][]int64 `json:"reserved,omitempty"`
	}
	sequencers := map[string]sequencer{}
	var region Region
	for name, s := range r.sequencers {
		region = s.region
		w := sequencer{Nodes: map[int64]string{}, Waiting: []string{}, Drained: slices.Sorted(maps.Keys(s.drained))}
		w.Reserved = s.reserved
		if s.allocation != s.definition.Allocation {
			w.Allocation = &s.allocation
		}
		var paused []string
		for _, member := range s.wanting {
			switch node, ok := s.nodes[member]; {
			case ok:
				w.Nodes[node] = member
			case r.mayHold(member, name):
				w.Waiting = append(w.Waiting, member)
			default:
				paused = append(paused, member)
			}
		}
		w.Waiting = append(w.Waiting, paused...)
		sequencers[name] = w
	}
	type shared struct {
		Sequencer string   `json:"sequencer"`
		Percent   int64    `json:"percent,omitempty"`
		Members   []string `json:"members"`
	}
	var policy []shared
	for _, s := range r.policy {
		policy = append(policy, shared{s.Sequencer, s.Percent, append([]string{}, r.servants(s.Sequencer)...)})
	}
	return json.Marshal(struct {
		Members    []string             `json:"members"`
		Pairs      map[string]string    `json:"pairs"`
		Prepared   map[string]string    `json:"prepared"`
		Accepted   map[string]string    `json:"accepted"`
		Sequencers map[string]sequencer `json:"sequencers"`
		Expelled   []string             `json:"expelled,omitempty"`
		Policy     []shared             `json:"policy,omitempty"`
		Region     Region               `json:"region,omitzero"`
		Skipped    []int64              `json:"skipped,omitempty"`
	}{
		append([]string{}, r.members...), r.pairs, r.prepared, r.accepted, sequencers, r.expelled, policy,
		region, r.skipped,
	})
}
