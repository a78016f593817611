package httpapi

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/server"
)

// counting is a ResponseWriter that remembers what its call came to. It is used again for other calls, so nothing may keep
// it for longer than its own.
type counting struct {
	http.ResponseWriter
	code server.Code
}

// Unwrap lets [http.ResponseController] find what is within.
func (c *counting) Unwrap() http.ResponseWriter { return c.ResponseWriter }

var countings = sync.Pool{New: func() any { return new(counting) }}

// came notes what a call came to, if not to what was asked for.
func came(w http.ResponseWriter, code server.Code) {
	if c, ok := w.(*counting); ok {
		c.code = code
	}
}

// within is the ResponseWriter of the server itself.
func within(w http.ResponseWriter) http.ResponseWriter {
	if c, ok := w.(*counting); ok {
		return c.ResponseWriter
	}
	return w
}

// api is what the paths of calls that are counted begin with. Who asks for the others, asks time and again whether all is
// well.
const api = "/api/"

// counted has the calls of a name counted, by what they came to. It costs two readings of the clock and no memory.
func (h *Handler) counted(path, name string, next http.HandlerFunc) http.HandlerFunc {
	if !h.service.Metered() || !strings.HasPrefix(path, api) {
		return next
	}
	calls, timed := h.service.Call("http", name), path != logPath
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		c := countings.Get().(*counting)
		c.ResponseWriter, c.code = w, ""
		defer func() {
			took := server.Untimed
			if timed {
				took = time.Since(began)
			}
			if c.code == "" { // next has panicked
				c.code = server.Internal
			}
			calls.Done(c.code, 1, took)
			c.ResponseWriter = nil
			countings.Put(c)
		}()
		if next(c, r); c.code == "" {
			c.code = server.OK
		}
	}
}
