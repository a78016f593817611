// Package floor keeps the floor for everybody: the instant before which nobody may use a node ID,
// because the store may not know how far node IDs were used. Members obey it.
//
// Whoever finds that the store has lost data, a member or the store itself, opens the floor: nobody
// may claim a node ID then. That needs no clock. A member whose clock is believed settles it: it says
// from when on node IDs may be used. What to write, and whether a claim may go on, are pure functions
// here; formal/Loss.v has them as steps, and model_test.go holds them against it.
package floor

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/firn-id/firn/store"
)

// Key is the key of the store.
const Key = "floor"

// What the members of a cluster do unless told otherwise.
const (
	Window = 30 * time.Second // how far ahead of its clock a member reserves time
	Skew   = 10 * time.Second // by how much clocks may differ
)

// MaxWindow is the longest window. After a loss of data everybody waits for the longest one.
const MaxWindow = time.Hour

// Floor is what the key holds.
type Floor struct {
	// the earliest instant of use of any node ID; zero: the fences' floors alone count
	From time.Time `json:"from"`
	// the store may have lost data since From was written: nobody may claim
	Open bool `json:"open,omitempty"`
	// the longest window with which a node ID was claimed; zero: none was
	Window time.Duration `json:"window_ns,omitempty"`
	By     string        `json:"by"` // who put it; empty: nobody had a reason but the window
	Why    string        `json:"why"`
}

// Parse reads the value of the key; an empty one is that of an absent key.
func Parse(value []byte) (f Floor, err error) {
	if len(value) == 0 {
		return f, nil
	}
	if err := json.Unmarshal(value, &f); err != nil {
		return f, fmt.Errorf("the key %q can't be read, so that no ID can be made: %w", Key, err)
	}
	return f, nil
}

// Put returns the operation that writes the floor.
func (f Floor) Put() (store.Op, error) {
	value, err := json.Marshal(f)
	return store.Put(Key, value), err
}

// Open returns the operation that opens the floor, which has this value now. It is for those who have no clock that
// others judge.
func Open(value []byte, by, why string) (store.Op, error) {
	f, err := Parse(value)
	if err != nil {
		return store.Op{}, err
	}
	f, _ = f.Lost(View{}, by, why)
	return f.Put()
}

// Standing is by what right a member settles a floor. The zero value is Opposed.
type Standing uint8

// The standings.
const (
	Opposed Standing = iota // by none: most others disagree with its clock, or nobody can say who is right
	// nobody is there who disagrees, or the member was believed when it noticed the loss itself
	Unopposed
	Agreed // most of those who live agree with its clock
)

// View is what a member knows when it decides.
type View struct {
	Standing Standing
	Now      time.Time // its ID time
	Reserved time.Time // the latest instant that it has used, or may use; zero: none
	// the latest instant that those have used or may use who live and agree with it; zero: nobody was asked
	Living time.Time
	Window time.Duration // the longest window that it knows of, its own included
}

// least returns an instant that nobody has used or reserved, nor any later one, if clocks agree and windows are as long
// as is known. It is a whole second, so that those who notice one loss write few floors.
func (f Floor) least(v View) time.Time {
	return roundUp(later(v.Reserved, v.Now.Add(max(v.Window, f.Window))).Add(Skew))
}

// most returns the latest instant that anybody can have settled on whose clock agrees.
func (f Floor) most(v View) time.Time {
	return later(f.least(v), roundUp(v.Living.Add(Skew))).Add(Skew)
}

// Lost returns what the key is to hold once a member has noticed that the store has lost data. write is false if it
// holds that. Any floor may be of an earlier loss: the key lies in the store, which may have been set back to when it
// was written. So one that settles nothing that was used up to now does not count, whoever wrote it.
func (f Floor) Lost(v View, by, why string) (next Floor, write bool) {
	if v.Standing == Opposed {
		write = !f.Open
		if write {
			f.Open, f.By, f.Why = true, by, why
		}
		return f, write
	}
	if !f.Open && !f.From.Before(f.least(v)) {
		return f, false
	}
	return f.settle(v, by, why), true
}

// settle returns the floor with an instant that v's member answers for. It never lowers one, unless nobody can have
// settled on that.
func (f Floor) settle(v View, by, why string) Floor {
	from := f.least(v)
	if !f.absurd(v) {
		from = later(from, f.From)
	}
	return Floor{From: from, Window: max(f.Window, v.Window), By: by, Why: why}
}

// absurd reports whether a floor is one that no believed clock can have led to, as most of those who live say.
func (f Floor) absurd(v View) bool {
	return v.Standing == Agreed && !v.Living.IsZero() && f.From.After(f.most(v))
}

// Verdict is whether a member may claim. The zero value is Wait.
type Verdict uint8

// The verdicts.
const (
	Wait  Verdict = iota // not before the floor: its clock has not reached it, or the floor is open
	Ask                  // the same, and it is to ask what those who live have reserved, and to decide again
	Write                // once it has written what the key is to hold
	Claim                // under the condition that the key is unchanged
)

// Claim returns whether a member may claim a node ID. If the key is to hold something else before, next is that.
func (f Floor) Claim(v View, by string) (next Floor, _ Verdict) {
	ask := v.Standing == Agreed && v.Living.IsZero() && f.From.After(f.most(v))
	switch {
	case ask:
		return f, Ask
	case f.Open && v.Standing != Opposed:
		return f.settle(v, by, f.Why), Write
	case f.Open:
		return f, Wait
	case f.absurd(v):
		why := fmt.Sprintf("the floor of %q was %s, which is beyond all clocks and horizons of the members", f.By,
			f.From.UTC().Format(time.RFC3339))
		return f.settle(v, by, why), Write
	case v.Now.Before(f.From):
		return f, Wait
	case f.Window < v.Window:
		f.Window = v.Window
		return f, Write
	}
	return f, Claim
}

// Resume returns the floor after an operator has said that all earlier owners have stopped, and that no clock of theirs
// was ahead of v's member's. until is when the wait would have ended; write is false if nobody waits.
func (f Floor) Resume(v View, by string) (next Floor, until time.Time, write bool) {
	if until = f.From; f.Open {
		until = later(until, f.least(v))
	}
	if !v.Now.Before(until) {
		return f, time.Time{}, false
	}
	return Floor{From: v.Now, Window: f.Window, By: by, Why: "resumed by an operator"}, until, true
}

func roundUp(t time.Time) time.Time { return t.Add(time.Second - 1).Truncate(time.Second) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
