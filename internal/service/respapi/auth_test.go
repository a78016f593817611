package respapi

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/base/throttle"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/test/servertest"
)

// tokens are those that are known.
type tokens struct {
	mu    sync.Mutex
	known map[string]bool
	asked int
}

func (k *tokens) Identify(token string) (*auth.Caller, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	if !k.known[token] {
		return nil, fmt.Errorf("%w: nobody has this token", auth.ErrUnauthenticated)
	}
	return (&auth.Policy{}).Admit("")
}

func (k *tokens) withdraw(token string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, token)
}

// policy lets in who shows one of the tokens; without any, anyone.
func policy(k *tokens) *auth.Policy {
	if k == nil {
		return &auth.Policy{}
	}
	return &auth.Policy{Tokens: k}
}

func TestAuth(t *testing.T) {
	const (
		noAuth    = "-NOAUTH Authentication required."
		wrong     = "-WRONGPASS invalid username-password pair or user is disabled: unknown token"
		id        = "1152921504606846976"
		helloWant = "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> " +
			"AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol " +
			"version at " +
			"the same time"
	)
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	for _, tt := range []struct{ says, want string }{
		{"INCR default", noAuth},
		{"PING", noAuth},
		{"NOTHING", noAuth},
		{"INFO", noAuth},
		{"COMMAND", noAuth},
		{"QUIT", "+OK"},
		{"AUTH s3cret\r\nINCR default", "+OK\n" + id},
		{"AUTH default s3cret\r\nINCR default", "+OK\n" + id},
		{"AUTH wrong\r\nINCR default", wrong + "\n" + noAuth},
		{"AUTH \"\"\r\nINCR default", wrong + "\n" + noAuth},
		{"AUTH s3cret\r\nAUTH wrong\r\nINCR default", "+OK\n" + wrong + "\n" + id},
		{"AUTH s3cret\r\nRESET\r\nINCR default", "+OK\n+RESET\n" + noAuth},
		{"HELLO", helloWant},
		{"HELLO 3", helloWant},
		{"HELLO 3 AUTH any wrong\r\nINCR default", wrong + "\n" + noAuth},
		{"HELLO 3 AUTH any \"\"\r\nINCR default", wrong + "\n" + noAuth},
		{
			"HELLO 3 AUTH any s3cret SETNAME \"a b\"\r\nINCR default",
			"-ERR Client names cannot contain spaces, newlines or special characters, nor have more than 128 bytes.\n" +
				noAuth,
		},
	} {
		s := newServerWith(t, newCounting(), policy(&tokens{known: map[string]bool{"s3cret": true}}), logger)
		got := replies(t, s, tt.says+"\r\n")
		if got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.says, got, tt.want)
		}
		if strings.Contains(got+log.String(), "s3cret") {
			t.Errorf("%s: the token is in %s or %s", tt.says, got, &log)
		}
	}
	s := newServerWith(t, newCounting(), policy(&tokens{known: map[string]bool{"s3cret": true}}), nil)
	if got := replies(t, s, "HELLO 3 AUTH any s3cret\r\nINCR default\r\n"); !strings.HasPrefix(got,
		`{"server" "firn" `) || !strings.HasSuffix(got, "\n"+id) {
		t.Error(got)
	}
}

// Who is not let in is in the audit trail, whatever Redis calls that; and no token is.
func TestAuditTrail(t *testing.T) {
	var trail bytes.Buffer
	log := slog.New(slog.NewTextHandler(&trail, nil))
	service := calls.New(servertest.Join(t), calls.Options{Audit: throttle.New(log), Default: newCounting()})
	s := New(service, policy(&tokens{known: map[string]bool{"s3cret": true}}), nil)
	for _, tt := range []struct{ says, call string }{
		{"INCR default", "INCR"},
		{"NOTHING", "another"},
		{"AUTH wr0ng", "AUTH"},
		{"HELLO 3 AUTH any wr0ng", "AUTH"},
		{"HELLO 3", "HELLO"},
		{"AUTH s3cret\r\nINCR default", ""},
	} {
		trail.Reset()
		replies(t, s, tt.says+"\r\n")
		want := ""
		if tt.call != "" {
			want = "who=(anonymous) remote=:0 protocol=redis call=" + tt.call + " outcome=unauthenticated\n"
		}
		if got := trail.String(); !strings.HasSuffix(got, want) || (want == "") != (got == "") ||
			strings.Contains(got, "wr0ng") {
			t.Errorf("%s: the trail says %q; want %q", tt.says, got, want)
		}
	}
}

// A token whose calls take long leaves room for those of others.
func TestNoTokenTakesAllCalls(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	entries := fmt.Sprintf("- {name: slow, sha256: %s, allow: [issue]}\n- {name: quick, sha256: %s, allow: [issue]}\n",
		auth.Hash("slow"), auth.Hash("quick"))
	if err := os.WriteFile(file, []byte(entries), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		known, err := auth.OpenTokens(file, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		m, release := newCounting(), make(chan struct{})
		var hold atomic.Bool
		hold.Store(true)
		m.Before = func(context.Context) error {
			if hold.Load() {
				<-release
			}
			return nil
		}
		s := New(calls.New(servertest.Join(t), calls.Options{Default: m, MaxCalls: 16}),
			&auth.Policy{Tokens: known}, nil)
		ask := func(who string) string { return replies(t, s, "AUTH "+who+"\r\nINCR default\r\n") }
		var all sync.WaitGroup
		var refused atomic.Int64
		for range 20 {
			all.Go(func() {
				if strings.Contains(ask("slow"), "-OVERLOADED") {
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		hold.Store(false)
		if n, got := refused.Load(), ask("quick"); n != 6 || strings.Contains(got, "\n-") {
			t.Errorf("of 20 calls %d were refused, and then another token got %s; want 6, and an ID", n, got)
		}
		close(release)
		all.Wait()
	})
}

// A token that is withdrawn stops working on a connection that has shown it, though not everything is asked again.
func TestWithdrawnToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &tokens{known: map[string]bool{"s3cret": true}}
		s := newServerWith(t, newCounting(), policy(k), nil)
		served(t, s, func(l *listener) {
			c := l.dial(t)
			c.ask("AUTH s3cret")
			for range 10 {
				c.ask("INCR default")
			}
			if k.asked != 1 { // nobody else is asked when no token is shown
				t.Errorf("it was asked %d times who that is", k.asked)
			}
			k.withdraw("s3cret")
			time.Sleep(admitAgain) // simulated
			for range 2 {
				if got := c.ask("INCR default"); got != "-NOAUTH Authentication required." {
					t.Error(got)
				}
			}
		})
	})
}
