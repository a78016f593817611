package httpapi

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
)

// counting is a ResponseWriter that remembers the result of its call. It is reused, so nothing may keep it beyond the
// call.
type counting struct {
	http.ResponseWriter
	code codes.Code
}

// Unwrap lets [http.ResponseController] find what is within.
func (c *counting) Unwrap() http.ResponseWriter { return c.ResponseWriter }

var countings = sync.Pool{New: func() any { return new(counting) }}

// Write implements [http.ResponseWriter].
func (c *counting) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	if errors.Is(err, calls.ErrCrowded) {
		c.code = codes.Overloaded
	}
	return n, err
}

// came notes the code of a call that fails.
func came(w http.ResponseWriter, code codes.Code) {
	if c, ok := w.(*counting); ok {
		c.code = code
	}
}

// within is the ResponseWriter of the HTTP server.
func within(w http.ResponseWriter) http.ResponseWriter {
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = outer.Unwrap()
	}
}

// counted counts calls below /api/ by name and result. It costs two readings of the clock and no memory.
func (h *Handler) counted(path, name string, next http.HandlerFunc) http.HandlerFunc {
	if !h.service.Metered() || !strings.HasPrefix(path, "/api/") {
		return next
	}
	call, timed := h.service.Call("http", name), path != logPath
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		c := countings.Get().(*counting)
		c.ResponseWriter, c.code = w, ""
		defer func() {
			took := calls.Untimed
			if timed {
				took = time.Since(began)
			}
			if c.code == "" { // next has panicked
				c.code = codes.Internal
			}
			call.Done(c.code, 1, took)
			c.ResponseWriter = nil
			countings.Put(c)
		}()
		if next(c, r); c.code == "" {
			c.code = codes.OK
		}
	}
}
