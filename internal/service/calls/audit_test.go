package calls_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/throttle"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/test/logtest"
	"github.com/firn-id/firn/internal/test/servertest"
)

// withOrders returns a member of a cluster with one sequencer.
func withOrders(t *testing.T) *servertest.Told {
	t.Helper()
	return servertest.Tell(t, "a", cluster.PrepareJoin{Joiner: "a"},
		cluster.CreateSequencer{Sequencer: "orders", Definition: cluster.Define(firn.Default)})
}

// audited is a service and its audit trail.
func audited(m *peer.Member) (*calls.Service, *logtest.Journal, *throttle.Log) {
	var written logtest.Journal
	log := throttle.New(written.Logger())
	return calls.New(m, calls.Options{Audit: log, Default: new(servertest.Issuer)}), &written, log
}

// take returns the trail since the last call, without times.
func take(trail *logtest.Journal) string {
	return strings.TrimSpace(regexp.MustCompile(`(?m)^time=\S+ `).
		ReplaceAllString(strings.Join(trail.Take(), "\n"), ""))
}

const (
	adminToken = "firn_theTokenOfTheOperator_0123456789abcdefghijk"
	shopToken  = "firn_theTokenOfTheShop_0123456789abcdefghijklmno"
)

// operator and shop are the callers of two tokens.
func twoCallers(t *testing.T) (operator, shop *auth.Caller) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	entries := fmt.Sprintf("- {name: operator, sha256: %s, allow: [admin]}\n"+
		"- {name: shop, sha256: %s, allow: [issue]}\n", auth.Hash(adminToken), auth.Hash(shopToken))
	if err := os.WriteFile(file, []byte(entries), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.OpenTokens(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	operator, err = tokens.Identify(adminToken)
	if err == nil {
		shop, err = tokens.Identify(shopToken)
	}
	if err != nil {
		t.Fatal(err)
	}
	return operator, shop
}

// The trail has every change and every refused call, once each, with the caller, the origin, the call and the
// outcome.
func TestAuditTrail(t *testing.T) {
	operator, shop := twoCallers(t)
	from := calls.Origin{Protocol: "http", Remote: "10.0.0.7:4711"}
	fine, trail, _ := audited(withOrders(t).Member)
	for _, tt := range []struct {
		what string
		do   func(context.Context) error
		want string
	}{
		{
			"destroy", func(ctx context.Context) error { return second(fine.Destroy(ctx, operator, "orders")) },
			`level=INFO msg="audit: a change was asked for" who=operator remote=10.0.0.7:4711 protocol=http ` +
				`call=destroy sequencer=orders outcome=ok`,
		},
		{
			"detach", func(ctx context.Context) error { return second(fine.Detach(ctx, operator, "nothing")) },
			`level=INFO msg="audit: a change was asked for" who=operator remote=10.0.0.7:4711 protocol=http ` +
				`call=detach sequencer=nothing outcome=unknown_sequencer`,
		},
		{
			"attach", func(ctx context.Context) error { return second(fine.Attach(ctx, operator, "orders")) },
			`level=INFO msg="audit: a change was asked for" who=operator remote=10.0.0.7:4711 protocol=http ` +
				`call=attach sequencer=orders outcome=unknown_sequencer`,
		},
		{"create with a bad name", func(ctx context.Context) error {
			_, _, err := fine.Create(ctx, operator, "../"+adminToken+strings.Repeat("x", 200), cluster.Definition{}, 0)
			return err
		}, `level=INFO msg="audit: a change was asked for" who=operator remote=10.0.0.7:4711 protocol=http ` +
			`call=create sequencer="../firn_(not shown)" outcome=bad_request`},
		{
			"without the right", func(ctx context.Context) error { return second(fine.Destroy(ctx, shop, "orders")) },
			`level=WARN msg="audit: a call was refused" who=shop remote=10.0.0.7:4711 protocol=http call="DELETE ` +
				`/api/v1/sequencers/{name}" sequencer=orders outcome=forbidden`,
		},
		{
			"without a token", func(context.Context) error { return fmt.Errorf("%w: none", auth.ErrUnauthenticated) },
			`level=WARN msg="audit: a call was refused" who=(anonymous) remote=10.0.0.7:4711 protocol=http ` +
				`call="DELETE /api/v1/sequencers/{name}" outcome=unauthenticated`,
		},
		{
			"a wrong token", func(context.Context) error { return fmt.Errorf("%w: unknown", auth.ErrUnauthenticated) },
			`level=WARN msg="audit: a call was refused" who=(anonymous) remote=10.0.0.7:4711 protocol=http call="GET ` +
				`/api/v1/cluster" outcome=unauthenticated`,
		},
		{
			"a look without a token", func(context.Context) error { return auth.ErrNoToken },
			`level=INFO msg="audit: a call was refused" who=(anonymous) remote=10.0.0.7:4711 protocol=http call="GET ` +
				`/api/v1/cluster" outcome=unauthenticated`,
		},
		{
			"a look where nobody may", func(context.Context) error {
				anyone, err := new(auth.Policy).Admit("")
				return errors.Join(err, anyone.May(auth.Look, ""))
			},
			`level=INFO msg="audit: a call was refused" who=(anonymous) remote=10.0.0.7:4711 protocol=http call="GET ` +
				`/api/v1/cluster" outcome=forbidden`,
		},
		{"an ID", func(ctx context.Context) error { return third(fine.Next(ctx, shop, name)) }, ``},
		{"a look", func(ctx context.Context) error { return second(fine.Sequencer(ctx, operator, "orders")) }, ``},
		{"too many IDs", func(context.Context) error { return &auth.LimitError{Caller: "shop", Rate: 5} }, ``},
	} {
		call := "DELETE /api/v1/sequencers/{name}"
		if strings.Contains(tt.want, "GET ") {
			call = "GET /api/v1/cluster"
		}
		if err := tt.do(from.In(t.Context())); err != nil {
			fine.Refuse(from, call, err) // as every protocol does
		}
		if got := take(trail); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.what, got, tt.want)
		}
	}
	failing := withOrders(t)
	failing.Fail(errors.New("surprise"))
	broken, trail, _ := audited(failing.Member)
	if _, err := broken.Destroy(t.Context(), operator, "orders"); err == nil {
		t.Error("it was destroyed")
	}
	if got, want := take(trail),
		`level=INFO msg="audit: a change was asked for" who=operator remote="" protocol="" call=destroy `+
			`sequencer=orders outcome=internal`; got != want {
		t.Errorf("a bug:\n%s\nwant\n%s", got, want)
	}
}

