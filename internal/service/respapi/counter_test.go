package respapi

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/test/servertest"
)

// A counter is one as in Redis: INCRBY takes n consecutive numbers, and the caller owns those up to the reply.
func TestCounter(t *testing.T) {
	m := servertest.Join(t)
	d := cluster.Definition{Kind: cluster.Counter, Max: 200_020, Prefix: "inv"}
	if _, err := m.Create(t.Context(), "invoices", d); err != nil {
		t.Fatal(err)
	}
	s := New(calls.New(m, calls.Options{Default: newCounting()}), &auth.Policy{}, nil)
	for _, tt := range []struct{ says, want string }{
		{"INCR invoices", "1"},
		{"INCRBY invoices 5", "6"},
		{"INCRBY invoices 1", "7"},
		{"INCR invoices", "8"},
		{array("INCR", "invoices") + array("INCR", "invoices"), "9\n10"},
		{array("INCRBY", "invoices", "3") + array("INCRBY", "invoices", "3"), "13\n16"},
		{"FIRN.IDS invoices 2", `["17" "18"]`},
		{"INCRBY invoices 100000", "100018"},
		{
			"INCRBY invoices 100001",
			"-ERR can't increment by '100001': numbers can't be given back; want a number from 1 to 100000",
		},
		{
			"INCRBY invoices 0",
			"-ERR can't increment by '0': numbers can't be given back; want a number from 1 to 100000",
		},
		{
			"INCRBY invoices -5",
			"-ERR can't increment by '-5': numbers can't be given back; want a number from 1 to 100000",
		},
		{
			"INCRBY invoices x",
			"-ERR can't increment by 'x': numbers can't be given back; want a number from 1 to 100000",
		},
		{"FIRN.ID invoices prefixed", `"inv_00000000031nk"`},
		{
			"FIRN.DECODE invoices INV8-71 prefixed-checked",
			`["id_str" "8" "text" "INV8-71" "kind" "counter" "id" 8]`,
		},
		{"FIRN.DECODE invoices INV8-00", `-ERR "INV8-00" is not a prefixed-checked ID: its check digits do not fit`},
		{"FIRN.DECODE invoices 8", `["id_str" "8" "kind" "counter" "id" 8]`},
		{
			"FIRN.DECODE invoices inv_0000000000008 prefixed prefixed",
			`["id_str" "8" "text" "inv_0000000000008" "kind" "counter" "id" 8]`,
		},
		{"INCRBY nothing 2", `-UNKNOWNSEQUENCER`},
		{"INCRBY invoices 100000", "200019"},
		{"INCRBY invoices 2", "-EXHAUSTED"},
		{"INCR invoices", "200020"},
		{"INCR invoices", "-EXHAUSTED"},
	} {
		if got := replies(t, s, tt.says+"\r\n"); !strings.HasPrefix(got, tt.want) ||
			got != tt.want && !strings.HasPrefix(tt.want, "-") {
			t.Errorf("%q: %s, want %s", tt.says, got, tt.want)
		}
	}
	s.Texts = true
	if _, err := m.Create(t.Context(), "more", cluster.Definition{Kind: cluster.Counter}); err != nil {
		t.Fatal(err)
	}
	if got := replies(t, s, "INCRBY more 5\r\n"); got != `"5"` {
		t.Errorf("as a text it is %s", got)
	}
}
