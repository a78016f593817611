package firn_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
)

// In a bubble it is 2000, before the epochs of most layouts: the error says what to do, and that works.
func TestABubbleBeginsBeforeTheEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		layout := firn.Default
		if _, err := firn.NewGenerator(layout, 1); !errors.Is(err, firn.ErrLifetime) ||
			!strings.Contains(err.Error(), "testing/synctest") {
			t.Errorf("%v; want ErrLifetime, and what a bubble has to do with it", err)
		}
		layout.Epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		g, err := firn.NewGenerator(layout, 1)
		if err != nil {
			t.Fatal(err)
		}
		first, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		second, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		was, _ := layout.Decompose(first)
		is, _ := layout.Decompose(second)
		if apart := layout.TickStart(is.Tick).Sub(layout.TickStart(was.Tick)); apart < time.Hour ||
			apart > time.Hour+time.Second {
			t.Errorf("IDs an hour apart are %v apart", apart)
		}
	})
}
