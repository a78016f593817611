package calls_test

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/test/servertest"
)

// The audit trail says about which member a call was: by its whole ID once that is known.
func TestAuditedVerbs(t *testing.T) {
	operator, shop := twoCallers(t)
	m := servertest.Tell(t, "a", cluster.PrepareJoin{Joiner: "a"}, cluster.PrepareJoin{Joiner: "a2b"})
	m.SetPulses(map[string]peer.Pulse{"a": {}})
	m.SetNodes(peer.NodeRecord{Name: "ids-1", Members: []string{"a"}},
		peer.NodeRecord{Name: "ids-2", Members: []string{"b"}})
	s, trail, _ := audited(m.Member)
	for _, tt := range []struct {
		do   func() error
		want string
	}{
		{func() error {
			_, err := s.Expel(t.Context(), operator, "x", false)
			return err
		}, "call=expel member=x outcome=bad_request"},
		{func() error { _, err := s.Expel(t.Context(), shop, "a2", false); return err }, ""},
		{func() error {
			_, err := s.SetPolicy(t.Context(), operator, nil)
			return err
		}, `call="set policy" outcome=ok`},
		{func() error {
			_, err := s.Expel(t.Context(), operator, "a2", false)
			return err
		}, "call=expel member=a2b outcome=ok"},
		// it lives
		{func() error {
			_, err := s.Forget(t.Context(), operator, "ids-1")
			return err
		}, "call=forget member=ids-1 outcome=bad_request"},
		{func() error {
			_, err := s.Forget(t.Context(), operator, "ids-2")
			return err
		}, "call=forget member=ids-2 outcome=ok"},
		{func() error {
			_, err := s.Forget(t.Context(), operator, "ids-2")
			return err
		}, "call=forget member=ids-2 outcome=bad_request"},
		{func() error { _, err := s.Forget(t.Context(), shop, "ids-1"); return err }, ""},
	} {
		_ = tt.do()
		if got := take(trail); !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("the trail says %q; want %q", got, tt.want)
		}
	}
}
