package httpapi_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/test/servertest"
)

// A token for some sequencers takes no prefix that is not its own, and nobody takes that of another sequencer, through
// whatever node.
func TestPrefixesAreARight(t *testing.T) {
	inBubble(t, []string{"a", "b"}, func(t *testing.T, all []*served) {
		const orders = `{"name":"orders","prefix":"ord",` + before + `}`
		tokens := tokensOf(t, map[string]string{
			"root":  "allow: [admin, issue]",
			"none":  "allow: [admin, issue], sequencers: ['inv-*']",
			"inv":   "allow: [admin, issue], sequencers: ['inv-*'], prefixes: [inv, 'bill*']",
			"fixed": "allow: [admin], prefixes: [fix]",
		})
		at := func(node int, name string) *served {
			return all[node].by(bearing{withMetrics(all[node].Service, &auth.Policy{Tokens: tokens}), name})
		}
		create := func(name, prefix string) string {
			return `{"name":"` + name + `","prefix":"` + prefix + `",` + before + `}`
		}
		at(0, "root").ask("POST /api/v1/sequencers", orders, 201, "")
		for node := range all {
			none, inv, root, fixed := at(node, "none"), at(node, "inv"), at(node, "root"), at(node, "fixed")
			none.ask("POST /api/v1/sequencers", create("inv-1", "ord"), 403,
				code("forbidden", "allows some sequencers only, and no prefixes; its entry can name some"))
			none.ask("POST /api/v1/sequencers", create("inv-1", "inv"), 403, code("forbidden", "no prefixes"))
			inv.ask("POST /api/v1/sequencers", create("inv-1", "ord"), 403,
				code("forbidden", `the token \\"inv\\" allows the prefixes inv, bill\*, not \\"ord\\"`))
			fixed.ask("POST /api/v1/sequencers", create("any", "any"), 403, code("forbidden", "the prefixes fix, not"))
			root.ask("POST /api/v1/sequencers", create("other", "ord"), 409,
				code("refused", `the prefix \\"ord\\" is that of the sequencer \\"orders\\"; want another`))
		}
		at(0, "none").ask("POST /api/v1/sequencers", `{"name":"inv-0",`+before+`}`, 201, "")
		at(0, "inv").ask("POST /api/v1/sequencers", create("inv-1", "inv"), 201, "")
		at(1, "inv").ask("POST /api/v1/sequencers", create("inv-2", "bills"), 201, "")
		at(1, "inv").ask("POST /api/v1/sequencers", create("inv-1", "inv"), 200, "")
		at(1, "inv").ask("POST /api/v1/sequencers", create("inv-3", "inv"), 409, code("refused", "inv-1"))

		text := at(0, "root").ask("POST /api/v1/sequencers/orders/id?form=prefixed", "", 200, "ord_").Body.String()
		ord := text[strings.Index(text, "ord_"):]
		ord = ord[:strings.Index(ord, `"`)]
		at(0, "root").ask("GET /api/v1/sequencers/orders/ids/"+ord, "", 200, "time")
		at(0, "inv").ask("GET /api/v1/sequencers/inv-1/ids/"+ord, "", 400, code("bad_request", "inv"))

		// Once its sequencer is destroyed, a prefix is free.
		at(0, "root").ask("DELETE /api/v1/sequencers/orders", "", 200, "")
		at(1, "root").ask("POST /api/v1/sequencers", create("other", "ord"), 201, "")
	})
}

