package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/packed"
)

// Limits on answers, in bytes. In JSON each ID is in them as a number and as a string.
const (
	perID = len(`9223372036854775807,"9223372036854775807",`)
	// the longest, a UUID, with its number
	perText      = len(`"01a1fc23-5529-7000-81a1-522b4a720005","9223372036854775807",`)
	aroundIDs    = 4 << 10
	longestError = 16 << 10
	longestText  = 1000 // of an error's message
)

var errTooLong = errors.New("the answer is too long")

// readAnswer reads what a node answers.
func readAnswer(node string, r *http.Response, q query) (given, error) {
	if r.StatusCode != http.StatusOK {
		body, err := readAtMost(r, longestError)
		if err != nil && !errors.Is(err, errTooLong) {
			return given{}, &nodeError{node, err}
		}
		return given{}, readError(node, r, body)
	}
	if q.form == "" && r.Header.Get("Content-Type") == packed.Type {
		ids, err := readPacked(r.Body, q.n)
		if err != nil {
			return given{}, &nodeError{node, err}
		}
		return given{ids: ids}, nil
	}
	limit := aroundIDs + q.n*perID
	if q.form != "" {
		limit = aroundIDs + q.n*perText
	}
	body, err := readAtMost(r, limit)
	if err != nil {
		return given{}, &nodeError{node, err}
	}
	var g given
	if q.form != "" {
		g.texts, err = parseTexts(body, q.n)
	} else { // an older node
		g.ids, err = parseAnswer(body, q.n)
	}
	if err != nil {
		return given{}, &nodeError{node, fmt.Errorf("wrong answer: %w", err)}
	}
	return g, nil
}

// readAtMost reads a body of up to limit bytes. It returns errTooLong if there are more.
func readAtMost(r *http.Response, limit int) ([]byte, error) {
	var all bytes.Buffer
	all.Grow(int(min(max(r.ContentLength, 0), int64(limit))) + bytes.MinRead) // which ReadFrom wants to be free
	_, err := all.ReadFrom(io.LimitReader(r.Body, int64(limit)+1))
	b := all.Bytes()
	if err == nil && len(b) > limit {
		return b[:limit], errTooLong
	}
	return b, err
}

// parseAnswer returns the n IDs of an answer, which must be positive, and each there once. It reads the strings, not
// the numbers.
func parseAnswer(body []byte, n int) ([]firn.ID, error) {
	var answer struct {
		ID  *firn.ID  `json:"id_str"`
		IDs []firn.ID `json:"ids_str"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	ids := answer.IDs
	if n == 1 && answer.ID != nil {
		ids = append(ids, *answer.ID)
	}
	if len(ids) != n {
		return nil, fmt.Errorf("%d IDs; want %d", len(ids), n)
	}
	return ids, distinct(ids)
}

// readPacked does as parseAnswer, for an answer of packed IDs.
func readPacked(body io.Reader, n int) ([]firn.ID, error) {
	ids := make([]firn.ID, n)
	if err := packed.ReadFrom(ids, body); err != nil {
		return nil, err
	}
	return ids, distinct(ids)
}

// parseTexts returns the n texts of an answer, each of which must be there once.
func parseTexts(body []byte, n int) ([]string, error) {
	var answer struct {
		IDs  []string
		Text string // where one was converted
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	texts := answer.IDs
	if answer.Text != "" {
		texts = append(texts, answer.Text)
	}
	different := make(map[string]bool, n)
	for _, text := range texts {
		different[text] = true
	}
	delete(different, "")
	if len(texts) != n || len(different) != n {
		return nil, fmt.Errorf("%d texts, %d of them different; want %d", len(texts), len(different), n)
	}
	return texts, nil
}

// distinct returns an error unless ids are positive, and each there once. They ascend, unless they are of a sequencer
// that scatters them.
func distinct(ids []firn.ID) error {
	last := firn.ID(0)
	for _, id := range ids {
		if id <= last && !slices.IsSorted(ids) {
			return distinct(slices.Sorted(slices.Values(ids)))
		}
		if id <= last {
			return fmt.Errorf("%d comes after %d once they are sorted; want IDs above zero, and each once", id, last)
		}
		last = id
	}
	return nil
}

func readError(node string, r *http.Response, body []byte) *Error {
	var failure struct {
		Error struct{ Code, Message string }
	}
	_ = json.Unmarshal(body, &failure) // if it fails, the answer is not from a firn node, and has no code
	e := &Error{Node: node, Status: r.StatusCode, Code: cut(failure.Error.Code), Message: cut(failure.Error.Message)}
	if seconds, err := strconv.ParseUint(r.Header.Get("Retry-After"), 10, 31); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

func cut(text string) string {
	if len(text) <= longestText {
		return text
	}
	return strings.ToValidUTF8(text[:longestText], "") + "..."
}
