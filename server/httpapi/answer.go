package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/server"
)

// Values of headers, made once: every answer has them, none changes them.
var (
	jsonType  = []string{"application/json"}
	linesType = []string{"application/x-ndjson"}
	textType  = []string{"text/plain; charset=utf-8"}
	noStore   = []string{"no-store"}
)

// piece is how much of an answer is written at once.
const piece = 32 << 10

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

func writeIDs(w http.ResponseWriter, ids []firn.ID) {
	header(w, jsonType)
	b := make([]byte, 0, min(piece+64, 64+len(ids)*len(`9223372036854775807,"9223372036854775807",`)))
	b = append(b, `{"ids":[`...)
	b, err := appendIDs(w, b, ids, "")
	if err != nil {
		return
	}
	b = append(b, `],"ids_str":[`...)
	if b, err = appendIDs(w, b, ids, `"`); err != nil {
		return
	}
	_, _ = w.Write(append(b, "]}\n"...))
}

// appendIDs appends ids, each within quotes, to b, and writes b whenever it is long. It returns what is
// not written yet.
func appendIDs(w http.ResponseWriter, b []byte, ids []firn.ID, quote string) ([]byte, error) {
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, quote...)
		b = firn.Decimal.Append(b, id)
		b = append(b, quote...)
		if len(b) >= piece {
			if _, err := w.Write(b); err != nil {
				return nil, err
			}
			b = b[:0]
		}
	}
	return b, nil
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
