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
	"strconv"
	"time"

	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/store"
)

// LogBeginsAfter is the header of an answer from which requested entries are missing because the log has been trimmed: the
// position of the last one. The value at that position is still available.
const LogBeginsAfter = "Firn-Log-Begins-After"

const (
	maxLooking = 64               // calls that read the log at a time: IDs matter more
	logWithin  = 10 * time.Second // for the first entries
	stalled    = 30 * time.Second // for a client to read what it is sent
)

var (
	errLooking = fmt.Errorf("%w: %d calls read the log already", server.ErrCrowded, maxLooking)
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
	at := latest
	q, err := parameters(r.URL.RawQuery, "at=N", "at")
	if err == nil {
		at, err = q.number("at", 0, math.MaxInt64, latest)
	}
	if err != nil {
		badRequest(w, err)
		return
	}
	var v ValueAt
	if at != latest {
		v, err = h.replay(r.Context(), log, at)
	} else {
		v.Value, err = h.service.Value(who)
		v.Position = v.Value.Position()
	}
	if err != nil {
		h.refuseLog(w, r, err)
		return
	}
	header(w, jsonType)
	writeJSON(w, v)
}

func (h *Handler) replay(ctx context.Context, log store.Log, at int64) (ValueAt, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, logWithin, errNoLog)
	defer cancel()
	all, err := log.Read(ctx, 0)
	if err != nil {
		return ValueAt{}, because(ctx, err)
	}
	return valueAt(all, at)
}

// because returns why ctx has ended, if it has, or else err.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (h *Handler) entries(w http.ResponseWriter, r *http.Request, who *auth.Caller, log store.Log) {
	var from, following int64
	q, err := parameters(r.URL.RawQuery, "from=N, follow=1 or both", "from", "follow")
	if err == nil {
		following, err = q.number("follow", 0, 1, 0)
	}
	if err == nil {
		from, err = q.number("from", 0, math.MaxInt64, 0)
	}
	if err != nil {
		badRequest(w, err)
		return
	}
	follow := following == 1
	if follow && h.draining() {
		h.refuse(w, r, server.ErrDraining)
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	seen, _ := h.service.Value(who) // zero while nothing was read
	after := after(from, seen)
	batches := read(ctx, log, after)
	if follow {
		batches = log.Follow(ctx, after)
		defer context.AfterFunc(h.service.Serving(), func() { cancel(server.ErrDraining) })()
	}
	late := time.AfterFunc(logWithin, func() { cancel(errNoLog) })
	defer late.Stop()
	l := lines{w: w, control: http.NewResponseController(w)}
	for batch, err := range batches {
		late.Stop()
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
		case !l.begun:
			l.begin(batch.Checkpoint, from)
		}
		if r.Method == http.MethodHead || l.write(batch.Entries, from) != nil {
			return
		}
	}
}

// after is the position after which to read the entries from a position on. It is one that the member has seen, as the log
// refuses others.
func after(from int64, v cluster.Value) store.Position {
	return store.Position(max(0, min(from-1, v.Position())))
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
}

// begin writes the head.
func (l *lines) begin(anew *store.Checkpoint, from int64) {
	if anew != nil && int64(anew.Position) >= max(from, 1) {
		l.w.Header().Set(LogBeginsAfter, strconv.FormatInt(int64(anew.Position), 10))
	}
	header(l.w, linesType)
	l.begun = true
}

// write writes the entries from a position on.
func (l *lines) write(entries []store.LogEntry, from int64) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for _, entry := range entries {
		if int64(entry.Position) < from {
			continue
		}
		if err := e.Encode(entryLine(entry)); err != nil {
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
	code := server.Internal
	switch {
	case errors.Is(err, context.Canceled):
		came(l.w, server.Gone)
		return
	case errors.Is(err, member.ErrNotReady):
		code = server.NotReady
	case errors.Is(err, errCut):
		code = unknownPosition
	}
	came(l.w, code)
	line, marshalErr := json.Marshal(Failure{Error{code, err.Error()}})
	if marshalErr == nil {
		_ = l.send(append(line, '\n')) // if it fails the caller has gone away
	}
}

// send writes and flushes. It replaces the server's limit on the time of a whole answer.
func (l *lines) send(b []byte) error {
	_ = l.control.SetWriteDeadline(time.Now().Add(stalled)) // where it is not supported there is no limit
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
	if _, ok := errors.AsType[*positionError](err); ok {
		writeError(w, unknownPosition, err.Error())
		return
	}
	h.refuse(w, r, err)
}
