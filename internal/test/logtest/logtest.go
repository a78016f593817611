// Package logtest has a log for tests to read. It is not for what has a log of its own to compare, such as a
// transcript.
package logtest

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// Journal keeps what is logged. The zero value is empty. It is safe for concurrent use.
type Journal struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

// Write appends to the journal.
func (j *Journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

// Logger returns a logger that writes to the journal, from level info.
func (j *Journal) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// String returns what was logged since the last call of Take.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// Take returns the lines since the last call.
func (j *Journal) Take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	text := strings.TrimSpace(j.text.String())
	j.text.Reset()
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// Wants fails the test unless there is one line since the last call for each text, in this order, that contains it.
func (j *Journal) Wants(t *testing.T, texts ...string) {
	t.Helper()
	lines := j.Take()
	ok := len(lines) == len(texts)
	for i := range min(len(lines), len(texts)) {
		ok = ok && strings.Contains(lines[i], texts[i])
	}
	if !ok {
		t.Errorf("the log has %d lines, want %d with %q:\n%s", len(lines), len(texts), texts, strings.Join(lines, "\n"))
	}
}