// A token creates no more sequencers than it may, through however many nodes at once, and leaves room for others.
func TestQuotasOfTokens(t *testing.T) {
	inBubble(t, []string{"a", "b", "c"}, func(t *testing.T, all []*served) {
		tokens := tokensOf(t, map[string]string{
			"root":  "allow: [admin]",
			"inv":   "allow: [admin], sequencers: ['inv-*']",
			"bill":  "allow: [admin], sequencers: ['bill-*', bill], quota: 3",
			"eager": "allow: [admin], sequencers: ['*-eager'], quota: 1000",
			"few":   "allow: [admin], quota: 2",
		})
		for _, s := range all {
			q, _ := s.member.Sequencer(peer.DefaultSequencer)
			s.handler = handlerWith(t, q, s.member, calls.Options{MaxSequencers: 20})
		}
		at := func(node int, name string) *served {
			return all[node].by(bearing{withMetrics(all[node].Service, &auth.Policy{Tokens: tokens}), name})
		}
		create := func(name string) string { return `{"name":"` + name + `",` + before + `}` }
		try := func(who, form string) (created int64) {
			var through []*served
			for node := range all {
				through = append(through, at(node, who))
			}
			var calls sync.WaitGroup
			var is atomic.Int64
			for i := range 60 {
				calls.Go(func() {
					w := httptest.NewRecorder()
					through[i%3].through.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST",
						"http://localhost/api/v1/sequencers", strings.NewReader(create(fmt.Sprintf(form, i)))))
					switch w.Code {
					case 201:
						is.Add(1)
					case 429:
					default:
						t.Errorf("%s: %d %s", who, w.Code, w.Body)
					}
				})
			}
			calls.Wait()
			synctest.Wait()
			return is.Load()
		}
		if n := try("inv", "inv-%d"); n != 2 {
			t.Errorf("without a quota %d of 20 were created, want a tenth", n)
		}
		at(1, "inv").ask("POST /api/v1/sequencers", create("inv-more"), 429,
			code("quota",
				`there are 2 sequencers of the names inv-\*, and the quota is 2; destroy one that nobody needs, or `+
					`raise the quota of the token \\"inv\\"`))
		if n := try("bill", "bill-%d"); n != 3 {
			t.Errorf("%d were created of 3", n)
		}
		at(0, "few").ask("POST /api/v1/sequencers", create("any"), 429,
			code("quota", "there are 6 sequencers, and the quota is 2; .* of the token"))
		at(0, "root").ask("POST /api/v1/sequencers", create("inv-root"), 201, "") // who may more is not bound by that
		if n := try("eager", "%d-eager"); n != 13 {                               // with the default one these are 20
			t.Errorf("%d were created, want what there is room for", n)
		}
		at(2, "eager").ask("POST /api/v1/sequencers", create("more-eager"), 429,
			code("quota", "there are 20 sequencers, and the quota is 20; .* raise --max-sequencers"))
		at(2, "root").ask("DELETE /api/v1/sequencers/inv-root", "", 200, "")
		synctest.Wait() // so many were refused that the log is read no more for the others
		at(1, "eager").ask("POST /api/v1/sequencers", create("more-eager"), 201, "")
	})
}

// A token whose calls take long leaves room for those of others.
func TestNoTokenTakesAllCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := tokensOf(t, map[string]string{"slow": "allow: [issue]", "quick": "allow: [issue]"})
		var hold atomic.Bool
		hold.Store(true)
		release := make(chan struct{})
		m := &servertest.Issuer{Before: func(context.Context) error {
			if hold.Load() {
				<-release
			}
			return nil
		}}
		h := withMetrics(calls.New(servertest.Join(t), calls.Options{Default: m, MaxCalls: 16}),
			&auth.Policy{Tokens: tokens})
		ask := func(who string) int {
			w := httptest.NewRecorder()
			bearing{h, who}.ServeHTTP(w,
				httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/api/v1/id", nil))
			return w.Code
		}
		var all sync.WaitGroup
		var refused atomic.Int64
		for range 20 {
			all.Go(func() {
				if ask("slow") == 503 {
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		hold.Store(false)
		if n, code := refused.Load(), ask("quick"); n != 6 || code != 200 {
			t.Errorf("of 20 calls %d were refused, and then another token got %d; want 6 and 200", n, code)
		}
		close(release)
		all.Wait()
	})
}
