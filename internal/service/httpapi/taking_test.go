package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/test/servertest"
)

// reader is who takes an answer at a rate, after so much that it, or what lies between, takes at once.
type reader struct {
	http.ResponseWriter
	atOnce   int // bytes
	rate     int // bytes a second; 0: it takes nothing
	taken    int
	cut      bool
	deadline time.Time
}

func (r *reader) SetWriteDeadline(t time.Time) error {
	r.deadline = t
	return nil
}

func (r *reader) Write(b []byte) (int, error) {
	if r.taken += len(b); r.taken <= r.atOnce {
		return len(b), nil
	}
	within := time.Until(r.deadline)
	takes := within + 1
	if r.rate > 0 {
		takes = time.Duration(len(b)) * time.Second / time.Duration(r.rate)
	}
	if takes > within {
		time.Sleep(within)
		r.cut = true
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(takes)
	return len(b), nil
}

func ask(h http.Handler, w http.ResponseWriter, from string, count int) {
	r := httptest.NewRequest(http.MethodPost, fmt.Sprintf("http://localhost/api/v1/ids?count=%d", count), http.NoBody)
	r.RemoteAddr = from
	h.ServeHTTP(w, r)
}

// Seventy connections of a caller that ask for as much as they can and take nothing don't keep another caller waiting,
// nor, as long as they don't hold half of what there is, another connection of the same; and they are cut off.
func TestUntakenAnswers(t *testing.T) {
	for size, others := range map[int64][]string{4 << 20: {"10.0.0.1:1"}, 32 << 20: {"10.0.0.1:1", "10.0.0.9:1000"}} {
		synctest.Test(t, func(t *testing.T) {
			h := handlerWith(t, &servertest.Issuer{IDs: firn.Default}, nil, calls.Options{MaxAnswers: size})
			var all sync.WaitGroup
			began := time.Now()
			readers := make([]*reader, 70)
			for i := range readers {
				readers[i] = &reader{ResponseWriter: httptest.NewRecorder(), atOnce: 256 << 10}
				all.Go(func() { ask(h, readers[i], fmt.Sprintf("10.0.0.9:%d", i), calls.MaxCount) })
			}
			time.Sleep(2 * time.Second)
			for _, from := range others {
				before := time.Now()
				w := httptest.NewRecorder()
				if ask(h, w, from, calls.MaxCount); w.Code != http.StatusOK || w.Body.Len() < calls.MaxCount*40 {
					t.Errorf("%s gets %d, %d bytes", from, w.Code, w.Body.Len())
				}
				if took := time.Since(before); took > time.Second {
					t.Errorf("%s waits for %v", from, took)
				}
			}
			all.Wait()
			if took := time.Since(began); took > 25*time.Second {
				t.Errorf("the last are gone after %v", took)
			}
			cut := 0
			for _, r := range readers {
				if r.cut {
					cut++
				}
			}
			if cut < 10 {
				t.Errorf("%d are cut off", cut)
			}
		})
	}
}

// Who takes an answer slowly, but not too slowly, gets it.
func TestSlowCallers(t *testing.T) {
	for _, tt := range []struct {
		rate int
		cut  bool
	}{{calls.LeastTaken, false}, {calls.LeastTaken / 2, true}, {2 << 10, true}} {
		synctest.Test(t, func(t *testing.T) {
			h := handlerWith(t, &servertest.Issuer{IDs: firn.Default}, nil, calls.Options{})
			r := &reader{ResponseWriter: httptest.NewRecorder(), rate: tt.rate}
			began := time.Now()
			ask(h, r, "10.0.0.1:1", calls.MaxCount)
			if took := time.Since(began); r.cut != tt.cut || r.cut && took > 25*time.Second {
				t.Errorf("at %d bytes a second: cut off: %v, after %v", tt.rate, r.cut, took)
			}
		})
	}
}
