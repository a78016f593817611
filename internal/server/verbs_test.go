package server_test

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/server/servertest"
)

// The audit trail says about which member a call was: by its whole ID once that is known.
func TestAuditedVerbs(t *testing.T) {
	operator, shop := twoCallers(t)
	m := &servertest.Member{Name: "a"}
	m.Apply(cluster.PrepareJoin{Joiner: "a2b"})
	s, trail, _ := audited(m)
	for _, tt := range []struct {
		do   func() error
		want string
	}{
		{func() error { _, err := s.Expel(t.Context(), operator, "x"); return err }, "call=expel member=x outcome=bad_request"},
		{func() error { _, err := s.Expel(t.Context(), shop, "a2"); return err }, ""},
		{func() error { _, err := s.SetPolicy(t.Context(), operator, nil); return err }, `call="set policy" outcome=ok`},
		{func() error { _, err := s.Expel(t.Context(), operator, "a2"); return err }, "call=expel member=a2b outcome=ok"},
	} {
		_ = tt.do()
		if got := take(trail); !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("the trail says %q; want %q", got, tt.want)
		}
	}
}
