package client

import "time"

// Hooks report what the client does, for metrics and logs. Each may be nil. Several goroutines call them at once and
// wait for them: they must be quick, and must not call the client.
type Hooks struct {
	Attempt func(Attempt) // after every request to a node
	Call    func(Call)    // at the end of every Next and Fill before Close
	Batch   func(Batch)   // with WithPrefetch: after every fetch, and when IDs were dropped
}

// Attempt is a request to a node.
type Attempt struct {
	Node      string // its URL
	Sequencer string // empty: the default one
	Count     int    // how many IDs were asked for
	Duration  time.Duration

	// Hedged is set when another request of the same call had no answer yet.
	Hedged bool

	// Err is nil when the node gave IDs. It wraps context.Canceled when another node had answered or the call had
	// ended.
	Err error
}

// Call is a Next or a Fill.
type Call struct {
	Sequencer string // empty: the default one
	Count     int    // how many IDs; 1 for Next
	Duration  time.Duration

	// Age is the age of the oldest ID when it was returned, counted from before its request was sent. Zero with an
	// error.
	Age time.Duration
	Err error
}

// Batch is a change of the IDs in memory.
type Batch struct {
	Sequencer string // empty: the default one
	Fetched   int    // how many were added
	Expired   int    // how many were dropped because they were too old
	Err       error  // why a fetch failed
}

func (h Hooks) attempt(a Attempt) {
	if h.Attempt != nil {
		h.Attempt(a)
	}
}

func (h Hooks) call(c Call) {
	if h.Call != nil {
		h.Call(c)
	}
}

func (h Hooks) batch(b Batch) {
	if h.Batch != nil && (b.Fetched > 0 || b.Expired > 0 || b.Err != nil) {
		h.Batch(b)
	}
}
