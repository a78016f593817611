//go:build unix

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	ids "github.com/firn-id/firn"
)

// party is a driver that takes part in a scenario, with its stubs.
type party struct {
	driver     *driver
	stubs      []*stub
	supply     *supply
	sequencers map[string]map[string]any // their definitions
	nodes      []*node
	maxAge     time.Duration // of prefetched IDs; zero: none

	cmd    *exec.Cmd
	in     io.WriteCloser
	log    *lines
	exited chan struct{} // closed when the process has ended and all its answers are read
	load   *loaders

	sending sync.Mutex // guards in

	mu      sync.Mutex // guards what follows
	n       int
	waiting map[int]chan answer
	taken   map[string][]ids.ID // by sequencer
	faults  []string
	ended   bool // it takes part no more
}

// answer is a line of a driver.
type answer struct {
	N      int
	Ready  bool
	IDs    []string
	Failed int
	Parts  map[string]int64
	Closed bool
	Error  *failure

	line []byte
}

type failure struct {
	Kind         string `json:"kind"`
	Code         string `json:"code"`
	Status       int    `json:"status"`
	RetryAfterMS int64  `json:"retry_after_ms"`
	Message      string `json:"message"`
}

// join starts a driver with stubs of its own. Nothing is sent yet.
func join(t *testing.T, d *driver, stubs int, args ...string) *party {
	t.Helper()
	p := &party{
		driver: d, supply: &supply{next: 1<<53 + 1}, log: new(lines), exited: make(chan struct{}),
		waiting: map[int]chan answer{}, taken: map[string][]ids.ID{},
	}
	for range stubs {
		p.stubs = append(p.stubs, newStub(t, p.supply, p.faultf))
	}
	p.cmd = d.command(d.Run + " " + strings.Join(args, " "))
	in, inErr := p.cmd.StdinPipe()
	out, outErr := p.cmd.StdoutPipe()
	stderr, err := p.cmd.StderrPipe()
	for _, err := range []error{inErr, outErr, err, p.cmd.Start()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p.in = in
	var read sync.WaitGroup
	read.Go(func() { p.read(out) })
	read.Go(func() {
		for s := bufio.NewScanner(stderr); s.Scan(); {
			p.log.add(s.Text())
		}
	})
	go func() {
		defer close(p.exited)
		read.Wait()
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.exited
	})
	return p
}

// faultf records what the driver did wrong.
func (p *party) faultf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	const most = 20
	if len(p.faults) < most {
		p.faults = append(p.faults, fmt.Sprintf(format, args...))
	}
}

// leave is faultf for a driver that can't go on.
func (p *party) leave(format string, args ...any) {
	p.faultf(format, args...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}

func (p *party) gone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// read hands the answers to those who wait for them.
func (p *party) read(out io.Reader) {
	for r := bufio.NewReader(out); ; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		a := answer{line: line}
		if err := json.Unmarshal(line, &a); err != nil {
			p.leave("it writes %.200q: %v", line, err)
			continue
		}
		p.mu.Lock()
		waits := p.waiting[a.N]
		delete(p.waiting, a.N)
		p.mu.Unlock()
		if waits == nil {
			p.faultf("it answers %d, to which there is no question: %.200s", a.N, line)
			continue
		}
		waits <- a
	}
}

// post sends a line, and returns where its answer comes. The number of the opening is 0.
func (p *party) post(line map[string]any) <-chan answer {
	waits := make(chan answer, 1)
	p.mu.Lock()
	n := p.n
	p.n++
	p.waiting[n] = waits
	p.mu.Unlock()
	line = maps.Clone(line)
	if n > 0 {
		line["n"] = n
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err) // the scenarios are JSON
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	_, _ = p.in.Write(append(text, '\n')) // if it fails, the process has ended
	return waits
}

// wait waits for an answer; false: there is none.
func (p *party) wait(what any, waits <-chan answer) (answer, bool) {
	select {
	case a := <-waits:
		return a, true
	case <-time.After(patience):
		p.leave("no answer to %v within %v", what, patience)
	case <-p.exited:
		select {
		case a := <-waits:
			return a, true
		default:
			p.leave("it ended (%v) without an answer to %v", p.cmd.ProcessState, what)
		}
	}
	return answer{}, false
}

func (p *party) ask(line map[string]any) (answer, bool) { return p.wait(line, p.post(line)) }

// send sends a request, and checks the answer.
func (p *party) send(line map[string]any, w want) {
	sent := time.Now()
	p.supply.called.Store(&sent)
	a, ok := p.ask(line)
	if ended := time.Now(); ended.Sub(sent) >= hedgedAfter {
		p.supply.long.Store(&ended)
	}
	if ok {
		p.check(line, a, w, sent)
	}
}

