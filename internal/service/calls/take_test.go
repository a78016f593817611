package calls_test

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/test/servertest"
)

// Consecutive numbers need the right to take IDs, count against the limit, and are counted as given.
func TestTake(t *testing.T) {
	m := servertest.Join(t)
	if _, err := m.Create(t.Context(), "invoices", cluster.Definition{Kind: cluster.Counter, Max: 30}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	entries := fmt.Sprintf("- {name: shop, sha256: %s, allow: [issue], sequencers: [invoices], rate: 25}\n",
		auth.Hash("shop"))
	entries += fmt.Sprintf("- {name: other, sha256: %s, allow: [issue], sequencers: [orders]}\n", auth.Hash("other"))
	if err := os.WriteFile(file, []byte(entries), 0o600); err != nil {
		t.Fatal(err)
	}
	known, err := auth.OpenTokens(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	policy := &auth.Policy{Tokens: known}
	who := func(token string) *auth.Caller {
		who, err := policy.Admit(token)
		if err != nil {
			t.Fatal(err)
		}
		return who
	}
	s := calls.New(m, calls.Options{Default: new(servertest.Issuer)})
	shop, all := who("shop"), anyone(t)
	for _, tt := range []struct {
		who   *auth.Caller
		name  string
		count int
		last  int64
		code  codes.Code
		says  string
	}{
		{all, "invoices", 3, 3, codes.OK, ""},
		{all, "invoices", 1, 4, codes.OK, ""},
		{shop, "invoices", 2000, 0, codes.RateLimited, "allows 25 IDs per second"},
		{shop, "invoices", 20, 24, codes.OK, ""},
		{all, "invoices", 7, 0, codes.Exhausted, "the numbers end at 30"},
		{nil, "invoices", 1, 0, codes.Unauthenticated, ""},
		{who("other"), "invoices", 1, 0, codes.Forbidden, ""},
		{all, "invoices", 0, 0, codes.BadRequest, "count is 0; want a number from 1 to 100000"},
		{all, "invoices", 100001, 0, codes.BadRequest, "count is 100001; want a number from 1 to 100000"},
		{all, name, 2, 0, codes.BadRequest, `the sequencer "default" gives no consecutive IDs: it is no counter`},
		{all, "nothing", 2, 0, codes.UnknownSequencer, ""},
	} {
		last, err := s.Take(t.Context(), tt.who, tt.name, tt.count)
		code, says := codes.OK, ""
		if err != nil {
			code, says = calls.CodeOf(err), err.Error()
		}
		if int64(last) != tt.last || code != tt.code || !strings.Contains(says, tt.says) {
			t.Errorf("%d of %s: %d, %s, %q; want %d, %s, %q", tt.count, tt.name, last, code, says, tt.last, tt.code,
				tt.says)
		}
	}
	if given := s.Given(); !maps.Equal(given, map[string]uint64{name: 0, "invoices": 24}) {
		t.Errorf("given were %v", given)
	}

	for name, want := range map[string]bool{"invoices": true, name: false} {
		if counts, err := s.Counts(t.Context(), all, name); err != nil || counts != want {
			t.Errorf("%s counts: %t, %v", name, counts, err)
		}
	}
	if _, err := s.Counts(t.Context(), who("other"), "invoices"); calls.CodeOf(err) != codes.Forbidden {
		t.Errorf("%v; want that it is forbidden", err)
	}
	if _, err := s.Counts(t.Context(), all, "nothing"); calls.CodeOf(err) != codes.UnknownSequencer {
		t.Errorf("%v; want that there is none", err)
	}
}
