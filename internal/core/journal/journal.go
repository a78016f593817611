// Package journal writes down what a member does about its node IDs and which IDs it gives, and checks what the members
// of a cluster have written against the model of the proof, formal/Fence.v.
//
// A journal is not for recovery: nothing ever reads it but Check. A member without one pays nothing on the way to an
// ID.
package journal

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// Version is the version of the format, which the first line of each run has.
const Version = 1

// Line is one thing that happened, written before it has any effect: before a transaction is sent, a bound moves or an
// ID is returned. Fields that say nothing about it are zero. Instants are of ID time, in Unix milliseconds.
type Line struct {
	Do Do        `json:"do"`
	At time.Time `json:"at"` // by the process's wall clock: for people

	Journal int    `json:"journal,omitempty"` // of Begin: Version
	Member  string `json:"member,omitempty"`  // of Begin: member.Options.Owner

	Sequencer string `json:"sequencer,omitempty"`
	Node      int64  `json:"node"`
	Owner     string `json:"owner,omitempty"` // the operation ID of a fence; of Given it is not known

	Version uint64 `json:"version,omitempty,string"` // of the key that has the horizon
	By      string `json:"by,omitempty"`             // of Read and Seen: the owner that wrote that version
	Horizon int64  `json:"horizon,omitempty"`        // in the key, or to be written to it
	Floor   int64  `json:"floor,omitempty"`          // of Read: where the owner begins
	From    int64  `json:"from,omitempty"`           // of Given: the beginning of the first ID's tick
	Until   int64  `json:"until,omitempty"`          // of Bound, Stop and Given: where the use ends

	First int64 `json:"first,omitempty,string"`
	Last  int64 `json:"last,omitempty,string"`
	Count int64 `json:"count,omitempty"` // the IDs from First to Last are equally far apart
}

// Do is what happened.
type Do string

// What happens, and the step of the model that it is.
const (
	Begin    Do = "begin"    // a member starts
	Read     Do = "read"     // Read: an owner has read the key, to claim the node ID
	Send     Do = "send"     // Send or Release: it sends a transaction with Horizon, if the key has Version
	Applied  Do = "applied"  // Learn: the store has applied it, under Version
	Conflict Do = "conflict" // the store has refused it
	Doubt    Do = "doubt"    // there is no answer
	Seen     Do = "seen"     // Learn, if the owner wrote it: the owner has read the key again
	Bound    Do = "bound"    // its generator may make IDs that end at or before Until
	Stop     Do = "stop"     // Stop: its generator has stopped for good, and its use ended at Until
	Given    Do = "given"    // Use: a caller gets IDs whose ticks lie between From and Until
	Loss     Do = "loss"     // the member has found that the store has lost what it had committed
)

// Writer writes a journal. It is safe for concurrent use. A nil Writer writes nothing.
type Writer struct {
	mu     sync.Mutex
	to     io.Writer // nil after an error, so that nothing is missing before the last line
	failed func(error)
}

// NewWriter returns a Writer that writes each line with one Write. It calls failed when that returns an error, and
// writes nothing more. It returns nil if to is nil.
func NewWriter(to io.Writer, failed func(error)) *Writer {
	if to == nil {
		return nil
	}
	return &Writer{to: to, failed: failed}
}

// Write writes a line, and returns when that is done.
func (w *Writer) Write(l Line) {
	if w == nil {
		return
	}
	l.At = time.Now()
	text, err := json.Marshal(l)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.to == nil {
		return
	}
	if err == nil {
		_, err = w.to.Write(append(text, '\n'))
	}
	if err != nil {
		w.to = nil
		w.failed(err)
	}
}

// Open opens a file to append a journal to, and makes it if it does not exist, for its owner alone. A line that a
// process did not finish when it was killed is ended first.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	last := make([]byte, 1)
	if at, err := f.Seek(-1, io.SeekEnd); err == nil {
		if _, err := f.ReadAt(last, at); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if last[0] != '\n' {
			if _, err := f.WriteString("\n"); err != nil {
				return nil, errors.Join(err, f.Close())
			}
		}
	}
	return f, nil
}