// Nobody hides a change behind others, nor the refusals of one address behind those of another, nor a call behind
// another call.
func TestNothingHidesInTheTrail(t *testing.T) {
	operator, _ := twoCallers(t)
	synctest.Test(t, func(t *testing.T) {
		s, trail, log := audited(withOrders(t).Member)
		from := calls.Origin{Protocol: "http", Remote: "10.0.0.7:4711"}
		for range 10 * throttle.First {
			_, _ = s.Attach(from.In(t.Context()), operator, "nothing")
		}
		if _, err := s.Destroy(from.In(t.Context()), operator, "orders"); err != nil {
			t.Error(err)
		}
		if changes := trail.Take(); len(changes) != 10*throttle.First+1 ||
			!strings.Contains(changes[len(changes)-1], "call=destroy") {
			t.Errorf("%d changes are in the trail; want %d, the last one a destroy", len(changes), 10*throttle.First+1)
		}
		refuse := func(remote, call string) (written int) {
			s.Refuse(calls.Origin{Protocol: "http", Remote: remote}, call, auth.ErrUnauthenticated)
			return len(trail.Take())
		}
		floods := []struct{ from, other string }{
			{"10.0.0.7:%d", "10.0.0.8:1"},
			{"[2001:db8::%x]:443", "[2001:db8:0:1::1]:443"},
			{"user 1000, process %d", "user 1001, process 1"},
		}
		for _, f := range floods {
			written := 0
			for i := range 3 * throttle.First {
				written += refuse(fmt.Sprintf(f.from, i+1), "POST /api/v1/id")
			}
			if written != throttle.First {
				t.Errorf("%s: %d lines; want %d", f.from, written, throttle.First)
			}
			if refuse(f.other, "POST /api/v1/id") != 1 {
				t.Errorf("%s hides behind %s", f.other, f.from)
			}
			if refuse(fmt.Sprintf(f.from, 1), "DELETE /api/v1/sequencers/{name}") != 1 {
				t.Errorf("%s: one call hides behind another", f.from)
			}
		}
		log.Flush()
	})
}

// Thousands of refusals take a bounded number of lines, whose counts add up, and hide no other caller.
func TestAuditTrailOfAFlood(t *testing.T) {
	operator, shop := twoCallers(t)
	synctest.Test(t, func(t *testing.T) {
		s, trail, log := audited(withOrders(t).Member)
		const refused = 7200
		for i := range refused {
			from := calls.Origin{Protocol: "http", Remote: fmt.Sprintf("10.0.%d.%d:4711", i/250, i%250)}
			s.Refuse(from, "DELETE /api/v1/sequencers/{name}", auth.ErrUnauthenticated)
		}
		s.Refuse(calls.Origin{Protocol: "http"}, "DELETE /api/v1/sequencers/{name}", shop.May(auth.Admin, "orders"))
		if _, err := s.Destroy(t.Context(), operator, "orders"); err != nil {
			t.Error(err)
		}
		if n := strings.Count(trail.String(), "\n"); n != throttle.First+1002 { // of 1000 addresses one each
			t.Errorf("%d calls are %d lines; want %d", refused+2, n, throttle.First+1002)
		}
		for _, who := range []string{"who=shop", "who=operator"} {
			if !strings.Contains(trail.String(), who) {
				t.Errorf("%s is not in the trail", who)
			}
		}
		trail.Take()
		time.Sleep(throttle.Period)
		synctest.Wait()
		log.Flush()
		got := take(trail)
		_, count, _ := strings.Cut(got, " left_out=")
		if n, err := strconv.Atoi(count); err != nil || n != refused-throttle.First-1000 ||
			strings.Contains(got, "\n") {
			t.Errorf("it is said: %s\nwant that %d lines were left out", got, refused-throttle.First-1000)
		}
	})
}
