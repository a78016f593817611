package memstore

import (
	"time"

	"github.com/firn-id/firn/store"
)

// Operation names what a call asks of the service.
type Operation string

// The operations. Renew is sent by the client itself, every sixth of the TTL;
// Append by Client.Append, as often as it tries, and Follow by Client.Follow when
// it reads, at its beginning for one. A Client that knows nothing of the log yet sends
// a Read before its first Append.
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

// Call is one call on its way to the service.
type Call struct {
	Client string // the name of the client that makes it
	Op     Operation
	Key    string    // of Get and Gone; the prefix of List; the ID of Append
	Txn    store.Txn // of Commit

	Position store.Position // after which Read and Follow read; that of Checkpoint
	Data     []byte         // of Append and Checkpoint, not to be changed
}

// Outcome is how a call fares.
type Outcome int

const (
	// Answered calls take effect, and their answer arrives.
	Answered Outcome = iota

	// FailBefore calls never take effect. ErrAmbiguous is the answer to a Commit,
	// Append, Checkpoint or Trim, ErrUnavailable to any other call.
	FailBefore

	// FailAfter calls take effect and are then answered like FailBefore.
	FailAfter

	// ApplyLate calls are answered like FailBefore at once, and take effect
	// after the delay: their conditions are looked at then.
	ApplyLate
)

// Fault is what befalls a call. The zero value is no fault.
type Fault struct {
	Outcome Outcome

	// Delay is how long the call is under way before it takes effect. A caller
	// that gives up meanwhile doesn't stop it: it takes effect all the same.
	Delay time.Duration
}

// Hook decides the fault of each call as it is made. It is called from many
// goroutines at once, with no lock held.
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

// CutOff begins or ends a partition. During it nothing that the client sends
// reaches the service, and no news reaches the client: calls wait for an answer
// until their context or their deadline ends, sessions are not renewed, watches
// are silent. News of the time meanwhile arrives when the partition ends.
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
}

// Lag sets how long news travels from the service to the client: that a watched
// key is gone, that a session has ended, or that an entry was appended to the log
// that it follows. Zero is at once.
func (c *Client) Lag(lag time.Duration) {
	c.svc.mu.Lock()
	defer c.svc.mu.Unlock()
	c.lag = lag
}

// tellLocked lets the client learn something, now or as late as its lag and
// its partition have it.
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

// faultOf asks the hook in force.
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
