package server

import (
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/member"
)

// vitals is what the vital signs of the process are derived from. The zero value is ready.
type vitals struct {
	mu    sync.Mutex // guards what follows
	ready bool
	code  Code
	since time.Time // since when ready and code are as they are

	counted time.Time // when given was counted; zero: never
	given   uint64
	rate    float64 // before that
}

// rateOver is over how long IDs per second are counted, at least.
const rateOver = 5 * time.Second

// Vitals returns the vital signs that the service knows: whether it is ready, and the IDs that callers got.
func (s *Service) Vitals() member.Vitals {
	now, total := time.Now(), s.given.total()
	v := member.Vitals{Given: total}
	err := s.Ready()
	if v.Ready = err == nil; !v.Ready {
		v.Code, v.Why = string(CodeOf(err)), reasonOf(err)
	}
	l := &s.vitals
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since.IsZero() || l.ready != v.Ready || l.code != Code(v.Code) {
		l.ready, l.code, l.since = v.Ready, Code(v.Code), now
	}
	v.For = now.Sub(l.since)
	switch took := now.Sub(l.counted); {
	case l.counted.IsZero():
		l.counted, l.given = now, total
	case took >= rateOver:
		l.rate = float64(total-l.given) / took.Seconds()
		l.counted, l.given = now, total
	}
	v.Rate = l.rate
	return v
}

// reasonOf returns why a node is not ready, in words.
func reasonOf(err error) string {
	return strings.TrimPrefix(err.Error(), member.ErrNotReady.Error()+": ")
}
