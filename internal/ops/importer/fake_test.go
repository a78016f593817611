package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/past"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/service/httpapi"
)

var (
	epoch = time.Date(2019, 1, 1, 0, 0, 0, 0, time.UTC)
	now   = epoch.Add(365 * 24 * time.Hour)
	tiny  = firn.Layout{Epoch: epoch, Tick: time.Millisecond, TimeBits: 41, NodeBits: 4, SequenceBits: 3}
)

// fake is a server that has jobs as the real one does, and loses calls and answers.
type fake struct {
	*httptest.Server
	layout firn.Layout

	mu     sync.Mutex // guards what follows
	jobs   map[string]*job
	free   int64 // the node ID of the next job
	calls  int   // for IDs so far
	ended  int   // jobs
	lose   func(call int) fault
	status int                       // of an answer to a lost call; 0: the connection breaks
	change func([]firn.ID) []firn.ID // changes answers with IDs; nil: nothing does
}

type job struct {
	node     int64
	progress past.Progress
}

// fault is what becomes of a call.
type fault int

const (
	works fault = iota
	lostCall
	lostAnswer
)

func newFake(t testing.TB, layout firn.Layout) *fake {
	f := &fake{layout: layout, jobs: map[string]*job{}, free: layout.NodeIDs() - 1}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Method == http.MethodGet {
		d := cluster.Definition{Nodes: f.layout.NodeIDs(), Layout: f.layout}
		_ = json.NewEncoder(w).Encode(calls.StatusSequencer{Name: "q", Definition: d})
		return
	}
	var body calls.Past
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil || !strings.HasSuffix(r.URL.Path, "/q/past") {
		f.refuse(w, codes.BadRequest, fmt.Sprint(r.URL.Path, err))
		return
	}
	f.calls++
	what := works
	if f.lose != nil {
		what = f.lose(f.calls)
	}
	if what == lostCall {
		f.drop(w)
		return
	}
	answer, code, err := f.give(body)
	switch {
	case what == lostAnswer:
		f.drop(w)
	case err != nil:
		f.refuse(w, code, err.Error())
	default:
		_ = json.NewEncoder(w).Encode(answer)
	}
}

func (f *fake) drop(w http.ResponseWriter) {
	if f.status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(f.status)
}

func (f *fake) refuse(w http.ResponseWriter, code codes.Code, message string) {
	w.WriteHeader(code.HTTP())
	_ = json.NewEncoder(w).Encode(httpapi.Failure{Error: httpapi.Error{Code: code, Message: message}})
}

func (f *fake) give(p calls.Past) (answer calls.PastIDs, _ codes.Code, err error) {
	answer.IDs = []firn.ID{}
	j := f.jobs[p.Job]
	switch {
	case j == nil && p.After != 0:
		return answer, codes.Lost, fmt.Errorf("%d is unknown", p.After)
	case j == nil && p.End && len(p.Times) == 0:
		return answer, "", nil
	case j == nil:
		j = &job{node: f.free}
		f.jobs[p.Job] = j
		f.free--
	}
	rule := past.Rule{Layout: f.layout, Node: j.node, Until: now, Move: p.IfFull == calls.NextTick}
	if known, err := rule.Holds(j.progress, p.After); p.After != 0 && (err != nil || !known) {
		return answer, codes.Lost, fmt.Errorf("%d is unknown: %w", p.After, err)
	}
	after, ids, moved, err := rule.Give(j.progress, p.Times, rule.Call(p.Key, p.Times))
	if err != nil {
		return answer, codes.Refused, err
	}
	j.progress = after
	if p.End {
		delete(f.jobs, p.Job)
		f.ended++
	}
	if f.change != nil && len(ids) > 0 {
		ids = f.change(ids)
	}
	answer.IDs = append(answer.IDs, ids...)
	answer.Moved, answer.Node, answer.Reached = moved, &j.node, rule.Reached(after)
	return answer, "", nil
}

// prepared returns an Import for tests: with little memory, and few rows in a call.
func (f *fake) prepared(progress string) *Import {
	i := New(remote.Client{Base: f.URL, HTTP: f.Client()}, "q")
	i.Progress, i.Patience, i.pause = progress, 0, 1
	i.now = func() time.Time { return now }
	i.memory, i.batch = 16, 7
	return i
}

// run runs an Import to its end. No call is under way after it.
func (f *fake) run(t *testing.T, i *Import, input string) (output string, err error) {
	t.Helper()
	defer func() { // whoever has lost an answer is here first
		f.mu.Lock()
		f.mu.Unlock() //nolint:staticcheck // it waits
	}()
	t.Setenv("TMPDIR", t.TempDir())
	defer i.Close()
	if err := i.Open(t.Context()); err != nil {
		return "", err
	}
	if err := i.Read(strings.NewReader(input)); err != nil {
		return "", err
	}
	if err := i.Give(t.Context()); err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = i.Write(&out)
	return out.String(), err
}
