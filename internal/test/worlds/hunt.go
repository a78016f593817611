package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// hunter runs worlds, side by side, until one fails.
type hunter struct {
	out     io.Writer
	first   uint64
	seeds   uint64        // 0: no limit
	within  time.Duration // 0: no limit
	workers int
	on      bool // go on after a failure
	verbose bool

	mu      sync.Mutex // guards what follows
	began   time.Time
	next    uint64
	worlds  int
	failed  int
	steps   Steps
	slowest time.Duration // of those that became well again
}

func (h *hunter) hunt() error {
	h.began, h.next = time.Now(), h.first
	fmt.Fprintf(h.out, "seeds from %d on, %d at a time\n", h.first, h.workers)
	stop := h.progress()
	var all sync.WaitGroup
	errs := make([]error, h.workers)
	for i := range h.workers {
		all.Go(func() { errs[i] = h.work() })
	}
	all.Wait()
	stop()
	h.report("\n")
	if err := cmp.Or(errs...); err != nil {
		return err
	}
	if h.failed > 0 {
		return fmt.Errorf("%d of %d worlds have failed", h.failed, h.worlds)
	}
	return nil
}

// work runs worlds until there is nothing left to do.
func (h *hunter) work() error {
	w, err := newWorker()
	if err != nil {
		return err
	}
	defer w.close()
	for {
		seed, ok := h.seed()
		if !ok {
			return nil
		}
		began := time.Now()
		r := w.run(order{Seed: seed, Verbose: h.verbose && h.seeds == 1})
		if h.note(r, time.Since(began)) {
			h.tell(w, seed, r)
		}
	}
}

// seed is the next one.
func (h *hunter) seed() (uint64, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	over := h.failed > 0 && !h.on || h.seeds > 0 && h.next-h.first >= h.seeds ||
		h.within > 0 && time.Since(h.began) > h.within
	if over {
		return 0, false
	}
	h.next++
	return h.next - 1, true
}

// note counts a world, and reports whether it has failed and should be told of.
func (h *hunter) note(r Result, took time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.worlds++
	h.steps.Add(r.Steps)
	h.slowest = max(h.slowest, r.Settled)
	if h.verbose {
		fmt.Fprintf(h.out, "seed %d: %d steps in %v, well again after %v\n", r.Seed, r.Steps.All(),
			took.Round(time.Millisecond), r.Settled)
		for _, line := range r.Transcript {
			fmt.Fprintln(h.out, line)
		}
	}
	if len(r.Failures) == 0 {
		return false
	}
	h.failed++
	return h.failed == 1 || h.on
}

// tell prints what has failed, shrunk.
func (h *hunter) tell(w *worker, seed uint64, r Result) {
	was := random(seed)
	fmt.Fprintf(h.out, "\nseed %d fails: %v\nshrinking it ...\n", seed, r.Failures[0])
	s := newShrinker(was, r.Failures[0].Rule, func(p Plan) Result { return w.run(order{Plan: &p}) })
	p := s.shrink()
	fails, last := s.often(p)
	if len(last.Failures) == 0 {
		fmt.Fprintf(h.out, "it fails in none of %d more runs; as it was then:\n\n%v\n", often, was)
		h.transcript(r)
	} else {
		fmt.Fprintf(h.out, "\n%v\n", p)
		h.transcript(last)
	}
	fmt.Fprintf(h.out,
		"\n%d events on %d machines, shrunk from %d on %d; it fails in %d of %d runs. To repeat it:\n\n"+
			"\tgo run ./internal/test/worlds -first %d -seeds 1\n",
		len(p.Events), len(p.Machines), len(was.Events), len(was.Machines), fails, often, seed)
	if file, err := p.write(); err == nil {
		fmt.Fprintf(h.out, "\tgo run ./internal/test/worlds -plan %s\n\n", file)
	}
}

func (h *hunter) transcript(r Result) {
	for _, line := range r.Transcript {
		fmt.Fprintln(h.out, line)
	}
	if len(r.Transcript) == 0 {
		for _, f := range r.Failures {
			fmt.Fprintln(h.out, f)
		}
	}
}

// write writes a plan to a file.
func (p Plan) write() (file string, err error) {
	text, err := json.MarshalIndent(p, "", "\t")
	if err != nil {
		return "", err
	}
	file = filepath.Join(os.TempDir(), fmt.Sprintf("firn-world-%d.json", p.Seed))
	return file, os.WriteFile(file, append(text, '\n'), 0o600)
}

// progress prints figures as they grow, on one line of a terminal, until stop is called.
func (h *hunter) progress() (stop func()) {
	each, begin, end := 10*time.Second, "", "\n"
	if f, ok := h.out.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			each, begin, end = time.Second, "\r", ""
		}
	}
	tick, done := time.NewTicker(each), make(chan struct{})
	go func() {
		for {
			select {
			case <-tick.C:
				fmt.Fprint(h.out, begin)
				h.report(end)
			case <-done:
				return
			}
		}
	}()
	return func() {
		tick.Stop()
		close(done)
		fmt.Fprint(h.out, begin)
	}
}

// report prints figures.
func (h *hunter) report(end string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	took := time.Since(h.began)
	s := h.steps
	fmt.Fprintf(h.out,
		"%v: %d worlds, %d failed; %d steps (%d IDs, %d calls of the store, %d entries replayed, %d events), %.0f a "+
			"second; all well again after %v at most%s",
		took.Round(time.Second), h.worlds, h.failed, s.All(), s.IDs, s.Calls, s.Entries, s.Events,
		float64(s.All())/took.Seconds(), h.slowest.Round(time.Millisecond), end)
}
