package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"
)

// order is what a worker is told: the seed of a world, or its plan.
type order struct {
	Seed    uint64
	Plan    *Plan `json:",omitempty"`
	Verbose bool  `json:",omitempty"` // return the transcript even if nothing fails
}

// work runs worlds, one after the other, and writes their results. Simulated time is there for tests only, so it is
// one, which testing.Main runs.
func work(in io.Reader, out io.Writer) {
	debug.SetGCPercent(800) // a world is small
	testing.Main(regexp.MatchString, []testing.InternalTest{{Name: "worlds", F: func(t *testing.T) {
		orders, results := json.NewDecoder(in), json.NewEncoder(out)
		for {
			var o order
			if orders.Decode(&o) != nil {
				return
			}
			if o.Plan == nil {
				o.Plan = new(random(o.Seed))
			}
			if err := results.Encode(simulate(t, *o.Plan, o.Verbose)); err != nil || t.Failed() {
				t.FailNow()
			}
		}
	}}}, nil, nil)
}

// worker is a process that runs worlds. It has one processor, which leaves less to chance: so worlds run side by side
// in processes of their own. A world that ends its process is one that has failed.
type worker struct {
	cmd     *exec.Cmd
	orders  io.WriteCloser
	results *json.Decoder
	said    *head
}

// longest is how long a world may take on a busy machine.
const longest = 3 * time.Minute

func newWorker() (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: exec.Command(self, "-worker"), said: new(head)}
	w.cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	w.cmd.Stderr = w.said
	if w.orders, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.results = json.NewDecoder(io.TeeReader(out, w.said))
	return w, w.cmd.Start()
}

// run has it run a world.
func (w *worker) run(o order) (r Result) {
	w.said.reset()
	hangs := time.AfterFunc(longest, func() { _ = w.cmd.Process.Kill() })
	defer hangs.Stop()
	err := json.NewEncoder(w.orders).Encode(o)
	if err == nil {
		err = w.results.Decode(&r)
	}
	if err == nil {
		return r
	}
	w.close()
	text := "its process has ended"
	if !hangs.Stop() {
		text = "it takes longer than " + longest.String()
	}
	r = Result{
		Seed:     o.Seed,
		Failures: []Failure{{Rule: "a world ends", At: "its end", Text: text + ":\n" + w.said.String()}},
	}
	if again, err := newWorker(); err == nil {
		*w = *again
	}
	return r
}

func (w *worker) close() {
	_ = w.orders.Close()
	_ = w.cmd.Wait()
}

// head keeps the first part of what a process says, where a panic tells why.
type head struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all.Len() < 8<<10 {
		h.all.Write(p)
	}
	return len(p), nil
}

func (h *head) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all.Reset()
}

func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.TrimSpace(h.all.String())
}
