package client

import "time"

// Hooks are told what the client does, for metrics and logs. Each may be nil. They are called by several goroutines at
// once, and hold up what they are told of: they must be quick, and must not call the client.
type Hooks struct {
	Attempt func(Attempt) // after every request to a node
	Call    func(Call)    // at the end of every Next and Fill, but for those after Close
	Batch   func(Batch)   // with WithPrefetch: after every fetch, and when IDs were thrown away
}

// Attempt is a request to a node.
type Attempt struct {
	Node      string // its URL
	Sequencer string // empty: the default one
	Count     int    // how many IDs were asked for
	Duration  time.Duration

	// Hedged tells that it was sent while another request of the same call was still without an answer.
	Hedged bool

	// Err is nil when there were IDs. It is or wraps context.Canceled when nobody waited for it any more, because another node
	// had answered or the call had ended.
	Err error
}

// Call is a Next or a Fill.
type Call struct {
	Sequencer string // empty: the default one
	Count     int    // how many IDs; 1 for Next
	Duration  time.Duration

	// Age is how old the oldest of the IDs was when it was handed out: it counts from before the request for it was
	// sent. Zero when there was an error.
	Age time.Duration
	Err error
}

// Batch is what happened to IDs that are kept in memory.
type Batch struct {
	Sequencer string // empty: the default one
	Fetched   int    // how many came; 0 when none were fetched
	Expired   int    // how many were thrown away because they were too old
	Err       error  // why a fetch brought none
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
