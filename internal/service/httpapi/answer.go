package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/packed"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
)

// Values of headers, shared by all answers; none changes them.
var (
	jsonType   = []string{"application/json"}
	textsType  = []string{"application/json;ids=string"}
	linesType  = []string{"application/x-ndjson"}
	bytesType  = []string{packed.Type}
	textType   = []string{"text/plain; charset=utf-8"}
	noStore    = []string{"no-store"}
	varyAccept = []string{"Accept"}
	noSniff    = []string{"nosniff"} // callers choose a part of what is in some answers
)

// piece is how many bytes of an answer are written at once, and atOnce how many may be appended between two checks.
const (
	piece  = 32 << 10
	atOnce = 6 << 10
)

// writeID writes an answer with one ID.
func writeID(w http.ResponseWriter, id firn.ID, as writing) {
	if as.packed {
		header(w, bytesType)
		_, _ = w.Write(packed.Append(make([]byte, 0, packed.Size), id)) // if it fails the caller has gone away
		return
	}
	b := make([]byte, 0, len(`{"id":"9223372036854775807","id_str":"9223372036854775807"}`)+1)
	if as.text == nil {
		header(w, jsonType)
		b = append(b, `{"id":`...)
		b = firn.Decimal.Append(b, id)
		b = append(b, `,"id_str":"`...)
	} else {
		header(w, textsType)
		b = append(b, `{"id":"`...)
		b = as.text(b, id)
		b = append(b, '"')
		if as.secret {
			_, _ = w.Write(append(b, '}', '\n'))
			return
		}
		b = append(b, `,"id_str":"`...)
	}
	b = firn.Decimal.Append(b, id)
	b = append(b, '"', '}', '\n')
	_, _ = w.Write(b)
}

// writeIDs writes an answer with many IDs, piece by piece. They hold their part of the memory until the caller has
// taken it.
func writeIDs(w http.ResponseWriter, ids *calls.Batch, as writing) {
	if d := deliveryOf(w); d != nil {
		d.holds(ids.Keep())
	}
	if as.packed {
		writePackedIDs(w, ids)
		return
	}
	l := newList(w, 64+ids.Len()*len(`"9223372036854775807","9223372036854775807",`))
	defer l.end()
	l.b = append(l.b, `{"ids":[`...)
	var err error
	if as.text == nil {
		header(w, jsonType)
		err = l.append(ids, "", decimal)
	} else {
		header(w, textsType)
		err = l.append(ids, `"`, as.text)
	}
	if err != nil {
		return
	}
	if !as.secret {
		l.b = append(l.b, `],"ids_str":[`...)
		if l.append(ids, `"`, decimal) != nil {
			return
		}
	}
	l.b = append(l.b, "]}\n"...)
	_ = l.write() // if it fails the caller has gone away
}

// writePackedIDs is writeIDs for packed IDs. Its answer says how long it is, so that the caller notices when the end is
// missing.
func writePackedIDs(w http.ResponseWriter, ids *calls.Batch) {
	size := ids.Len() * packed.Size
	header(w, bytesType)
	w.Header()["Content-Length"] = []string{strconv.Itoa(size)}
	l := newList(w, size)
	defer l.end()
	for some := range ids.All() {
		if l.b = packed.Append(l.b, some...); len(l.b) >= piece && l.write() != nil {
			return
		}
	}
	if len(l.b) > 0 {
		_ = l.write() // if it fails the caller has gone away
	}
}

// list is an answer with many IDs.
type list struct {
	w     http.ResponseWriter
	b     []byte                // what is not written yet
	whole *[piece + atOnce]byte // of wholes, where b began; nil: b is short
}

// wholes are the buffers of long answers: to clear a new one for each takes a tenth of the time of a batch.
var wholes = sync.Pool{New: func() any { return new([piece + atOnce]byte) }}

// newList returns an answer of about so many bytes. Its end gives its buffer back.
func newList(w http.ResponseWriter, size int) list {
	if size < piece+atOnce {
		return list{w: w, b: make([]byte, 0, size)}
	}
	whole := wholes.Get().(*[piece + atOnce]byte)
	return list{w, whole[:0], whole}
}

func (l *list) end() {
	if l.whole != nil {
		wholes.Put(l.whole)
	}
}

// append appends the texts of ids, each within quotes, and writes what there is whenever it is long.
func (l *list) append(ids *calls.Batch, quote string, text func([]byte, firn.ID) []byte) error {
	before, between := quote, quote+","+quote
	for some := range ids.All() {
		b := l.b
		for _, id := range some {
			b = append(b, before...)
			b = text(b, id)
			before = between
		}
		if l.b = b; len(b) >= piece {
			if err := l.write(); err != nil {
				return err
			}
		}
	}
	if ids.Len() > 0 {
		l.b = append(l.b, quote...)
	}
	return nil
}

// write writes what there is.
func (l *list) write() error {
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
	writeError(w, codes.BadRequest, err.Error())
}

// Error says what is wrong.
type Error struct {
	Code    codes.Code `json:"code"`
	Message string     `json:"message"`
}

// Failure is the body of every error.
type Failure struct {
	Error Error `json:"error"`
}

// Locked is the body of the error, with status 401, of a change without the node's secret.
type Locked struct {
	Failure
	SecretFile string `json:"secret_file,omitempty"` // that holds the secret; empty: none does
}

func writeError(w http.ResponseWriter, code codes.Code, message string) {
	came(w, code)
	writeAnswer(w, code.HTTP(), Failure{Error{code, message}})
}

func header(w http.ResponseWriter, contentType []string) {
	h := w.Header()
	h["Content-Type"] = contentType
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
}

func writeJSON(w http.ResponseWriter, v any) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // this is not HTML, and <, > and & are easier to read
	_ = e.Encode(v)        // if it fails the caller has gone away
}
