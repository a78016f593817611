package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"sort"
	"strconv"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/store"
)

// LogBeginsAfter is the header of an answer from which requested entries are missing because the log has been trimmed:
// the position of the last one. The value at that position is still available.
const LogBeginsAfter = "Firn-Log-Begins-After"

// LogAsOf is the header of an answer from what the node remembers, as the store did not answer: as of when that is the
// end of the log, in RFC 3339. What was written since is not known. Older entries may be missing, as LogBeginsAfter
// says.
const LogAsOf = "Firn-Log-As-Of"

const (
	maxLooking = 64              // calls that send entries of the log at a time: IDs matter more
	logWithin  = 3 * time.Second // for the first entries, which then come from memory
)

var (
	errLooking = fmt.Errorf("%w: %d calls read the log already", calls.ErrCrowded, maxLooking)
	errNoLog   = fmt.Errorf("%w: no answer from the store", store.ErrUnavailable)
	errCut     = errors.New("the log was trimmed while this call followed it, and entries are missing here; call again")
)

// look limits the calls that read the log.
func (h *Handler) look(next func(http.ResponseWriter, *http.Request, *auth.Caller, store.Log)) call {
	return func(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
		log, err := h.service.Log(who)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		select {
		case h.looking <- struct{}{}:
			defer func() { <-h.looking }()
			next(w, r, who, log)
		default:
			h.refuse(w, r, errLooking)
		}
	}
}

// latest stands for the latest position of the log.
const latest = int64(-1)

func (h *Handler) value(w http.ResponseWriter, r *http.Request, who *auth.Caller, log store.Log) {
	var at point
	q, err := parameters(r.URL.RawQuery, "at=N or at=TIME", "at")
	if err == nil {
		at, err = q.point("at")
	}
	if err != nil {
		badRequest(w, err)
		return
	}
	var v ValueAt
	var recalled time.Time
	if at.position != latest {
		v, recalled, err = h.replay(r.Context(), log, at)
	} else {
		recalled = h.service.RecentIfSilent()
		v.Value, err = h.service.Value(who)
		v.Position = v.Value.Position()
	}
	if !recalled.IsZero() {
		w.Header().Set(LogAsOf, recalled.Format(time.RFC3339Nano))
	}
	if err != nil {
		h.refuseLog(w, r, err)
		return
	}
	header(w, jsonType)
	writeJSON(w, v)
}

// replay returns the value at a point, and as of when the log is known where it comes from what the node remembers.
func (h *Handler) replay(ctx context.Context, log store.Log, at point) (v ValueAt, recalled time.Time, err error) {
	r := recalling{log: log, service: h.service}
	for all, err := range r.batches(ctx, 0, false) {
		if err == nil && !at.at.IsZero() {
			at.position, err = timesOf(all.Entries, h.service.Now()).positionAt(at.at)
		}
		if err == nil {
			v, err = valueAt(all, at.position, h.service.Skipped)
		}
		return v, r.asOf, err
	}
	return v, recalled, because(ctx, errNoLog)
}

// because returns why ctx has ended, if it has, or else err.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// span is which entries of the log a call wants.
type span struct {
	from         int64
	since, until time.Time // zero: from the first one on, or to the last one
}

// spanOf reads which entries a call wants, and whether it goes on to get new ones.
func spanOf(text string) (s span, follow bool, err error) {
	q, err := parameters(text, "from=N, since=TIME, until=TIME, follow=1 or several of them", "from", "since",
		"until", "follow")
	var following int64
	if err == nil {
		following, err = q.number("follow", 0, 1, 0)
	}
	if err == nil {
		s.from, err = q.number("from", 0, math.MaxInt64, 0)
	}
	if err == nil {
		s.since, err = q.instant("since")
	}
	if err == nil {
		s.until, err = q.instant("until")
	}
	switch follow = following == 1; {
	case err != nil:
	case follow && !s.until.IsZero():
		err = errors.New("until is given with follow=1, which has no end; leave one of them out")
	case !s.until.IsZero() && s.until.Before(s.since):
		err = fmt.Errorf("until is %.40q, before since, %.40q; want a later time", q["until"], q["since"])
	}
	return s, follow, err
}

// of returns the entries that are wanted: from the first to the last one whose time is within the span, with all
// between them.
func (s span) of(t timed) timed {
	from := sort.Search(len(t.entries), func(i int) bool { return int64(t.entries[i].Position) >= s.from })
	t = t.cut(from, len(t.entries))
	if !s.since.IsZero() {
		t = t.since(s.since)
	}
	if !s.until.IsZero() {
		last, err := t.positionAt(s.until)
		for n := len(t.entries); n > 0 && (err != nil || int64(t.entries[n-1].Position) > last); n-- {
			t = t.cut(0, n-1)
		}
	}
	return t
}

