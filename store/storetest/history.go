package storetest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/firn-id/firn/store"
)

// history is what concurrent clients saw of a store. Its moments are numbers of an own
// clock, which orders what happened one after the other whatever the time was.
type history struct {
	clock atomic.Int64

	mu       sync.Mutex // guards what follows
	keys     []*keyCall
	log      []*logCall
	problems []error // what no order of calls can explain
}

// span is when a call of a worker was made and when it ended.
type span struct {
	worker    int
	call, end int64
}

func (h *history) now() int64 { return h.clock.Add(1) }

func (h *history) problem(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problems = append(h.problems, fmt.Errorf(format, args...))
}

func (h *history) addKeys(c *keyCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keys = append(h.keys, c)
}

func (h *history) addLog(c *logCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = append(h.log, c)
}

// decide is how long the search for an order may take. It takes a moment, unless very many
// calls are in doubt.
const decide = time.Minute

// check returns what is wrong with the history; nil: some order of the calls, in which each
// has its place between its beginning and its end, explains all answers.
func (h *history) check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	errs := slices.Clone(h.problems)
	for _, group := range groups {
		errs = append(errs, inOrder("the keys "+group, keyModel, keyOperations(h.keys, group, h.now())))
	}
	errs = append(errs, inOrder("the log", logModel, logOperations(h.log)))
	return errors.Join(errs...)
}

// inOrder looks for an order.
func inOrder(of string, model porcupine.Model, calls []porcupine.Operation) error {
	result, info := porcupine.CheckOperationsVerbose(model, calls, decide)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("whether %d calls for %s have an order is not decided within %v", len(calls), of, decide)
	}
	return fmt.Errorf("no order explains %d calls for %s: %s%s", len(calls), of, stuck(model, calls, info),
		drawing(model, info))
}

// stuck describes where the longest order ends.
func stuck(model porcupine.Model, calls []porcupine.Operation, info porcupine.LinearizationInfo) string {
	const shown = 12
	var longest []int
	for _, order := range info.PartialLinearizations()[0] {
		if len(order) > len(longest) {
			longest = order
		}
	}
	var text strings.Builder
	state := model.Init()
	fmt.Fprintf(&text, "the longest order has %d. It ends with", len(longest))
	for i, id := range longest {
		_, state = model.Step(state, calls[id].Input, nil)
		if i >= len(longest)-shown {
			fmt.Fprintf(&text, "\n  %s", line(calls[id]))
		}
	}
	fmt.Fprintf(&text, "\nwhich leads to\n  %s\nwhere none of these can follow:", model.DescribeState(state))
	var left []porcupine.Operation
	first := int64(1)<<62 - 1 // the end of the call that must come before all that begin later
	for id, c := range calls {
		if !slices.Contains(longest, id) {
			left = append(left, c)
			first = min(first, c.Return)
		}
	}
	slices.SortFunc(left, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	for _, c := range left {
		if c.Call <= first {
			fmt.Fprintf(&text, "\n  %s", line(c))
		}
	}
	return text.String()
}

func line(c porcupine.Operation) string {
	return fmt.Sprintf("%6d to %6d  worker %2d: %s", c.Call, c.Return, c.ClientId, c.Input)
}

// drawing keeps a page that shows the whole history, and says where.
func drawing(model porcupine.Model, info porcupine.LinearizationInfo) string {
	file, err := os.CreateTemp("", "firn-history-*.html")
	if err == nil {
		err = errors.Join(porcupine.Visualize(model, info, file), file.Close())
	}
	if err != nil {
		return fmt.Sprintf("\nno drawing of it: %v", err)
	}
	return "\na drawing of it: " + file.Name()
}

// describe is what models share.
func describe(m porcupine.Model) porcupine.Model {
	m.DescribeOperation = func(input, _ any) string { return fmt.Sprint(input) }
	m.DescribeState = func(state any) string { return fmt.Sprint(state) }
	return m
}

// outcome is how a call ended.
type outcome int

const (
	applied      outcome = iota
	conflicting          // ErrConflict
	sessionEnded         // ErrSessionEnded
	inDoubt              // ErrAmbiguous
	noEffect             // ErrUnavailable: it did nothing
	mistaken             // an error that it must not return
)

func outcomeOf(err error, allowed ...error) outcome {
	if err == nil {
		return applied
	}
	outcomes := map[error]outcome{
		store.ErrConflict: conflicting, store.ErrSessionEnded: sessionEnded, store.ErrAmbiguous: inDoubt,
		store.ErrUnavailable: noEffect,
	}
	for _, is := range allowed {
		if errors.Is(err, is) {
			return outcomes[is]
		}
	}
	return mistaken
}

func (o outcome) String() string {
	return [...]string{"done", "conflict", "session ended", "in doubt", "nothing", "wrong"}[o]
}
