package calls

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
)

// Unfenced is a reservation that the log has, and whose node IDs Missing have no fence: a member that has not read the
// log so far may still use them.
type Unfenced struct {
	Reservation
	Missing []int64 // rising
}

// fencedWithin is for how long a reservation may have no fences before that is a problem: a Reserve may be under way.
const fencedWithin = 30 * time.Second

// UnfencedOf returns the reservations of a sequencer that should have fences at a time, and have not by its owners.
func UnfencedOf(q cluster.Sequencer, owners []peer.Owner, at time.Time) (all []Unfenced) {
	fenced := map[int64]bool{}
	for _, o := range owners {
		fenced[o.Node] = o.Reserved
	}
	for r := range q.Reservations() {
		u := Unfenced{Reservation: reservationOf(r)}
		for _, node := range r.Nodes {
			if !fenced[node] {
				u.Missing = append(u.Missing, node)
			}
		}
		if len(u.Missing) > 0 && overdueFences(r, at) {
			all = append(all, u)
		}
	}
	return all
}

func overdueFences(r *cluster.Reservation, at time.Time) bool {
	return at.Sub(time.UnixMilli(r.At)) >= fencedWithin
}

// reservedAt tells reservations apart.
type reservedAt struct {
	sequencer string
	since     int64
	purpose   string
}

// fences are the reservations that were seen to have fences, which only their end takes away.
type fences struct {
	mu   sync.Mutex
	seen map[reservedAt]bool
}

// unfencedAtOnce is of how many sequencers at most one reading looks at the fences. The next one looks at others.
const unfencedAtOnce = 16

// unfenced returns, by sequencer, the reservations that should have fences and have none. It reads the fences of
// those only that were not seen to have them.
func (s *Service) unfenced(ctx context.Context, v cluster.Value) map[string][]Unfenced {
	at, all, looked := s.Now(), map[string][]Unfenced{}, 0
	s.fences.mu.Lock()
	before := s.fences.seen
	s.fences.mu.Unlock()
	seen := map[reservedAt]bool{}
	for name, q := range v.Sequencers() {
		due := false
		for r := range q.Reservations() {
			key := reservedAt{name, r.Since, r.For}
			seen[key] = before[key]
			due = due || !seen[key] && overdueFences(r, at)
		}
		if !due || looked == unfencedAtOnce {
			continue
		}
		looked++
		owners, err := s.member.Owners(ctx, name)
		if err != nil {
			continue
		}
		missing := UnfencedOf(q, owners, at)
		for r := range q.Reservations() {
			seen[reservedAt{name, r.Since, r.For}] = overdueFences(r, at) && !has(missing, r.For)
		}
		if len(missing) > 0 {
			all[name] = missing
		}
	}
	s.fences.mu.Lock()
	s.fences.seen = seen
	s.fences.mu.Unlock()
	if len(all) > 0 { // or it is released since, or a part of it was taken and released: that ends the fences first
		now := s.atTheEnd(ctx)
		for name, missing := range all {
			was, _ := v.Sequencer(name)
			is, _ := now.Sequencer(name)
			all[name] = slices.DeleteFunc(missing, func(u Unfenced) bool {
				r := is.Reservation(u.For)
				return r == nil || r.Since != was.Reservation(u.For).Since || len(r.Nodes) < len(u.Nodes)
			})
		}
	}
	return all
}

func has(all []Unfenced, purpose string) bool {
	return slices.ContainsFunc(all, func(u Unfenced) bool { return u.For == purpose })
}

// unfenced finds reservations whose fences are missing.
func (p *problems) unfenced() {
	for _, q := range p.status.Sequencers {
		for _, u := range q.Unfenced {
			var nodes []string
			for _, node := range u.Missing {
				nodes = append(nodes, fmt.Sprint(node))
			}
			which, why := "Node ID ", "it is reserved for %q, and its fence is not written"
			if len(nodes) > 1 {
				which, why = "Node IDs ", "they are reserved for %q, and their fences are not written"
			}
			about := which + list(nodes) + " of " + q.Name
			p.addAbout(about, "unfenced "+about, Problem{
				Level: Warning, Kind: NodeIDsProblem, Sequencers: []string{q.Name},
				Effect: about + " must not be used yet",
				Cause:  fmt.Sprintf(why, u.For),
				Do: fmt.Sprintf("Reserve again: firn sequencer reserve %s --count %d --for %s", q.Name, len(u.Nodes),
					shellWord(u.For)),
			})
		}
	}
}

// shellWord quotes a text for a shell.
func shellWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
