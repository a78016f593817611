package memstore

import (
	"time"

	"github.com/firn-id/firn/store"
)

// Operation is the kind of a call.
type Operation string

// The operations. The client itself sends a Renew every sixth of the TTL. Client.Append
// sends an Append for every try, and a Read before the first if it knows nothing of the
// log yet. Client.Follow sends a Follow when it reads, first at its beginning.
const (
	Get        Operation = "get"
	List       Operation = "list"
	Commit     Operation = "commit"
	Gone       Operation = "gone"
	Open       Operation = "open session"
	Renew      Operation = "renew session"
	End        Operation = "close session"
	Append     Operation = "append"
	Read       Operation = "read"
	Follow     Operation = "follow"
	Checkpoint Operation = "checkpoint"
	Trim       Operation = "trim"
)

// writes tells whether a call without an answer is ambiguous.
func (o Operation) writes() bool {
	return o == Commit || o == Append || o == Checkpoint || o == Trim
}

// Call is a call to the service.
type Call struct {
	Client string // the name of the client
	Op     Operation
	Key    string    // of Get and Gone; the prefix of List; the ID of Append
	Txn    store.Txn // of Commit

	Position store.Position // after which Read and Follow read; of Checkpoint
	Data     []byte         // of Append and Checkpoint; do not change it
}

// Outcome is what happens to a call.
type Outcome int

const (
	// Answered calls take effect, and their answer arrives.
	Answered Outcome = iota

	// FailBefore calls never take effect. Commit, Append, Checkpoint and Trim return
	// ErrAmbiguous, other calls ErrUnavailable.
	FailBefore

	// FailAfter calls take effect and return the errors of FailBefore.
	FailAfter

	// ApplyLate calls return the errors of FailBefore at once, and take effect after
	// the delay, under their conditions at that time.
	ApplyLate
)

// Fault is what goes wrong with a call. The zero value is no fault.
type Fault struct {
	Outcome Outcome

	// Delay is how long the call takes to the service. It takes effect even if its
	// caller gives up meanwhile.
	Delay time.Duration
}

// Hook chooses the fault of each call. Many goroutines call it at once, with no lock held.
type Hook func(Call) Fault

// Inject sets the hook of all clients that have none of their own; nil removes it.
func (s *Service) Inject(hook Hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

// Inject sets the hook of this client; nil removes it.
func (c *Client) Inject(hook Hook) {
	c.svc.mu.Lock()
	defer c.svc.mu.Unlock()
	c.hook = hook
}

// CutOff begins or ends a partition. During it nothing that the client sends reaches the
// service, and no news reaches the client: calls wait until their context or deadline
// ends, sessions are not renewed, watches are silent. The news arrives when the partition
// ends.
func (c *Client) CutOff(cut bool) {
	c.svc.mu.Lock()
	defer c.svc.mu.Unlock()
	c.cut = cut
	if cut {
		return
	}
	news := c.news
	c.news = nil
	for _, learn := range news {
		learn()
	}
	c.wakeLocked() // what a Follow heard when it was cut off again before it looked is heard now
}

// Lag sets how long news takes to the client: that a watched key is gone, that a session
// has ended, or that the log that it follows has a new entry. Zero: at once.
func (c *Client) Lag(lag time.Duration) {
	c.svc.mu.Lock()
	defer c.svc.mu.Unlock()
	c.lag = lag
}

// tellLocked calls learn after the client's lag and partition.
func (c *Client) tellLocked(learn func()) {
	if c.lag == 0 {
		c.arriveLocked(learn)
		return
	}
	time.AfterFunc(c.lag, func() {
		c.svc.mu.Lock()
		defer c.svc.mu.Unlock()
		c.arriveLocked(learn)
	})
}

func (c *Client) arriveLocked(learn func()) {
	switch {
	case c.closed:
	case c.cut:
		c.news = append(c.news, learn)
	default:
		learn()
	}
}

// faultOf asks the client's hook, or without one the service's.
func (c *Client) faultOf(call Call) Fault {
	c.svc.mu.Lock()
	hook := c.hook
	if hook == nil {
		hook = c.svc.hook
	}
	c.svc.mu.Unlock()
	if hook == nil {
		return Fault{}
	}
	return hook(call)
}
