package auth

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// clock is a time that the test moves, from the present.
type clock struct{ passed atomic.Int64 }

var began = time.Now()

func (c *clock) now() time.Time       { return began.Add(time.Duration(c.passed.Load())) }
func (c *clock) pass(d time.Duration) { c.passed.Add(int64(d)) }

// journal is a log that tests read.
type journal struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// take returns the lines since the last call.
func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	text := strings.TrimSpace(j.text.String())
	j.text.Reset()
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// wants fails unless the lines since the last call are as many as there are texts, with these in them.
func (j *journal) wants(t *testing.T, texts ...string) {
	t.Helper()
	lines := j.take()
	ok := len(lines) == len(texts)
	for i := range min(len(lines), len(texts)) {
		ok = ok && strings.Contains(lines[i], texts[i])
	}
	if !ok {
		t.Errorf("the log has %d lines, want %d with %q:\n%s", len(lines), len(texts), texts, strings.Join(lines, "\n"))
	}
}

// write puts a file in the place of another, as a whole.
func write(t *testing.T, path string, data []byte) {
	t.Helper()
	part := filepath.Join(filepath.Dir(path), ".part")
	if err := os.WriteFile(part, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(part, path); err != nil {
		t.Fatal(err)
	}
}
