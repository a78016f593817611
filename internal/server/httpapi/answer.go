package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/server"
)

// Values of headers, made once: every answer has them, none changes them.
var (
	jsonType  = []string{"application/json"}
	linesType = []string{"application/x-ndjson"}
	textType  = []string{"text/plain; charset=utf-8"}
	noStore   = []string{"no-store"}
)

// piece is how much of an answer is written at once, and atOnce how much may be appended to it before it is looked at again.
const (
	piece  = 32 << 10
	atOnce = 6 << 10
)

func writeID(w http.ResponseWriter, id firn.ID) {
	header(w, jsonType)
	b := make([]byte, 0, len(`{"id":9223372036854775807,"id_str":"9223372036854775807"}`)+1)
	b = append(b, `{"id":`...)
	b = firn.Decimal.Append(b, id)
	b = append(b, `,"id_str":"`...)
	b = firn.Decimal.Append(b, id)
	b = append(b, '"', '}', '\n')
	_, _ = w.Write(b) // who asked has gone away if it fails
}

// writeIDs writes an answer with many IDs, in pieces that its caller must take one after the other.
func writeIDs(w http.ResponseWriter, ids *server.Batch) {
	header(w, jsonType)
	l := list{w: w, control: http.NewResponseController(w)}
	l.b = make([]byte, 0, min(piece+atOnce, 64+ids.Len()*len(`9223372036854775807,"9223372036854775807",`)))
	l.b = append(l.b, `{"ids":[`...)
	if l.append(ids, "") != nil {
		return
	}
	l.b = append(l.b, `],"ids_str":[`...)
	if l.append(ids, `"`) != nil {
		return
	}
	l.b = append(l.b, "]}\n"...)
	_ = l.write() // who asked has gone away if it fails
}

// list is an answer with many IDs.
type list struct {
	w       http.ResponseWriter
	control *http.ResponseController
	b       []byte // what is not written yet

	taking   server.Taking
	deadline time.Time // that was set
}

// slack is how much too early a deadline may be, so that it need not be set for each piece.
const slack = time.Second

// append appends ids, each within quotes, and writes what there is whenever it is long.
func (l *list) append(ids *server.Batch, quote string) error {
	first := true
	for some := range ids.All() {
		b := l.b
		for _, id := range some {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(b, quote...)
			b = firn.Decimal.Append(b, id)
			b = append(b, quote...)
		}
		if l.b = b; len(b) >= piece {
			if err := l.write(); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes what there is. A caller that does not take it in time is cut off.
func (l *list) write() error {
	if deadline := l.taking.Deadline(time.Now(), len(l.b)); deadline.Sub(l.deadline) > slack {
		l.deadline = deadline
		_ = l.control.SetWriteDeadline(deadline) // where it is not supported there is no limit
	}
	_, err := l.w.Write(l.b)
	l.b = l.b[:0]
	return err
}

func writeAnswer(w http.ResponseWriter, status int, v any) {
	header(w, jsonType)
	w.WriteHeader(status)
	writeJSON(w, v)
}

func writeOK(w http.ResponseWriter) {
	header(w, textType)
	_, _ = w.Write([]byte("ok\n"))
}

func badRequest(w http.ResponseWriter, err error) {
	writeError(w, http.StatusBadRequest, server.BadRequest, err.Error())
}

// Error is what an answer that is none says.
type Error struct {
	Code    server.Code `json:"code"`
	Message string      `json:"message"`
}

// Failure is the body of every answer that tells of an error.
type Failure struct {
	Error Error `json:"error"`
}

// Locked is the answer, with status 401, to who wants to change something and does not show the node's secret.
type Locked struct {
	Failure
	SecretFile string `json:"secret_file,omitempty"` // that holds it, for who may read it; empty: none does
}

func writeError(w http.ResponseWriter, status int, code server.Code, message string) {
	came(w, code)
	writeAnswer(w, status, Failure{Error{code, message}})
}

func header(w http.ResponseWriter, contentType []string) {
	h := w.Header()
	h["Content-Type"] = contentType
	h["Cache-Control"] = noStore
}

func writeJSON(w http.ResponseWriter, v any) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // this is no HTML, and <, > and & are easier to read
	_ = e.Encode(v)        // who asked has gone away if it fails
}
