package calls

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/codes"
)

// vitals is what the vital signs of the process are derived from. The zero value is ready.
type vitals struct {
	mu    sync.Mutex // guards what follows
	ready bool
	code  codes.Code
	since time.Time // since when ready and code are as they are

	counted time.Time // when given was counted; zero: never
	given   uint64
	byName  map[string]uint64
	rate    float64 // before that
	rates   map[string]float64
}

// mostRates is of how many sequencers a node tells the rate: all nodes read the vital signs of all.
const mostRates = 32

// ratesOf returns the rates of the busiest sequencers, from what each has given before and by now.
func ratesOf(before, now map[string]uint64, took time.Duration) map[string]float64 {
	all := map[string]float64{}
	for name, count := range now {
		if made := count - min(before[name], count); made > 0 {
			all[name] = math.Round(10*float64(made)/took.Seconds()) / 10
		}
	}
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b))
	})
	for _, name := range names[min(mostRates, len(names)):] {
		delete(all, name)
	}
	return all
}

// rateOver is over how long IDs per second are counted, at least.
const rateOver = 5 * time.Second

// Vitals returns the vital signs that the service knows: whether it is ready, and the IDs that callers got.
func (s *Service) Vitals() peer.Vitals {
	now, total := time.Now(), s.given.total()
	v := peer.Vitals{Given: total}
	err := s.Ready()
	if v.Ready = err == nil; !v.Ready {
		v.Code, v.Why = string(CodeOf(err)), Why(err)
	}
	l := &s.vitals
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since.IsZero() || l.ready != v.Ready || l.code != codes.Code(v.Code) {
		l.ready, l.code, l.since = v.Ready, codes.Code(v.Code), now
	}
	v.For = now.Sub(l.since)
	switch took := now.Sub(l.counted); {
	case l.counted.IsZero():
		l.counted, l.given, l.byName = now, total, s.Given()
	case took >= rateOver:
		l.rate = float64(total-l.given) / took.Seconds()
		byName := s.Given()
		l.rates = ratesOf(l.byName, byName, took)
		l.counted, l.given, l.byName = now, total, byName
	}
	v.Rate, v.Rates = l.rate, l.rates
	v.Failing, v.Forwards = s.failing.names(now), s.options.Forwarder != nil
	return v
}

// Why returns the reason in an error of a node that is not ready.
func Why(err error) string {
	return strings.TrimPrefix(err.Error(), peer.ErrNotReady.Error()+": ")
}
