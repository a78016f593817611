package main

import (
	"iter"
	"slices"
	"time"

	"github.com/firn-id/firn/store/memstore"
)

// A shrinker makes a plan smaller as long as the same rule fails: by delta debugging (Zeller, Hildebrandt: Simplifying
// and Isolating Failure-Inducing Input, 2002). A plan counts as failing if it fails in one of several runs, since
// chance decides which of several goroutines runs first. So a small plan may fail more seldom than the one that it came
// from.
type shrinker struct {
	plan Plan
	rule string
	run  func(Plan) Result
	end  time.Time
}

const (
	tries      = 3               // runs of a candidate
	often      = 10              // runs of the plan in the end
	shrinkTime = 3 * time.Minute // after which it stays as it is
)

func newShrinker(p Plan, rule string, run func(Plan) Result) *shrinker {
	return &shrinker{plan: p, rule: rule, run: run, end: time.Now().Add(shrinkTime)}
}

// shrink returns the smallest plan that it comes to.
func (s *shrinker) shrink() Plan {
	for again := true; again && time.Now().Before(s.end); {
		again = s.fewerEvents()
		for p := range simpler(s.plan) {
			if s.try(p) {
				again = true
				break
			}
		}
	}
	return s.plan
}

// try takes a plan over that fails as well.
func (s *shrinker) try(p Plan) bool {
	for range tries {
		if time.Now().After(s.end) {
			return false
		}
		if s.fails(s.run(p)) {
			s.plan = p
			return true
		}
	}
	return false
}

func (s *shrinker) fails(r Result) bool {
	return slices.ContainsFunc(r.Failures, func(f Failure) bool { return f.Rule == s.rule })
}

// often returns in how many runs a plan fails, and a result that does.
func (s *shrinker) often(p Plan) (fails int, last Result) {
	for range often {
		if r := s.run(p); s.fails(r) {
			fails, last = fails+1, r
		}
	}
	return fails, last
}

// fewerEvents leaves out as many events at a time as it can.
func (s *shrinker) fewerEvents() (fewer bool) {
	for size := (len(s.plan.Events) + 1) / 2; size > 0; size /= 2 {
		for from := 0; from < len(s.plan.Events); {
			p := s.plan
			p.Events = slices.Concat(p.Events[:from], kept(p.Events[from:min(from+size, len(p.Events))]),
				p.Events[min(from+size, len(p.Events)):])
			if len(p.Events) < len(s.plan.Events) && s.try(p) {
				fewer = true
			} else {
				from += size
			}
		}
	}
	return fewer
}

// kept are the events without which a plan breaks what is assumed.
func kept(events []Event) []Event {
	return slices.DeleteFunc(slices.Clone(events), func(e Event) bool { return !e.Kept })
}

// simpler yields plans that are simpler in one thing.
func simpler(p Plan) iter.Seq[Plan] {
	return func(yield func(Plan) bool) {
		for _, change := range slices.Concat(journals(p), without(p), simplerFaults(p), simplerMachines(p),
			simplerEvents(p)) {
			q := p
			q.Machines, q.Events, q.Faults.Outcomes = slices.Clone(p.Machines), slices.Clone(p.Events),
				slices.Clone(p.Faults.Outcomes)
			change(&q)
			if !yield(q) {
				return
			}
		}
	}
}

// journals has members keep journals, which tell more.
func journals(p Plan) (changes []func(*Plan)) {
	if !p.Journals {
		changes = append(changes, func(q *Plan) { q.Journals = true })
	}
	return changes
}

// without leaves machines out, but not those that make up the majority which refuses a wrong clock.
func without(p Plan) (changes []func(*Plan)) {
	if slices.ContainsFunc(p.Events, func(e Event) bool { return e.Kept && e.Kind == Step }) {
		return nil
	}
	for i, m := range p.Machines {
		if len(p.Machines) > 1 {
			changes = append(changes, func(q *Plan) {
				q.Machines = slices.Delete(q.Machines, i, i+1)
				q.Events = slices.DeleteFunc(q.Events, func(e Event) bool {
					return e.Machine == m.Name || e.Other == m.Name
				})
			})
		}
	}
	return changes
}

func simplerFaults(p Plan) (changes []func(*Plan)) {
	if p.Faults.OneIn == 0 {
		return nil
	}
	changes = append(changes, func(q *Plan) { q.Faults = Faults{} })
	if len(p.Faults.Outcomes) > 1 {
		for _, o := range p.Faults.Outcomes {
			changes = append(changes, func(q *Plan) { q.Faults.Outcomes = []memstore.Outcome{o} })
		}
	}
	if p.Faults.Longest > time.Millisecond {
		changes = append(changes, func(q *Plan) { q.Faults.Longest /= 2 })
	}
	return changes
}

func simplerMachines(p Plan) (changes []func(*Plan)) {
	for i, m := range p.Machines {
		plain := Machine{Name: m.Name, TTL: m.TTL, Window: m.Window, Shared: m.Shared, Region: m.Region}
		if m != plain {
			changes = append(changes, func(q *Plan) { q.Machines[i] = plain })
		}
	}
	return changes
}

// simplerEvents take fewer IDs, and pass sooner.
func simplerEvents(p Plan) (changes []func(*Plan)) {
	for i, e := range p.Events {
		if (e.Kind == Take || e.Kind == TakeAll) && e.Count > 1 {
			changes = append(changes, func(q *Plan) { q.Events[i].Count /= 2 })
		}
		before := time.Duration(0)
		if i > 0 {
			before = p.Events[i-1].At
		}
		if pause := e.At - before; pause > 0 && !p.Loses {
			changes = append(changes, func(q *Plan) { q.sooner(i, pause) })
			if pause > time.Second {
				changes = append(changes, func(q *Plan) { q.sooner(i, pause/2) })
			}
		}
	}
	if n := len(p.Events); n > 0 && p.Calm > p.Events[n-1].At {
		changes = append(changes, func(q *Plan) { q.Calm = q.Events[n-1].At })
	}
	return changes
}

// sooner has everything from an event on happen earlier.
func (p *Plan) sooner(from int, by time.Duration) {
	for i := from; i < len(p.Events); i++ {
		p.Events[i].At -= by
	}
	p.Calm -= by
}
