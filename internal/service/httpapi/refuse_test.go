package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store"
)

// failing is a member that is attached to no sequencer, and whose store fails.
func failing(t testing.TB, err error) *peer.Member {
	t.Helper()
	f := newLog(t, cluster.PrepareJoin{Joiner: "b"}, cluster.PrepareJoin{Joiner: "c"})
	f.Fail(err)
	return f.Member
}

// What stops a member is told by kind. Only bugs are logged.
func TestFailingSequencers(t *testing.T) {
	for _, tt := range []struct {
		err    error
		status int
		code   string
	}{
		{fmt.Errorf("%w: it is joining the cluster", peer.ErrNotReady), 503, "not_ready"},
		{fmt.Errorf("%w: too busy", store.ErrUnavailable), 503, "unavailable"},
		{fmt.Errorf("%w: no answer", store.ErrAmbiguous), 503, "unavailable"},
		{fmt.Errorf("it has not joined the cluster: %w", context.DeadlineExceeded), 503, "unavailable"},
		{fmt.Errorf("%w: %q", peer.ErrNoSequencer, "orders"), 404, "unknown_sequencer"},
		{fmt.Errorf("%w: %w: it resumed", peer.ErrNotReady, peer.ErrCopied), 503, "copied"},
		{fmt.Errorf("%w: a window of 1s is too short", peer.ErrUnfit), 503, "unfit"},
		{fmt.Errorf("%w: no permission", store.ErrRefused), 500, "internal"},
		{errors.New("surprise"), 500, "internal"},
	} {
		synctest.Test(t, func(t *testing.T) { // where an error may pass it tries again and again
			var log bytes.Buffer
			h := newHandler(t, &servertest.Issuer{Same: true}, failing(t, tt.err),
				slog.New(slog.NewTextHandler(&log, nil)))
			for _, target := range []string{
				"POST /api/v1/sequencers", "DELETE /api/v1/sequencers/orders", "POST /api/v1/sequencers/orders/attach",
				"POST /api/v1/sequencers/orders/id", "POST /api/v1/sequencers/orders/ids",
			} {
				method, path, _ := strings.Cut(target, " ")
				w := httptest.NewRecorder()
				h.ServeHTTP(w,
					httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(`{"name":"orders"}`)))
				if w.Code != tt.status || !strings.Contains(w.Body.String(), `{"error":{"code":"`+tt.code+`",`) {
					t.Errorf("%s with %v = %d %s", target, tt.err, w.Code, w.Body)
				}
				if retry := w.Header().Get("Retry-After"); (retry == "1") != (tt.status == 503) {
					t.Errorf("%s with %v has Retry-After: %q", target, tt.err, retry)
				}
			}
			if (log.Len() > 0) != (tt.status == 500) {
				t.Errorf("%v was logged as %q", tt.err, &log)
			}
		})
	}
}

// Before the log was read nobody knows which sequencers there are.
func TestSequencersBeforeTheLog(t *testing.T) {
	notReady := fmt.Errorf("%w: it is joining the cluster", peer.ErrNotReady)
	for _, no := range []bool{false, true} {
		h := handlerWith(t, &servertest.Issuer{Err: notReady}, servertest.Waiting(t, "no answer"),
			calls.Options{NoAutoAttach: no})
		for _, target := range []string{
			"GET ", "GET /orders", "GET /orders/ids/5", "DELETE /orders", "POST /orders/id", "POST /orders/ids",
			"POST /orders/attach", "POST /orders/detach", "POST /default/id",
		} {
			method, path, _ := strings.Cut(target, " ")
			if w := call(h, method, "/api/v1/sequencers"+path); w.Code != 503 ||
				!strings.Contains(w.Body.String(), `"not_ready"`) {
				t.Errorf("%s = %d %s", target, w.Code, w.Body)
			}
		}
	}
}

// What the default sequencer lacks is not got by attaching to it: that happens by itself.
func TestTheDefaultSequencerIsDetached(t *testing.T) {
	h := newHandler(t, &servertest.Issuer{Err: fmt.Errorf("%w: %w", peer.ErrNotReady, peer.ErrDetached)}, nil, nil)
	if w := call(h, "POST", "/api/v1/id"); w.Code != 503 || !strings.Contains(w.Body.String(), `"detached"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A page of another site can't change what sequencers there are.
func TestCrossOriginSequencers(t *testing.T) {
	h := serving(t, example(t))
	for target, status := range map[string]int{
		"POST /api/v1/sequencers": 403, "DELETE /api/v1/sequencers/orders": 403,
		"POST /api/v1/sequencers/orders/id":     403,
		"POST /api/v1/sequencers/orders/detach": 403, "GET /api/v1/sequencers/orders": 200,
	} {
		method, path, _ := strings.Cut(target, " ")
		if w := call(h, method, path, "Sec-Fetch-Site", "cross-site"); w.Code != status {
			t.Errorf("%s = %d %s, want %d", target, w.Code, w.Body, status)
		}
	}
}

// A client that goes away while the node attaches is not waited for, and the node goes on.
func TestGoneWhileAttaching(t *testing.T) {
	inBubble(t, []string{"a"}, func(t *testing.T, all []*served) {
		a := all[0]
		a.ask("POST /api/v1/sequencers", orders, 201, "")
		a.client.Lag(3 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		w := httptest.NewRecorder()
		a.ServeHTTP(w,
			httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/api/v1/sequencers/orders/id", nil))
		cancel()
		if w.Body.Len() > 0 {
			t.Errorf("it was told %s", w.Body)
		}
		a.ask("POST /api/v1/sequencers/orders/id", "", 503,
			code("not_ready", "it has not read its attach in the log yet"))
		a.client.Lag(0)
		time.Sleep(5 * time.Second) // simulated
		synctest.Wait()
		a.ask("GET /api/v1/sequencers/orders", "", 200, `"here":\{"state":"attached","node":0\}`)
	})
}

// Who asks for an ID while the node detaches has it attach again, and whoever detached it is told.
func TestAttachedAgain(t *testing.T) {
	inBubble(t, []string{"a"}, func(t *testing.T, all []*served) {
		a := all[0]
		a.ask("POST /api/v1/sequencers", orders, 201, "")
		a.ask("POST /api/v1/sequencers/orders/id", "", 200, "")
		a.client.Lag(time.Second)
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.ask("POST /api/v1/sequencers/orders/detach", "", 409,
				code("attached_again", `attaches when it is asked for an ID of \\"orders\\"`))
		}()
		synctest.Wait()
		a.ask("POST /api/v1/sequencers/orders/id", "", 200, "")
		<-done
	})
}
