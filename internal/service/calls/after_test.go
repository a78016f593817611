package calls

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/codes"
)

// limited gives no IDs after one that lies further ahead than the caller may, or the horizon is.
type limited struct {
	asked
	definition cluster.Definition
	ahead      time.Duration // the ID to exceed
	horizon    time.Duration
	after      firn.ID // as it was asked last
}

func (l *limited) Definition() cluster.Definition { return l.definition }

func (l *limited) FillAfter(_ context.Context, after firn.ID, most time.Duration, ids []firn.ID) error {
	l.after = after
	if most = min(most, l.horizon); after != 0 && l.ahead > most {
		return &firn.AheadError{ID: after, Ahead: l.ahead, Most: most}
	}
	ids[0] = after + 1
	return nil
}

// How far ahead of the clock an ID to exceed may lie depends on the right of the caller, and the error says so.
func TestWhoMayMoveIDTime(t *testing.T) {
	const second = time.Second
	for _, c := range []struct {
		who            *auth.Caller
		ahead, horizon time.Duration
		code           codes.Code
		want           string
	}{
		{anyone(t), second, 20 * second, "", ""},
		{
			anyone(t), 1500 * time.Millisecond, 20 * second, codes.Clock,
			"after lies 1.5s ahead of this node's clock; it may lie at most 1s ahead, or 10s for a token that allows " +
				"order; try another server, or later",
		},
		{
			anyone(t), 11 * second, 20 * second, codes.BadRequest,
			"after lies 11s ahead of this node's clock; it may lie at most 1s ahead: want an ID that this " +
				"sequencer has made",
		},
		{withOrder(t), 10 * second, 20 * second, "", ""},
		{
			withOrder(t), 10*second + time.Millisecond, 20 * second, codes.BadRequest,
			"after lies 10.001s ahead of this node's clock; it may lie at most 10s ahead: want an ID that this " +
				"sequencer has made",
		},
		{
			withOrder(t), 5 * second, 3 * second, codes.Clock,
			"after lies 5s ahead of this node's clock; it may lie at most 3s ahead now, by this node's window and " +
				"horizon; try another server",
		},
	} {
		m := &limited{ahead: c.ahead, horizon: c.horizon, definition: cluster.Define(firn.Default)}
		err := New(nil, Options{Default: m}).ManyAfter(t.Context(), c.who, "", peer.DefaultSequencer, 77, 1, none)
		if c.want == "" {
			if err != nil || m.after != 77 {
				t.Errorf("%v ahead: %v", c.ahead, err)
			}
		} else if err == nil || CodeOf(err) != c.code || err.Error() != c.want {
			t.Errorf("%v ahead: %v: %v\nwant %v: %s", c.ahead, CodeOf(err), err, c.code, c.want)
		}
	}
}

// withOrder is a caller that may do everything.
func withOrder(t *testing.T) *auth.Caller {
	t.Helper()
	who, err := (&auth.Policy{Trusted: true}).Admit("")
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// An ID to exceed is one that the sequencer may have made.
func TestReadAfter(t *testing.T) {
	short := firn.Default
	short.TimeBits = 30
	m := &limited{definition: cluster.Define(short), horizon: time.Hour}
	s := New(nil, Options{Default: m})
	many := func(after firn.ID) error {
		return s.ManyAfter(t.Context(), anyone(t), "", peer.DefaultSequencer, after, 1, none)
	}
	if err := many(firn.MaxID); CodeOf(err) != codes.BadRequest || !strings.Contains(err.Error(), "after: ") {
		t.Errorf("an ID of another layout: %v", err)
	}
	m.definition.Kind = cluster.Counter
	if err := many(firn.MaxID); err != nil {
		t.Errorf("a counter: %v", err)
	}
	m.definition.Kind, m.definition.Scattered = 0, true
	if err := many(firn.Scatter(7)); err != nil {
		t.Errorf("a scattered ID: %v", err)
	}
	if err := many(firn.Scatter(firn.MaxID)); CodeOf(err) != codes.BadRequest {
		t.Errorf("a scattered ID of another layout: %v", err)
	}

	for text, want := range map[string]firn.ID{"77": 77, "77x": -1, "-1": -1, "": -1} {
		id, err := ReadAfter(text)
		if (want >= 0) != (err == nil) || err == nil && id != want || err != nil && CodeOf(err) != codes.BadRequest {
			t.Errorf("%q: %d, %v", text, id, err)
		}
	}
}
