package httpapi

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/internal/service/admit/conns"
	"github.com/firn-id/firn/internal/service/calls"
)

// Budget bounds the work and the memory of everything that HTTP listeners serve: Handler stands in front of all their
// handlers. An answer of more than smallAnswer bytes holds a part of the memory for answers until its caller's system
// has taken it, and must be taken at calls.LeastTaken. A connection on which a handler waits for its caller counts as
// idle, so that it makes room for others.
//
// Make it with NewBudget. Its methods are safe for concurrent use.
type Budget struct {
	service  *calls.Service
	calls    *conns.Quota // of HTTP/2, as one connection has many
	refusing atomic.Int64 // calls of HTTP/2 that wait to be refused
	most     int64        // of refusing
	pages    *conns.Quota // files of pages
}

const (
	// smallAnswer is how many bytes of an answer, or of unread answers of a connection, are part of its connection's
	// cost.
	smallAnswer = 4 << 10

	// answerCost is how many bytes any longer answer takes at most: 128 KiB in the kernel and a piece here. To it comes
	// what is written at once.
	answerCost = 176 << 10

	// maxPages limits the files of pages that are sent at a time: IDs matter more.
	maxPages = 64

	// refuseWithin limits how long a call of HTTP/2 beyond the limit waits for its answer to be taken.
	refuseWithin = time.Second
)

// NewBudget returns a budget of so many calls of HTTP/2 at a time, with the memory of a service.
func NewBudget(s *calls.Service, calls int) *Budget {
	return &Budget{service: s, calls: conns.NewQuota(calls), most: int64(calls), pages: conns.NewQuota(maxPages)}
}

// line is a connection of an http.Server.
type line struct {
	conn       net.Conn
	probesOnly bool         // it is beyond the limit of connections
	unread     atomic.Int64 // bytes written since all was taken, at most
}

type lineKey struct{}

// ConnContext is for the http.Server of the handlers.
func (*Budget) ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, lineKey{}, &line{conn: c, probesOnly: conns.ProbesOnly(c)})
}

// nowhere is the line of calls that came by another way.
var nowhere = &line{conn: new(net.TCPConn)}

// Handler serves what next does, within the budget. On connections beyond the limit of their conns.Limiter it refuses
// all but health checks.
func (b *Budget) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l, ok := r.Context().Value(lineKey{}).(*line)
		if !ok {
			l = nowhere
		}
		if r.ProtoMajor > 1 && !b.take(w, r, l) {
			return
		}
		if l.probesOnly {
			w.Header().Set("Connection", "close")
			if r.URL.Path != livePath && r.URL.Path != readyPath {
				Refuse(w, r, b.service, calls.ErrCrowded)
				return
			}
		}
		d := newDelivery(w, r, l, b)
		defer d.end()
		d.works()
		defer d.waits()
		next.ServeHTTP(d, r)
		d.finish()
	})
}

// take counts a call of HTTP/2 until its stream ends. It returns false after it has refused one beyond the limit. Those
// that wait to be refused are limited as well: further ones are reset.
func (b *Budget) take(w http.ResponseWriter, r *http.Request, l *line) bool {
	from := l.conn.RemoteAddr()
	if b.calls.Take(from) {
		context.AfterFunc(r.Context(), func() { b.calls.Give(from) })
		return true
	}
	if b.refusing.Add(1) > b.most {
		b.refusing.Add(-1)
		panic(http.ErrAbortHandler)
	}
	context.AfterFunc(r.Context(), func() { b.refusing.Add(-1) })
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(refuseWithin)) // HTTP/2 supports it
	Refuse(w, r, b.service, calls.ErrCrowded)
	return false
}

// Page serves a file of a page, which needs no token: there are few places for those.
func Page(w http.ResponseWriter, r *http.Request, s *calls.Service,
	serve func(w http.ResponseWriter, r *http.Request),
) {
	d := deliveryOf(w)
	if d == nil {
		serve(w, r)
		return
	}
	from, pages := d.line.conn.RemoteAddr(), d.budget.pages
	if !pages.Take(from) {
		Refuse(w, r, s, calls.ErrCrowded)
		return
	}
	d.atEnd(func() { pages.Give(from) })
	serve(w, r)
}

// deliveryOf returns the delivery that a ResponseWriter writes to; nil: it is in front of no budget.
func deliveryOf(w http.ResponseWriter) *delivery {
	for {
		switch layer := w.(type) {
		case *delivery:
			return layer
		case interface{ Unwrap() http.ResponseWriter }:
			w = layer.Unwrap()
		default:
			return nil
		}
	}
}
