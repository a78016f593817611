package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Which failures of a node are tried to put right with another one, and which are for the caller.
func TestWhatIsRetried(t *testing.T) {
	ids := func(list string) string { return `{"id_str":` + list + `}` }
	for _, c := range []struct {
		name    string
		bad     behaviour
		retried bool
	}{
		{"refused or reset", fails(errReset), true},
		{"no answer", hangs, true},
		{"301", says(301, ""), true},
		{"400", refuses(400, "bad_request"), false},
		{"401", refuses(401, "unauthenticated"), false},
		{"401 of a proxy", says(401, "<html>"), false},
		{"403", refuses(403, "forbidden"), false},
		{"404", refuses(404, "unknown_sequencer"), false},
		{"404 of what is no firn node", says(404, "<html>"), true},
		{"405", refuses(405, "method_not_allowed"), false},
		{"408", says(408, ""), true},
		{"409", refuses(409, "exists"), false},
		{"409 of a counter that is used up", refuses(409, "exhausted"), false},
		{"409 of a counter that has stopped", refuses(409, "lost"), false},
		{"413", refuses(413, "too_large"), false},
		{"429", refuses(429, "rate_limited", "Retry-After", "1"), false},
		{"500", refuses(500, "internal"), true},
		{"500 unreadable", refuses(500, "unreadable"), true},
		{"502 of a proxy", says(502, "<html>"), true},
		{"503 not_ready", refuses(503, "not_ready", "Retry-After", "1"), true},
		{"503 waiting", refuses(503, "waiting"), true},
		{"503 detached", refuses(503, "detached"), true},
		{"503 unfit", refuses(503, "unfit"), true},
		{"503 unavailable", refuses(503, "unavailable"), true},
		{"503 overloaded", refuses(503, "overloaded"), true},
		{"503 lifetime", refuses(503, "lifetime"), false},
		{"503 with another code", refuses(503, "draining"), true},
		{"503 without a code", says(503, ""), true},
		{"200 that is no JSON", says(200, "<html>"), true},
		{"200 cut off", says(200, `{"id_str":"12`), true},
		{"no ID", says(200, "{}"), true},
		{"zero", says(200, ids(`"0"`)), true},
		{"negative", says(200, ids(`"-1"`)), true},
		{"beyond 63 bits", says(200, ids(`"9223372036854775808"`)), true},
		{"too long", says(200, ids(`"5"`)+strings.Repeat(" ", 1<<20)), true},
		{"204", says(204, ""), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(map[string]behaviour{"bad": c.bad, "good": gives(time.Millisecond)})
				both := f.of(t, "good bad") // the second one is the first to be asked
				_, err := both.Next(within(t, time.Second))
				var e *Error
				switch {
				case c.retried && err != nil:
					t.Errorf("it is not retried: %v", err)
				case !c.retried && (!errors.As(err, &e) || e.Node != "http://bad" || errors.Is(err, ErrNoAnswer)):
					t.Errorf("it is retried, or not returned: %v", err)
				case !c.retried && f.requests("good") > 0:
					t.Error("another node was asked")
				}
				if f.requests("bad") != 1 {
					t.Errorf("the bad node had %d requests, want 1", f.requests("bad"))
				}
			})
		})
	}
}

func TestTheErrorSaysWhatTheNodeSays(t *testing.T) {
	f := newFleet(map[string]behaviour{"a": refuses(429, "rate_limited", "Retry-After", "7")})
	_, err := f.of(t, "a").Next(t.Context())
	var e *Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	if want := (Error{"http://a", 429, "rate_limited", "so it is", 7 * time.Second}); *e != want {
		t.Errorf("%+v, want %+v", *e, want)
	}
	if text := err.Error(); text != "http://a answers 429: rate_limited: so it is" {
		t.Error(text)
	}
}

// When the deadline passes the error says of each node what was wrong, and comes at the deadline.
func TestNoNodeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{
			"a": fails(errReset),
			"b": refuses(503, "not_ready", "Retry-After", "1"), "c": hangs,
		})
		c, began := f.of(t, "a b c"), time.Now()
		_, err := c.Next(within(t, time.Second))
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
		var e *Error
		if !errors.Is(err, ErrNoAnswer) || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errReset) ||
			!errors.As(err, &e) || e.Code != "not_ready" {
			t.Errorf("%v", err)
		}
		want := "no node gave an ID in time: context deadline exceeded after 1s; http://a: connection reset by peer; " +
			"http://b answers 503: not_ready: so it is; http://c: no answer yet"
		if err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
		for _, node := range []string{"a", "b"} {
			if n := f.requests(node); n < 3 || n > 12 {
				t.Errorf("%s had %d requests in a second, want a few: again and again, and not all the time", node, n)
			}
		}
		if n := f.requests("c"); n != mostOut {
			t.Errorf("the node that hangs has %d requests, want %d", n, mostOut)
		}
	})
}

// A node that comes back within the deadline is found.
func TestTheOnlyNodeIsRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{"a": fails(errReset)})
		c := f.of(t, "a")
		time.AfterFunc(500*time.Millisecond, func() { f.set("a", gives(time.Millisecond)) })
		mustNext(t, c)
	})
}

func TestWithoutADeadlineThereIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{"a": hangs})
		c, began := f.of(t, "a"), time.Now()
		_, err := c.Next(context.Background())
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != DefaultTimeout {
			t.Errorf("%v after %v", err, took)
		}
	})
}

func TestACanceledCallAsksNobody(t *testing.T) {
	f := newFleet(map[string]behaviour{"a": gives(0)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, options := range [][]Option{nil, {WithPrefetch(10, time.Second)}} {
		if _, err := f.of(t, "a", options...).Next(ctx); !errors.Is(err, context.Canceled) || f.requests("a") > 0 {
			t.Errorf("%v, %d requests", err, f.requests("a"))
		}
	}
}

// A request too many, that the client itself has sent, does not make the call fail.
func TestTheLimitIsHitByTheClientsOwnHedge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{
			"slow":   gives(500 * time.Millisecond),
			"strict": refuses(429, "rate_limited"),
		})
		c := f.of(t, "strict slow")
		mustNext(t, c)
		if f.requests("strict") != 1 {
			t.Errorf("%d requests", f.requests("strict"))
		}
	})
}
