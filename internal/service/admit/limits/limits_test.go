package limits

import (
	"math"
	"testing"
)

// All that the limits allow costs no more than the memory there is, and leaves room for what they do not count.
func TestWhatIsAllowedFits(t *testing.T) {
	for memory := int64(128 << 20); memory < 1<<40; memory += memory / 3 {
		for _, tls := range []bool{false, true} {
			l, cost := For(memory, 0, tls), int64(connectionCost)
			if tls {
				cost = tlsConnectionCost
			}
			sum := int64(l.Connections)*cost + int64(l.Calls)*callCost + l.Answers
			if most := memory - memory/8 - min(base, memory*3/4); sum > most {
				t.Errorf("%d MiB: %+v cost %d MiB; want at most %d", memory>>20, l, sum>>20, most>>20)
			}
		}
	}
}

func TestFor(t *testing.T) {
	for _, c := range []struct {
		memory, files int64
		tls           bool
		want          Limits
	}{
		{256 << 20, 20_000, false, Limits{192 << 20, 2560, 1706, 60 << 20}},
		{256 << 20, 20_000, true, Limits{192 << 20, 1280, 1706, 60 << 20}},
		{256 << 20, 1024, false, Limits{192 << 20, 768, 1706, 60 << 20}},
		{8 << 30, 1 << 20, false, Limits{6 << 30, MaxConnections, MaxCalls, MaxAnswers}},
		{0, 0, true, Limits{math.MaxInt64 / 4 * 3, MaxConnections, MaxCalls, MaxAnswers}},
	} {
		if got := For(c.memory, c.files, c.tls); got != c.want {
			t.Errorf("%d MiB, %d files: %+v, want %+v", c.memory>>20, c.files, got, c.want)
		}
	}
	for _, memory := range []int64{1, 1 << 20, 64 << 20} {
		if l := For(memory, 1, true); l.Connections < 1 || l.Calls < 1 || l.Answers < 1 {
			t.Errorf("%d bytes: %+v", memory, l)
		}
	}
}
