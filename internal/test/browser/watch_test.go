package browser_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// watched is what a tab does beside showing its page.
type watched struct {
	mu       sync.Mutex // guards the rest
	requests []string
	said     []string // on the console, by the page or by the browser, such as violations of the policy
}

// watch begins to watch a tab. What the tab does before it has done an action is seen when the action returns.
func watch(t *testing.T, ctx context.Context) *watched {
	t.Helper()
	w := &watched{}
	err := chromedp.Listen(ctx, func(event any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			w.requests = append(w.requests, e.Request.URL)
		case *runtime.EventConsoleAPICalled:
			for _, a := range e.Args {
				w.said = append(w.said, fmt.Sprintf("console.%s: %s %s", e.Type, a.Value, a.Description))
			}
		case *runtime.EventExceptionThrown:
			said := "exception: " + e.ExceptionDetails.Text
			if thrown := e.ExceptionDetails.Exception; thrown != nil {
				said += " " + thrown.Description
			}
			w.said = append(w.said, said)
		case *log.EventEntryAdded:
			w.said = append(w.said, fmt.Sprintf("%s %s: %s", e.Entry.Source, e.Entry.Level, e.Entry.Text))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// take returns what was seen since it was called last.
func (w *watched) take() (requests, said []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	requests, said = w.requests, w.said
	w.requests, w.said = nil, nil
	return requests, said
}

// quiet wants requests, that all went to one server or were data of the page itself, and nothing on the console but
// what has one of these words.
func (w *watched) quiet(t *testing.T, server string, but ...string) {
	t.Helper()
	requests, said := w.take()
	said = slices.DeleteFunc(said, func(line string) bool {
		return slices.ContainsFunc(but, func(words string) bool { return strings.Contains(line, words) })
	})
	if len(requests) == 0 {
		t.Error("no request was seen")
	}
	for _, r := range requests {
		if !strings.HasPrefix(r, server+"/") && !strings.HasPrefix(r, "data:") {
			t.Errorf("it asked for %s", r)
		}
	}
	if len(said) > 0 {
		t.Errorf("it was said: %q", said)
	}
}
