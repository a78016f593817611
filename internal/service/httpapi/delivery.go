package httpapi

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/base/clusterid"
	"github.com/firn-id/firn/internal/service/admit/conns"
	"github.com/firn-id/firn/internal/service/calls"
)

// delivery is a ResponseWriter that holds an answer to a Budget. It is reused, so nothing may keep it beyond the call.
type delivery struct {
	http.ResponseWriter
	request *http.Request
	line    *line
	budget  *Budget

	status   int   // to be written with the first bytes; 0: it is written, or not known
	begun    bool  // something was written
	written  int   // bytes since the last Flush
	held     int64 // bytes of the memory for answers
	taking   calls.Taking
	deadline time.Time // that was set
	ended    []func()  // to be called at the end, once the answer was taken
	computed func()    // to be called before the first byte is written; may be nil
}

var deliveries = sync.Pool{New: func() any { return new(delivery) }}

func newDelivery(w http.ResponseWriter, r *http.Request, l *line, b *Budget) *delivery {
	d := deliveries.Get().(*delivery)
	*d = delivery{ResponseWriter: w, request: r, line: l, budget: b, ended: d.ended[:0]}
	return d
}

// works says that the connection is not idle: the call does something other than to wait for its caller.
func (d *delivery) works() {
	if d.changes() {
		conns.BeginChange(d.line.conn)
	} else {
		conns.Begin(d.line.conn)
	}
}

// waits says that the call waits for its caller, or has ended.
func (d *delivery) waits() {
	if d.changes() {
		conns.EndChange(d.line.conn)
	} else {
		conns.End(d.line.conn)
	}
}

func (d *delivery) changes() bool {
	return d.request.Method != http.MethodGet && d.request.Method != http.MethodHead
}

// Unwrap lets [http.ResponseController] find what is within.
func (d *delivery) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// WriteHeader keeps the status until there is an answer to it: it may come to be refused.
func (d *delivery) WriteHeader(status int) {
	if status < http.StatusOK || d.begun {
		d.ResponseWriter.WriteHeader(status)
		return
	}
	d.status = status
}

// begin writes the status.
func (d *delivery) begin() {
	d.begun = true
	d.ready()
	if d.status != 0 {
		d.ResponseWriter.WriteHeader(d.status)
		d.status = 0
	}
}

// ready says that the answer is computed.
func (d *delivery) ready() {
	if d.computed != nil {
		d.computed()
		d.computed = nil
	}
}

// Write writes a part of the answer, piece by piece: the caller has limited time to take each. calls.ErrCrowded is
// returned when there is no memory for the answer. The caller then gets that as the answer, if nothing was written
// before.
func (d *delivery) Write(b []byte) (n int, err error) {
	long := d.request.Method != http.MethodHead && d.written+len(b) > smallAnswer
	if long && !d.hold(len(b)) {
		d.ready()
		if !d.begun {
			d.refuse()
		}
		return 0, calls.ErrCrowded
	}
	if !d.begun {
		d.begin()
	}
	d.written += len(b)
	if !long {
		return d.ResponseWriter.Write(b)
	}
	d.waits() // its caller decides how long this takes
	defer d.works()
	for p := range slices.Chunk(b, piece) {
		d.mustTake(len(p))
		some, err := d.ResponseWriter.Write(p)
		if n += some; err != nil {
			return n, err
		}
	}
	return n, nil
}

// hold holds the memory for an answer of which so many bytes are to be written at once.
func (d *delivery) hold(atOnce int) bool {
	want := int64(answerCost)
	if atOnce > piece {
		want += int64(atOnce)
	}
	if d.held >= want {
		return true
	}
	release, ok := d.budget.service.TryHold(d.request.RemoteAddr, want-d.held)
	if ok {
		d.held = want
		d.atEnd(release)
	}
	return ok
}

// holds says that an answer holds its part of the memory already, until release is called.
func (d *delivery) holds(release func()) {
	d.held = 1 << 40
	d.atEnd(release)
}

func (d *delivery) atEnd(do func()) { d.ended = append(d.ended, do) }

// refuse answers that there is no memory for the answer.
func (d *delivery) refuse() {
	h := d.Header()
	for name := range h {
		if name != clusterid.Header {
			delete(h, name)
		}
	}
	d.status = 0
	d.begin()
	Refuse(d.ResponseWriter, d.request, d.budget.service, calls.ErrCrowded)
}

// slack is by how much a deadline may be too early, so that it need not be set for each piece.
const slack = time.Second

// mustTake sets the deadline by which the caller must have taken n more bytes.
func (d *delivery) mustTake(n int) {
	if deadline := d.taking.Deadline(time.Now(), n); deadline.Sub(d.deadline) > slack {
		d.deadline = deadline
		// where it is not supported there is no limit
		_ = http.NewResponseController(d.ResponseWriter).SetWriteDeadline(deadline)
	}
}

// FlushError sends what was written. What follows may be later: its time is its own.
func (d *delivery) FlushError() error {
	if !d.begun {
		d.begin()
	}
	d.waits()
	defer d.works()
	d.mustTake(0)
	if err := http.NewResponseController(d.ResponseWriter).Flush(); err != nil {
		return err
	}
	d.line.unread.Add(int64(d.written))
	d.written, d.taking, d.deadline = 0, calls.Taking{}, time.Time{}
	return nil
}

// Flush implements [http.Flusher].
func (d *delivery) Flush() { _ = d.FlushError() }

// finish writes what is not written, and waits until the caller's system has taken the answer, if more than a little is
// unread on its connection.
func (d *delivery) finish() {
	if !d.begun && d.status != 0 {
		d.begin()
	}
	d.ready()
	if d.request.Method == http.MethodHead || d.line.unread.Add(int64(d.written)) <= smallAnswer {
		return
	}
	if d.held > 0 {
		_ = d.FlushError()
	}
	if conns.Unread(d.line.conn) == 0 {
		d.line.unread.Store(0)
		return
	}
	if !d.hold(0) {
		d.abort()
	}
	d.waits()
	defer d.works()
	d.await()
}

// await waits until the caller's system has taken what the kernel has. Over HTTP/1.1 it aborts the connection of a
// caller that is too slow; over HTTP/2 other calls may be the reason, and conns ends a connection that takes nothing.
func (d *delivery) await() {
	late := d.taking.Deadline(time.Now(), int(d.line.unread.Load()))
	for wait := time.Millisecond; conns.Unread(d.line.conn) > 0; wait = min(2*wait, 50*time.Millisecond) {
		select {
		case <-time.After(wait):
		case <-d.request.Context().Done():
			d.abort()
		}
		if d.request.ProtoMajor == 1 && time.Now().After(late) {
			d.abort()
		}
	}
	d.line.unread.Store(0)
}

// abort ends the call, and forgets what its caller has not read.
func (d *delivery) abort() {
	if d.request.ProtoMajor == 1 {
		conns.Reset(d.line.conn)
	}
	panic(http.ErrAbortHandler)
}

// end gives back what the call holds.
func (d *delivery) end() {
	d.ready()
	for _, do := range d.ended {
		do()
	}
	clear(d.ended)
	d.ResponseWriter, d.request = nil, nil
	deliveries.Put(d)
}
