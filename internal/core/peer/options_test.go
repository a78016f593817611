package peer

import (
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
)

// A node ID does not rest for longer than an hour after a crash, whoever chose the window.
func TestLimitsOfOptions(t *testing.T) {
	for _, c := range []struct {
		o     Options
		valid bool
	}{
		{Options{}, true},
		{Options{TTL: time.Second, Window: 3 * time.Millisecond}, true},
		{Options{TTL: MaxTTL, Window: MaxWindow}, true},
		{Options{TTL: time.Second - 1}, false},
		{Options{TTL: MaxTTL + 1}, false},
		{Options{Window: 3*time.Millisecond - 1}, false},
		{Options{Window: MaxWindow + 1}, false},
		{Options{Window: -1}, false},
	} {
		if err := c.o.Validate(); (err == nil) != c.valid {
			t.Errorf("TTL %v, window %v: %v; want that it is valid: %v", c.o.TTL, c.o.Window, err, c.valid)
		}
	}
	d := cluster.Define(firn.Default)
	if d.Window = MaxWindow; d.Validate() != nil {
		t.Errorf("a sequencer with a window of %v: %v", d.Window, d.Validate())
	}
	if d.Window++; d.Validate() == nil {
		t.Errorf("a sequencer may have a window of %v", d.Window)
	}
}
