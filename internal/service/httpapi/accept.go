package httpapi

import (
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/packed"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
)

// writing is how the answer to a call writes IDs. The zero value is JSON with numbers.
type writing struct {
	packed bool                               // no JSON, but each ID as 8 bytes
	text   func(to []byte, id firn.ID) []byte // appends an ID to JSON that has strings; nil: it has numbers
	secret bool                               // JSON has no numbers, neither as digits

	texts *calls.Texts // says what text and secret are, once there are IDs; nil: they are known
}

// of is the writing of these IDs.
func (as writing) of(ids *calls.Batch) (writing, error) {
	if as.texts == nil {
		return as, nil
	}
	write, err := as.texts.Of(ids)
	return writing{secret: as.texts.Secret, text: func(to []byte, id firn.ID) []byte {
		to, _ = write(to, id) // it does not fail for IDs of the sequencer
		return to
	}}, err
}

var (
	decimal = firn.Decimal.Append

	numbers = writing{}
	texts   = writing{text: decimal}
	bytes8  = writing{packed: true}
)

// WithTexts makes strings of the IDs in JSON wherever a call does not ask for numbers.
func WithTexts() Option {
	return func(h *Handler) { h.usual = texts }
}

// takingOf is how the caller wants new IDs written: in the form that the parameter "form" says, else as writingOf says.
func (h *Handler) takingOf(r *http.Request, who *auth.Caller, q query) (writing, error) {
	as, err := h.writingOf(r, q)
	if err != nil {
		return writing{}, calls.Input(err)
	}
	form, err := q.form("form")
	switch {
	case err != nil:
		return writing{}, calls.Input(err)
	case form == nil:
		return as, nil
	case q["ids"] == "number":
		return writing{},
			calls.Input(fmt.Errorf("form is %.40q, which is text, and ids is number; want one of them", q["form"]))
	}
	if e := form.Encoding(); e != nil {
		return writing{text: e.Append}, nil
	}
	texts, err := h.service.Texts(r.Context(), who, sequencerOf(r), *form)
	return writing{texts: &texts}, err
}

// writingOf is how the caller wants IDs written: as the parameter "ids" says, else as Accept says, else as is usual
// here.
func (h *Handler) writingOf(r *http.Request, q query) (writing, error) {
	switch ids, given := q["ids"]; {
	case !given:
		return h.accepted(r.Header), nil
	case ids == "string":
		return texts, nil
	case ids == "number":
		return numbers, nil
	default:
		return writing{}, fmt.Errorf("ids is %.40q; want string or number", ids)
	}
}

// accepted is what a caller's Accept names with the greatest weight above zero: packed IDs, JSON with the parameter
// ids, or else JSON as is usual here. JSON is for all others too, whatever they accept, and for errors.
func (h *Handler) accepted(header http.Header) writing {
	accept := strings.Join(header["Accept"], ",")
	if accept == packed.Type {
		return bytes8
	}
	if lower := strings.ToLower(accept); !strings.Contains(lower, packed.Type) && !strings.Contains(lower, "ids") {
		return h.usual
	}
	var forPacked, forTexts, forNumbers, forJSON float64
	exact := 0 // how exactly a range names JSON
	ranks := map[string]int{"*/*": 1, "application/*": 2, "application/json": 3}
	for one := range strings.SplitSeq(accept, ",") {
		name, parameters, err := mime.ParseMediaType(one)
		if err != nil {
			continue
		}
		weight := 1.0
		if q, ok := parameters["q"]; ok {
			if weight, err = strconv.ParseFloat(q, 64); err != nil {
				continue
			}
		}
		switch rank := ranks[name]; {
		case name == packed.Type:
			forPacked = weight
		case rank == 3 && parameters["ids"] == "string":
			forTexts = weight
		case rank == 3 && parameters["ids"] == "number":
			forNumbers = weight
		case rank > exact:
			exact, forJSON = rank, weight
		}
	}
	switch greatest := max(forPacked, forTexts, forNumbers, forJSON); {
	case greatest <= 0:
		return h.usual
	case forPacked == greatest:
		return bytes8
	case forTexts == greatest:
		return texts
	case forNumbers == greatest:
		return numbers
	default:
		return h.usual
	}
}