// ascends is send for IDs that exceed those of all its calls before. Nothing else takes IDs of the sequencer meanwhile.
func (p *party) ascends(line map[string]any, w want) {
	name, _ := line["sequencer"].(string)
	p.mu.Lock()
	before := len(p.taken[name])
	p.mu.Unlock()
	p.send(line, w)
	p.mu.Lock()
	taken := slices.Clone(p.taken[name])
	p.mu.Unlock()
	if old, now := taken[:before], taken[before:]; before > 0 && len(now) > 0 && slices.Min(now) <= slices.Max(old) {
		p.faultf("%v: %d after %d; want a greater one, whichever node answers", line, slices.Min(now), slices.Max(old))
	}
}

func (p *party) check(line map[string]any, a answer, w want, sent time.Time) {
	if w.Error != nil || a.Error != nil {
		p.checkError(line, a, w.Error)
		return
	}
	do, _ := line["do"].(string)
	count := 1
	switch do {
	case "hooks":
		p.checkHooks(a, w)
		return
	case "fill":
		count = number(line["count"])
	case "run":
		count = number(line["callers"]) * number(line["calls"])
		if a.Failed != 0 {
			p.faultf("%v: %d calls failed; want none", line, a.Failed)
		}
	}
	switch {
	case w.IDs != nil && !slices.Equal(a.IDs, w.IDs):
		p.faultf("%v: %.10q; want %q", line, a.IDs, w.IDs)
	case len(a.IDs) != count:
		p.faultf("%v: %d IDs; want %d", line, len(a.IDs), count)
	}
	form, _ := line["form"].(string)
	switch {
	case do == "convert": // it gives no new ID
	case form == "":
		p.enter(line, a.IDs, w.IDs != nil, sent)
	case len(p.nodes) > 0:
		p.enter(line, p.decoded(line, form, a.IDs), false, sent)
	}
}

// decoded returns what a node says that texts are, in decimal.
func (p *party) decoded(line map[string]any, form string, texts []string) (decimals []string) {
	name, _ := line["sequencer"].(string)
	for _, text := range texts {
		at := p.nodes[0].url + filepath.Join(sequencers, name, "ids", text)
		if _, err := ids.EncodingByName(form); err == nil {
			at += "?as=" + form // or a text may be one of several
		}
		var parts struct {
			Text string `json:"id_str"`
		}
		if _, err := exchange(caller, http.MethodGet, at, "", &parts); err != nil {
			p.faultf("%v: %s: %v", line, text, err)
		}
		decimals = append(decimals, parts.Text)
	}
	return decimals
}

func number(v any) int {
	n, _ := v.(float64) // as JSON has it
	return int(n)
}

