package floor

import (
	"fmt"
	"testing"
	"time"
)

// The proof in formal/Loss.v is about a model with these steps. This file explores, breadth first, what members can do
// to one node ID over a store that loses data, with Lost, Claim and Resume as they are, and says of each transition
// which step it is, so that what the proof says of the model holds for them. It also looks itself that no two eras own
// an instant.

// unit is the time between two instants of this world. The skew is one; none means that there is no instant.
const (
	unit = Skew
	none = -1
)

func at(n int8) time.Time {
	if n == none {
		return time.Time{}
	}
	return time.Unix(0, 0).Add(time.Duration(n) * unit)
}

func instant(t time.Time) int8 {
	if t.IsZero() {
		return none
	}
	n := t.Sub(time.Unix(0, 0)) / unit
	if !at(int8(n)).Equal(t) {
		panic(fmt.Sprintf("%v is between two instants", t))
	}
	return int8(n)
}

// kept is what the store has of it: the floor, and the node ID's horizon.
type kept struct {
	from, window int8
	open         bool
	horizon      int8
}

func (k kept) floor() Floor {
	return Floor{From: at(k.from), Open: k.open, Window: time.Duration(k.window) * unit}
}

// put returns it with another floor.
func (k kept) put(f Floor) kept {
	k.from, k.open, k.window = instant(f.From), f.Open, int8(f.Window/unit)
	return k
}

// stretch is what an owner has, or had.
type stretch struct {
	era, from, to int8
	by            int8
	live          bool // it may still use what it has not
}

// world is a state. Members are told apart by their clocks and windows, see the scope.
type world struct {
	now, era   int8
	store      kept
	backup     kept
	hasBackup  bool
	told       bool // somebody has noticed the loss with which the era began
	longest    int8 // the longest window that the store ever had
	seen       [2]int8
	owners     [2]stretch
	ownerCount int8
}

// peer is a member of a scope.
type peer struct {
	off, window int8
	wrong       bool // its clock is refused
}

// scope is which worlds are explored.
type scope struct {
	peers      []peer
	until, era int8
	first      kept
}

var scopes = []scope{
	{peers: []peer{{0, 1, false}, {-1, 1, false}}, until: 5, era: 2, first: kept{from: none}},
	{peers: []peer{{0, 1, false}, {-1, 2, false}}, until: 7, era: 1, first: kept{from: none}},
	{peers: []peer{{-1, 1, false}, {3, 1, true}}, until: 7, era: 1, first: kept{from: none}},
	// by a clock that was wrong
	{peers: []peer{{0, 1, false}, {-1, 1, false}}, until: 6, era: 1, first: kept{from: 40, window: 1, open: true}},
}

func (s scope) clock(w world, i int) int8 { return w.now + s.peers[i].off }

// view is what a member knows. It has read the longest window.
func (s scope) view(w world, i int, standing Standing) View {
	v := View{
		Standing: standing, Now: at(s.clock(w, i)),
		Window: time.Duration(max(s.peers[i].window, w.longest)) * unit,
	}
	for _, o := range w.owners[:w.ownerCount] {
		if o.live && int(o.by) == i {
			v.Reserved = later(v.Reserved, at(o.to))
		}
	}
	return v
}

// standings are by what right a member can come to decide.
func (p peer) standings() []Standing {
	if p.wrong {
		return []Standing{Opposed}
	}
	return []Standing{Opposed, Unopposed, Agreed}
}

// step says which step of formal/Loss.v a write of the floor is, or that it is none.
func (s scope) step(w world, i int, before, after Floor) (string, error) {
	switch c, p := s.clock(w, i), s.peers[i]; {
	case after.Open && after.From.Equal(before.From):
		return "Opens", nil
	case after.Open:
		return "", fmt.Errorf("an open floor is moved from %v to %v", before.From, after.From)
	case p.wrong:
		return "", fmt.Errorf("a refused clock settles %+v", after)
	case after.From.Before(at(c + w.longest + 1)):
		return "", fmt.Errorf("member %d, whose clock shows %d, settles %d; the longest window is %d", i, c,
			instant(after.From), w.longest)
	case before == after:
		return "Keeps", nil
	}
	return "Settles", nil
}

// next calls to for each transition: with the step of the model that it is, or nothing, or with the error that it is
// none.
func (s scope) next(w world, to func(step string, w world, err error)) {
	if w.now < s.until {
		n := w
		n.now++
		to("", n, nil)
	}
	if w.era < s.era {
		if n := w; !n.hasBackup {
			n.backup, n.hasBackup = n.store, true
			to("", n, nil)
		}
		for _, has := range []kept{{from: none}, w.backup} {
			n := w
			n.era, n.told, n.store, n.hasBackup, n.backup = w.era+1, false, has, false, kept{}
			to("Loses", n, nil)
		}
	}
	for i := range s.peers {
		s.notice(w, i, to)
		s.claim(w, i, to)
		s.resume(w, i, to)
	}
	for k := range w.owners[:w.ownerCount] {
		s.own(w, k, to)
	}
}