func (h *Handler) entries(w http.ResponseWriter, r *http.Request, who *auth.Caller, log store.Log) {
	wanted, follow, err := spanOf(r.URL.RawQuery)
	if err != nil {
		badRequest(w, err)
		return
	}
	if follow && h.draining() {
		h.refuse(w, r, calls.ErrDraining)
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	seen, _ := h.service.Value(who) // zero while nothing was read
	after := after(wanted.from, seen)
	if follow {
		defer context.AfterFunc(h.service.Serving(), func() { cancel(calls.ErrDraining) })()
	}
	from := recalling{log: log, service: h.service}
	var told times
	l := lines{w: w, control: http.NewResponseController(w), skipped: h.service.Skipped}
	for batch, err := range from.batches(ctx, after, follow) {
		switch {
		case err != nil && l.begun:
			l.fail(because(ctx, err))
			return
		case err != nil:
			h.refuseLog(w, r, because(ctx, err))
			return
		case l.begun && batch.Checkpoint != nil:
			l.fail(errCut)
			return
		}
		found := wanted.of(told.next(batch.Entries, h.service.Now()))
		if !l.begun {
			if !from.asOf.IsZero() {
				w.Header().Set(LogAsOf, from.asOf.Format(time.RFC3339Nano))
			}
			l.begin(batch, wanted, found.entries)
		}
		if len(found.entries) > 0 {
			wanted.since = time.Time{} // what follows is wanted, whatever its time
		}
		if r.Method == http.MethodHead || l.write(found) != nil {
			return
		}
	}
}

// after is the position after which to read the entries from a position on, with some before by which to judge the
// times of the first. It is one that the member has seen, as the log refuses others.
func after(from int64, v cluster.Value) store.Position {
	return store.Position(max(0, min(from-1, v.Position())-neighbours))
}

// read is a Follow that ends with the log.
func read(ctx context.Context, log store.Log, after store.Position) iter.Seq2[store.Batch, error] {
	return func(yield func(store.Batch, error) bool) { yield(log.Read(ctx, after)) }
}

// lines is an answer of JSON objects, one per line, that may never end.
type lines struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
	skipped func(position int64, entry string) bool
}

// begin writes the head of an answer with some entries of the first batch.
func (l *lines) begin(batch store.Batch, wanted span, entries []store.LogEntry) {
	missing := batch.Checkpoint != nil && int64(batch.Checkpoint.Position) >= max(wanted.from, 1)
	if missing && !wanted.since.IsZero() { // is there an entry from before, so that none is missing?
		missing = len(entries) == len(batch.Entries)
	}
	if missing {
		l.w.Header().Set(LogBeginsAfter, strconv.FormatInt(int64(batch.Checkpoint.Position), 10))
	}
	header(l.w, linesType)
	l.begun = true
}

// write writes entries.
func (l *lines) write(t timed) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for i, entry := range t.entries {
		if err := e.Encode(entryLine(entry, t.at[i], l.skipped)); err != nil {
			return err
		}
		if b.Len() >= piece {
			if err := l.send(b.Bytes()); err != nil {
				return err
			}
			b.Reset()
		}
	}
	return l.send(b.Bytes())
}

// fail ends the answer with a line that says why: a Failure, which is no entry.
func (l *lines) fail(err error) {
	code := codes.Internal
	switch {
	case errors.Is(err, context.Canceled):
		came(l.w, codes.Gone)
		return
	case errors.Is(err, peer.ErrNotReady):
		code = codes.NotReady
	case errors.Is(err, auth.ErrUnauthenticated) || errors.Is(err, auth.ErrForbidden): // no longer
		code = calls.CodeOf(err)
	case errors.Is(err, errCut):
		code = codes.UnknownPosition
	}
	came(l.w, code)
	line, marshalErr := json.Marshal(Failure{Error{code, err.Error()}})
	if marshalErr == nil {
		_ = l.send(append(line, '\n')) // if it fails the caller has gone away
	}
}

// send writes and flushes.
func (l *lines) send(b []byte) error {
	if _, err := l.w.Write(b); err != nil {
		return err
	}
	if err := l.control.Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// refuseLog answers a call that can't read the log.
func (h *Handler) refuseLog(w http.ResponseWriter, r *http.Request, err error) {
	_, position := errors.AsType[*positionError](err)
	_, instant := errors.AsType[*timeError](err)
	if position || instant {
		writeError(w, codes.UnknownPosition, err.Error())
		return
	}
	h.refuse(w, r, err)
}