// enter records IDs, and checks each of them.
func (p *party) enter(line map[string]any, texts []string, scripted bool, sent time.Time) {
	name, _ := line["sequencer"].(string)
	ascend := line["do"] == "fill" && p.sequencers[name]["scattered"] != true
	dense := line["do"] == "fill" && p.sequencers[name]["order"] == "strict"
	var last ids.ID
	taken := make([]ids.ID, 0, len(texts))
	for i, text := range texts {
		id, err := ids.Parse(text)
		if err != nil {
			p.faultf("%v: %v", line, err)
			return
		}
		if i > 0 && id <= last && ascend {
			p.faultf("%v: %d after %d; want them to ascend", line, id, last)
		}
		if i > 0 && id != last+1 && dense {
			p.faultf("%v: %d after %d; want the number that follows", line, id, last)
		}
		last, taken = id, append(taken, id)
		if len(p.stubs) == 0 || scripted {
			continue
		}
		asked, ok := p.supply.asked(id)
		switch age := sent.Sub(asked); {
		case !ok:
			p.faultf("%v: %d, which no node gave", line, id)
		case p.maxAge > 0 && age > p.maxAge:
			p.faultf("%v: %d is %v old; want at most %v", line, id, age, p.maxAge)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[name] = append(p.taken[name], taken...)
}

func (p *party) checkError(line map[string]any, a answer, w *failure) {
	switch {
	case w == nil:
		p.faultf("%v: %+v; want no error", line, *a.Error)
	case a.Error == nil:
		p.faultf("%v: no error; want %s %s", line, w.Kind, w.Code)
	case a.Error.Message == "":
		p.faultf("%v: %+v; want a message", line, *a.Error)
	case strings.Contains(string(a.line), "firn_"):
		p.faultf("%v: the answer has the token: %s", line, a.line)
	default:
		got := *a.Error
		if got.Message = ""; got != *w {
			p.faultf("%v: %+v; want %+v", line, *a.Error, *w)
		}
	}
}

func (p *party) checkHooks(a answer, w want) {
	counts := map[string]any{}
	if err := json.Unmarshal(a.line, &counts); err != nil {
		p.faultf("hooks: %v", err)
	}
	for name, least := range w.AtLeast {
		if got := number(counts[name]); got < least {
			p.faultf("hooks: %d %s; want at least %d", got, name, least)
		}
	}
	for name, most := range w.AtMost {
		if got := number(counts[name]); got > most {
			p.faultf("hooks: %d %s; want at most %d", got, name, most)
		}
	}
}

// idle is how long a caller rests where it need not hurry.
const idle = 100 * time.Millisecond

// loaders are callers that take IDs until they are to stop, each one after the other.
type loaders struct {
	stop     chan struct{}
	all      sync.WaitGroup
	answered atomic.Int64
	wanted   atomic.Int64 // so many answers; with more, the callers go on slowly while other drivers need the machine
}

func (p *party) begin(many int) {
	p.load = &loaders{stop: make(chan struct{})}
	for range many {
		p.load.all.Go(func() {
			for !p.gone() {
				select {
				case <-p.load.stop:
					return
				default:
				}
				p.send(map[string]any{"do": "next"}, want{})
				if p.load.answered.Add(1) > p.load.wanted.Load() {
					time.Sleep(idle)
				}
			}
		})
	}
}

// answers waits until the callers have got so many more.
func (p *party) answers(more int64) {
	from := p.load.answered.Load()
	p.load.wanted.Store(from + more)
	for deadline := time.Now().Add(patience); p.load.answered.Load() < from+more &&
		!p.gone(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			p.leave("%d answers in %v; want %d", p.load.answered.Load()-from, patience, more)
		}
	}
}

func (p *party) stop() {
	close(p.load.stop)
	p.load.all.Wait()
}

// close ends the driver.
func (p *party) close() {
	p.closed(p.post(map[string]any{"do": "close"}))
}

func (p *party) closed(waits <-chan answer) {
	if a, ok := p.wait("close", waits); ok && !a.Closed {
		p.faultf("close: %s; want it closed", a.line)
	}
	_ = p.in.Close()
	select {
	case <-p.exited:
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			p.faultf("it ended with status %d; want 0", code)
		}
	case <-time.After(patience):
		p.leave("it has not ended %v after close", patience)
	}
}

// closeDuring closes the client while calls wait for an answer, which they get.
func (p *party) closeDuring(calls int) {
	held := map[string]<-chan answer{}
	next := func() (name string, waits <-chan answer) {
		name = fmt.Sprint("s", len(held))
		waits = p.post(map[string]any{"do": "next", "sequencer": name})
		held[name] = waits
		return name, waits
	}
	for range calls {
		name, _ := next()
		p.until(func() bool { return p.stubs[0].asked(path(name)) > 0 })
	}
	closing := p.post(map[string]any{"do": "close"})
	early := func() bool {
		select {
		case <-closing:
			p.leave("it says that it is closed while calls wait for an answer")
			return true
		default:
			return false
		}
	}
	deadline := time.Now().Add(patience)
	for told := false; !told && !early() && !p.gone(); { // calls that overtake the close wait, too
		if time.Now().After(deadline) {
			p.leave("no call is told within %v that the client is closed", patience)
		}
		name, waits := next()
		p.until(func() bool {
			select {
			case a := <-waits:
				if a.Error == nil || a.Error.Kind != "closed" {
					p.faultf("a call after close: %s; want the error closed", a.line)
				}
				told = true
				delete(held, name)
			default:
			}
			return told || p.stubs[0].asked(path(name)) > 0
		})
	}
	if p.gone() || early() {
		return
	}
	p.stubs[0].play([]reply{{}})
	for name, waits := range held {
		line := map[string]any{"do": "next", "sequencer": name}
		if a, ok := p.wait(line, waits); ok {
			p.check(line, a, want{}, time.Now())
		}
	}
	p.closed(closing)
}

// path is where a named sequencer gives one ID.
func path(sequencer string) string { return filepath.Join(sequencers, sequencer, "id") }

// until waits for a condition.
func (p *party) until(done func() bool) {
	for deadline := time.Now().Add(patience); !done() && !p.gone(); time.Sleep(time.Millisecond) {
		select {
		case <-p.exited:
			p.leave("it ended: %v", p.cmd.ProcessState)
		default:
		}
		if time.Now().After(deadline) {
			p.leave("it waits in vain for %v", patience)
		}
	}
}
