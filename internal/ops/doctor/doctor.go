// Package doctor finds what is wrong around a node, and what to do about it. Examine examines the machine, the
// store and the node; Check is a pure function from its result to findings. The package prints nothing.
//
// What is wrong with the cluster is what calls.Problems finds, by the Status that the node here tells or, without one,
// by what the store and the machines of the quorum tell. Doctor adds what only the machine knows, and why a node can't
// start: its clock, files, addresses and data, and what it meets at each server of the store.
package doctor

import (
	"fmt"
	"time"
)

// Level is the severity of a Finding.
type Level string

// Levels.
const (
	OK   Level = "ok"
	Warn Level = "warn" // the node works, but maybe not for long, or not well
	Fail Level = "fail" // the node does not work, or must not
)

// Finding is the result of one check.
type Finding struct {
	Level Level  `json:"level"`
	About string `json:"about"` // such as "clock"
	Found string `json:"found"` // with the value
	Do    string `json:"do,omitempty"`
}

// Seen is what Examine has seen of a machine, a configuration and a store. Nil: not examined.
type Seen struct {
	Now    time.Time
	Clock  *Clock
	Layout Layout
	Files  []Certificate
	Limit  *OpenFiles
	Data   *DataDir
	Ports  []Port
	Quorum *Quorum
	Store  *Store
	Stored *Stored
	Node   *Node
}

// Check returns findings in the order in which a node needs the things.
func Check(s Seen) (all []Finding) {
	add := func(f ...Finding) { all = append(all, f...) }
	if s.Clock != nil {
		add(s.Clock.check())
	}
	add(OK.about("layout", "%s, until %s", s.Layout.Name, s.Layout.Until.UTC().Format(time.DateOnly)))
	for _, f := range s.Files {
		add(f.check(s.Now)...)
	}
	if s.Limit != nil {
		add(s.Limit.check())
	}
	for _, p := range s.Ports {
		add(p.check())
	}
	if s.Data != nil {
		add(s.Data.check()...)
	}
	if s.Quorum != nil {
		add(s.Quorum.check()...)
	}
	if s.Store != nil {
		add(s.Store.check()...)
	}
	if s.Stored != nil {
		add(s.Stored.check()...)
	}
	if s.Node != nil {
		add(s.Node.check())
	}
	return append(all, s.cluster()...)
}

func (l Level) about(about, format string, args ...any) Finding {
	return Finding{Level: l, About: about, Found: fmt.Sprintf(format, args...)}
}

func (f Finding) do(what string) Finding {
	f.Do = what
	return f
}

// bytes formats a size for people.
func bytes(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	default:
		return fmt.Sprintf("%d KiB", n>>10)
	}
}

// days formats a duration for people.
func days(d time.Duration) string {
	if d < 48*time.Hour {
		return d.Round(time.Minute).String()
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}