func (s scope) notice(w world, i int, to func(string, world, error)) {
	if w.seen[i] == w.era {
		return
	}
	for _, standing := range s.peers[i].standings() {
		n, before := w, w.store.floor()
		after, write := before.Lost(s.view(w, i, standing), "", "")
		if !write && after != before {
			to("", n, fmt.Errorf("%+v is not written", after))
			continue
		}
		step, err := s.step(w, i, before, after)
		n.store, n.told, n.seen[i] = w.store.put(after), true, w.era
		n.longest = max(n.longest, n.store.window)
		to(step, n, err)
	}
	n := w // or it is another process, which knows of nothing
	n.seen[i] = w.era
	to("", n, nil)
}

func (s scope) claim(w world, i int, to func(string, world, error)) {
	if w.seen[i] != w.era || s.peers[i].wrong {
		return
	}
	for _, standing := range s.peers[i].standings() {
		n, v, before := w, s.view(w, i, standing), w.store.floor()
		after, verdict := before.Claim(v, "")
		if verdict == Ask {
			for j, p := range s.peers {
				if !p.wrong {
					v.Living = later(v.Living, later(at(s.clock(w, j)+p.window), s.view(w, j, Agreed).Reserved))
				}
			}
			after, verdict = before.Claim(v, "")
		}
		step, err := "", error(nil)
		switch {
		case verdict == Write:
			if after.From != before.From || after.Open != before.Open {
				step, err = s.step(w, i, before, after)
				n.told = true
			}
			n.store = w.store.put(after)
			n.longest = max(n.longest, n.store.window)
		case verdict == Claim && w.told && int(w.ownerCount) < len(w.owners):
			// else it is assumed that it does not happen
			step, n, err = s.begin(w, i)
		}
		to(step, n, err)
	}
}

// begin has a member claim the node ID.
func (s scope) begin(w world, i int) (string, world, error) {
	c, p := s.clock(w, i), s.peers[i]
	o := stretch{era: w.era, from: max(w.store.from, w.store.horizon), by: int8(i), live: true}
	o.to = max(c+p.window, o.from) // what Sends would write
	var err error
	switch {
	case w.store.open || c < w.store.from:
		err = fmt.Errorf("member %d, whose clock shows %d, claims under %+v", i, c, w.store)
	case p.window > w.longest:
		err = fmt.Errorf("member %d claims with a window of %d, and %d is the longest that the store ever had", i,
			p.window, w.longest)
	}
	for _, other := range w.owners[:w.ownerCount] {
		if other.era != w.era && max(o.from, other.from) < min(o.to, other.to) {
			err = fmt.Errorf("%+v and %+v own an instant both", other, o)
		}
	}
	w.owners[w.ownerCount], w.store.horizon = o, o.to
	w.ownerCount++
	return "Begins", w, err
}

// own has an owner stop.
func (s scope) own(w world, k int, to func(string, world, error)) {
	o := w.owners[k]
	if !o.live {
		return
	}
	w.owners[k].live, w.owners[k].to = false, max(o.from, min(o.to, s.clock(w, int(o.by))))
	to("Stops", w, nil)
}

// resume has an operator resume by way of a member, if what is said of that holds.
func (s scope) resume(w world, i int, to func(string, world, error)) {
	c := s.clock(w, i)
	for _, o := range w.owners[:w.ownerCount] {
		if o.era != w.era && (o.live || o.to > c) {
			return
		}
	}
	after, _, write := w.store.floor().Resume(s.view(w, i, Unopposed), "")
	if !write {
		return
	}
	n := w
	n.store, n.told = w.store.put(after), true
	var err error
	if after.Open || !after.From.Equal(at(c)) {
		err = fmt.Errorf("the floor is %+v; want one at %d", after, c)
	}
	to("Resumes", n, err)
}

func TestEveryTransitionIsAStepOfTheModel(t *testing.T) {
	for _, s := range scopes {
		start := world{now: 2, store: s.first, told: !s.first.open, longest: s.first.window}
		seen, queue, count := map[world]bool{start: true}, []world{start}, map[string]int{}
		var wrong error
		for len(queue) > 0 && wrong == nil {
			w := queue[0]
			queue = queue[1:]
			s.next(w, func(step string, n world, err error) {
				if err != nil && wrong == nil {
					wrong = fmt.Errorf("%w; from %+v to %+v", err, w, n)
				}
				count[step]++
				if !seen[n] {
					seen[n] = true
					queue = append(queue, n)
				}
			})
		}
		if wrong != nil {
			t.Errorf("%+v: not a step of formal/Loss.v: %v", s, wrong)
			continue
		}
		t.Logf("%d worlds: %v", len(seen), count)
		for _, step := range []string{"", "Loses", "Opens", "Settles", "Keeps", "Resumes", "Begins", "Stops"} {
			if count[step] == 0 {
				t.Errorf("%+v: no transition is a %q", s, step)
			}
		}
	}
}
