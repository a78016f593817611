package console_test

import (
	"testing"

	"github.com/firn-id/firn/internal/ops/console"
)

func TestStretches(t *testing.T) {
	for want, numbers := range map[string][]int64{
		"": nil, "3": {3}, "3..4": {3, 4}, "3, 5..7, 9": {3, 5, 6, 7, 9},
	} {
		if have := console.Stretches(numbers); have != want {
			t.Errorf("%v is %q, want %q", numbers, have, want)
		}
	}
}
