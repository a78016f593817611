package node

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/test/logtest"
)

// A node tells once that it gives no IDs, with the reason, and once that it gives them again. Who has given none yet,
// and who is not ready for a moment, tells nothing.
func TestOutage(t *testing.T) {
	cut := fmt.Errorf("%w: the store does not answer", peer.ErrNotReady)
	other := errors.New("another reason")
	const (
		stops = `level=ERROR msg="this node gives no IDs" since=2026-11-27T02:47:3`
		again = `level=INFO msg="this node gives IDs again" after=`
	)
	for name, c := range map[string]struct {
		by   []error // a second apart
		want []string
	}{
		"never ready":  {[]error{cut, cut, cut, cut, cut}, nil},
		"always ready": {[]error{nil, nil, nil, nil}, nil},
		"for a moment": {[]error{nil, cut, cut, nil, nil, cut, cut, nil}, nil},
		"for long": {
			[]error{nil, cut, cut, cut, other, other, other},
			[]string{`code=not_ready why="the store does not answer"`},
		},
		"and again": {[]error{cut, nil, cut, cut, cut, cut, nil, nil}, []string{stops, again}},
		"twice":     {[]error{nil, cut, cut, cut, nil, cut, cut, cut, nil}, []string{stops, again, stops, again}},
		"somebody wants it": {
			[]error{nil, peer.ErrDetached, peer.ErrDetached, peer.ErrDetached},
			[]string{"level=WARN"},
		},
	} {
		var text logtest.Journal
		var o outage
		now := time.Date(2026, 11, 27, 2, 47, 31, 0, time.UTC)
		for _, why := range c.by {
			o.look(text.Logger(), now, why)
			now = now.Add(time.Second)
		}
		t.Log(name)
		text.Wants(t, c.want...)
	}
}
