package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/packed"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/counter"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/quorum"
)

// anExchange is a call and what it should come to. A mistake in it that the document can tell is marked.
type anExchange struct {
	target, body string
	accept       string
	status       int
	code         string // of the error
	undocumented bool   // the document does not allow the call
}

// expect makes calls, and compares each and its answer with the document.
func (c *contract) expect(t *testing.T, h http.Handler, calls []anExchange) {
	t.Helper()
	for _, want := range calls {
		e := c.call(h, want.target, want.body, want.accept)
		if e.status != want.status || !strings.Contains(e.answer, `"code":"`+want.code) && want.code != "" {
			t.Errorf("%v = %d %s, want %d %s", e, e.status, e.answer, want.status, want.code)
		}
		if got := e.header.Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("%v: X-Content-Type-Options is %q; want nosniff", e, got)
		}
		badCall, badAnswer := c.compare(e)
		if badAnswer != nil {
			t.Error(badAnswer)
		}
		if (badCall != nil) != want.undocumented {
			t.Errorf("%v: by the document there is this wrong with it: %v", e, badCall)
		}
	}
}

const (
	ordersPath   = "/api/v1/sequencers/orders"
	invoicesPath = "/api/v1/sequencers/invoices" // a counter
)

// goodCalls are the life of a sequencer, and a look at everything.
var goodCalls = []anExchange{
	{target: "POST /api/v1/id", status: 200},
	{target: "POST /api/v1/ids", status: 200},
	{target: "POST /api/v1/ids?count=1000", status: 200},
	{target: "POST /api/v1/id?after=4194304000000001", status: 200},
	{target: "POST /api/v1/ids?count=2&after=4194304000000001", accept: packed.Type, status: 200},
	{target: "POST /api/v1/id?form=base62&after=4194304000000001", status: 200},
	{target: "POST /api/v1/id", accept: packed.Type, status: 200},
	{target: "POST /api/v1/ids?count=1000", accept: packed.Type, status: 200},
	{target: "POST /api/v1/id?ids=string", status: 200},
	{target: "POST /api/v1/ids?ids=string&count=3", status: 200},
	{target: "POST /api/v1/ids?ids=number", accept: "application/json;ids=string", status: 200},
	{target: "POST /api/v1/ids", accept: "application/json;ids=string", status: 200},
	{target: "GET /api/v1/ids/4194304000000001", status: 200},
	{target: "GET /api/v1/ids/4194304000000001?ids=string", status: 200},
	{target: "GET /api/v1/times/2026-11-21T03:25:36.425Z", status: 200},
	{target: "GET /api/v1/times/2026-11-21T03:25:36.425Z?ids=string", status: 200},
	{target: "POST /api/v1/sequencers", body: orders, status: 201},
	{target: "POST /api/v1/sequencers", body: orders, status: 200},
	{
		target: "POST /api/v1/sequencers",
		body:   `{"name":"far","epoch":"1999-12-31T00:00:00Z","prefix":"far","scattered":true,"random_start":true}`,
		status: 201,
	},
	{target: "POST /api/v1/sequencers", body: spare + `,"reserve":3}`, status: 201},
	{target: "POST /api/v1/sequencers", body: spare + `,"reserve":3}`, status: 200},
	{target: "POST /api/v1/sequencers", body: spare + `}`, status: 200},
	{target: "POST /api/v1/sequencers", body: spare + `,"reserve":4}`, status: 409, code: "refused"},
	{target: "POST /api/v1/sequencers/spare/reserve", body: aReserve, status: 200},
	{target: "GET /api/v1/sequencers/spare", status: 200},
	{target: "POST /api/v1/sequencers/far/ids?count=3", status: 200},
	{target: "POST /api/v1/sequencers/far/id?form=prefixed", status: 200},
	{target: "POST /api/v1/sequencers/far/ids?count=3&form=uuid", status: 200},
	{target: "GET /api/v1/sequencers/far/ids/far_0000000000001?as=prefixed&form=hex", status: 200},
	{target: "POST /api/v1/ids?count=3&form=base62", status: 200},
	{target: "GET /api/v1/ids/000ehmZXoc5?as=base62&form=base58", status: 200},
	{
		target: "POST /api/v1/sequencers", body: `{"name":"short","epoch":"1999-12-31T00:00:00Z","time_bits":34}`,
		status: 201,
	},
	{
		target: "POST /api/v1/sequencers",
		body: `{"name":"visits","nodes":16,"allocation":{"kind":"count","count":8},` + before +
			`,"tick":"10ms","time_bits":39,"datacenter_bits":1,"node_bits":9,"sequence_bits":14,` +
			`"node_lowest":true,"after":"1000"}`,
		status: 201,
	},

	{
		target: "POST /api/v1/sequencers",
		body: `{"name":"posts","layout":"41/5/17","allocation":{"kind":"percent","percent":50},` + before +
			`,"after":1000}`, status: 201,
	},
	{
		target: "POST /api/v1/sequencers",
		body:   `{"name":"invoices","kind":"counter","after":4,"max":"9","order":"strict","prefix":"inv"}`,
		status: 201,
	},
	{target: "POST " + invoicesPath + "/id", status: 200},
	{target: "POST " + invoicesPath + "/ids?count=2&after=9223372036854775807", status: 400, code: "bad_request"},
	{target: "POST " + invoicesPath + "/ids?count=2&after=5", status: 200},
	{target: "POST " + invoicesPath + "/id?form=prefixed", status: 200},
	{target: "GET " + invoicesPath + "/ids/INV7?form=checked&as=prefixed-decimal", status: 200},
	{target: "GET " + invoicesPath + "/ids/7-77?form=prefixed-checked", status: 200},
	{target: "GET " + invoicesPath + "/ids/7-99", status: 400, code: "bad_request"},
	{target: "POST " + invoicesPath + "/ids?count=2", status: 409, code: "exhausted"},
	{target: "POST " + invoicesPath + "/id", status: 200},
	{target: "POST " + invoicesPath + "/id", status: 409, code: "exhausted"},
	{target: "GET " + invoicesPath, status: 200},
	{target: "GET " + invoicesPath + "/ids/7", status: 200},
	{target: "GET " + invoicesPath + "/ids/inv_0000000000007?form=hex&ids=string", status: 200},
	{target: "GET " + invoicesPath + "/times/1795231536425", status: 400, code: "bad_request"},
	{target: "POST " + invoicesPath + "/id?form=uuid", status: 400, code: "bad_request"},
	{target: "POST " + invoicesPath + "/resume", body: `{"after":7}`, status: 409, code: "refused"},
	{target: "GET /api/v1/sequencers", status: 200},
	{target: "GET " + ordersPath, status: 200},
	{target: "POST " + ordersPath + "/id", status: 200},
	{target: "POST " + ordersPath + "/ids?count=2", status: 200},
	{target: "POST " + ordersPath + "/id", accept: packed.Type, status: 200},
	{target: "POST " + ordersPath + "/ids", accept: packed.Type, status: 200},
	{target: "GET " + ordersPath + "/ids/4194304000000001", status: 200},
	{target: "POST " + ordersPath + "/id?ids=string", status: 200},
	{target: "POST " + ordersPath + "/ids?ids=string", status: 200},
	{target: "GET " + ordersPath + "/ids/4194304000000001?ids=string", status: 200},
	{target: "GET " + ordersPath + "/times/1795231536425", status: 200},
	{target: "GET " + ordersPath + "/times/1795231536425?ids=string", status: 200},
	{target: "GET " + ordersPath + "/nodes", status: 200},
	{target: "GET " + ordersPath + "/nodes?from=1&limit=2", status: 200},
	{target: "POST " + ordersPath + "/detach", status: 200},
	{target: "POST " + ordersPath + "/attach", status: 200},
	{target: "GET " + ordersPath, status: 200},
	{target: "GET /api/v1/cluster", status: 200},
	{target: "GET /api/v1/cluster/history", status: 200},
	{target: "POST /api/v1/cluster/resume", status: 200},
	{target: "GET /api/v1/cluster/value", status: 200},
	{target: "GET /api/v1/cluster/value?at=1", status: 200},
	{target: "GET /api/v1/cluster/log", status: 200},
	{target: "GET /api/v1/cluster/log?from=2&follow=0", status: 200},
	{target: "GET /metrics", status: 200},
	{target: "GET /metrics?again=7", status: 200},
	{target: "GET /metrics?again=8", status: 503, code: "overloaded"},
	{target: "GET /livez", status: 200},
	{target: "GET /readyz", status: 200},
	{target: "GET /readyz?sequencer=orders", status: 200},
	{target: "GET /readyz?sequencer=No+Name", status: 400, code: "bad_request"},
	{target: "POST " + ordersPath + "/move", body: `{"node":0,"to":"a"}`, status: 200},
	{target: "POST " + ordersPath + "/drain", body: `{"member":"b"}`, status: 200},
	{target: "GET " + ordersPath, status: 200},
	{target: "GET /api/v1/cluster/value", status: 200},
	{target: "POST " + ordersPath + "/undrain", body: `{"member":"b"}`, status: 200},
	{target: "PUT " + ordersPath + "/allocation", body: `{"kind":"percent","percent":50}`, status: 200},
	{target: "POST " + ordersPath + "/reserve", body: `{"for":"warehouse database","count":1}`, status: 200},
	{target: "POST /api/v1/sequencers/default/past", body: `{"job":"a","times":["2000-01-01T00:00:01Z"]}`, status: 200},
	{target: "POST /api/v1/sequencers/default/past", body: `{"job":"a","end":true}`, status: 200},
	{target: "POST /api/v1/sequencers/default/past", body: `{"job":"a","end":true}`, status: 200},
	{target: "GET " + ordersPath, status: 200},
	{target: "GET " + ordersPath + "/nodes", status: 200},
	{target: "GET /api/v1/cluster/value", status: 200},
	{target: "DELETE " + ordersPath, status: 409, code: "refused"},
	{
		target: "POST " + ordersPath + "/release", body: `{"for":"another","used_until":"2026-11-28T12:00:00Z"}`,
		status: 409, code: "refused",
	},
	{
		target: "POST " + ordersPath + "/release", status: 200,
		body: `{"for":"warehouse database","used_until":"1999-01-01T00:00:00Z"}`,
	},
	{
		target: "PUT /api/v1/cluster/policy",
		body:   `{"shares":[{"sequencer":"orders","percent":75},{"sequencer":"default"}]}`, status: 200,
	},
	{target: "GET /api/v1/cluster/policy", status: 200},
	{target: "GET " + ordersPath, status: 200},
	{target: "GET /api/v1/cluster/value", status: 200},
	{target: "DELETE /api/v1/cluster/policy", status: 200},
	{target: "DELETE " + ordersPath, status: 200},
	{target: "GET /api/v1/cluster/log", status: 200},
}

// badCalls are those that who calls has to change.
var badCalls = []anExchange{
	{target: "POST /api/v1/id?count=2", status: 400, code: "bad_request"},
	{target: "POST /api/v1/ids?coutn=2", accept: packed.Type, status: 400, code: "bad_request"},
	{target: "POST /api/v1/ids?count=0", status: 400, code: "bad_request", undocumented: true},
	{target: "POST /api/v1/ids?count=100001", status: 400, code: "bad_request", undocumented: true},
	{target: "POST /api/v1/ids?coutn=2", status: 400, code: "bad_request"},
	{target: "POST /api/v1/id?ids=text", status: 400, code: "bad_request", undocumented: true},
	{target: "POST /api/v1/id?after=12x", status: 400, code: "bad_request", undocumented: true},
	{target: "POST /api/v1/ids?after=", status: 400, code: "bad_request", undocumented: true},
	{target: "POST /api/v1/ids?after=9223372036854775807", status: 400, code: "bad_request"},
	{target: "POST /api/v1/ids?ids=", status: 400, code: "bad_request", undocumented: true},
	{target: "GET /api/v1/ids/12?ids=hex", status: 400, code: "bad_request", undocumented: true},
	{target: "GET /api/v1/ids/12?id=string", status: 400, code: "bad_request"},
	{target: "GET /api/v1/ids/12!", status: 400, code: "bad_request", undocumented: true},
	{target: "GET /api/v1/ids/12x", status: 400, code: "bad_request"},
	{target: "GET /api/v1/ids/12?form=text", status: 400, code: "bad_request", undocumented: true},
	{target: "POST /api/v1/id?form=prefixed", status: 400, code: "bad_request"},
	{target: "GET /api/v1/ids/012", status: 400, code: "bad_request"},
	{target: "GET /api/v1/ids/9223372036854775808", status: 400, code: "bad_request"},
	{target: "GET /api/v1/times/today", status: 400, code: "bad_request"},
	{target: "GET /api/v1/times/1000", status: 400, code: "bad_request"},
	{target: "GET /api/v1/times/1795231536425?ids=hex", status: 400, code: "bad_request", undocumented: true},
	{target: "GET /api/v1/sequencers/Orders/times/1795231536425", status: 400, code: "bad_request", undocumented: true},
	{target: "GET /api/v1/sequencers?x", status: 400, code: "bad_request"},
	{target: "POST /api/v1/sequencers", status: 400, code: "bad_request", undocumented: true},
	{target: "POST /api/v1/sequencers", body: `{`, status: 400, code: "bad_request", undocumented: true},
	{target: "POST /api/v1/sequencers", body: `{"nodes":1}`, status: 400, code: "bad_request", undocumented: true},
	{
		target: "POST /api/v1/sequencers", body: `{"name":"Orders"}`, status: 400, code: "bad_request",
		undocumented: true,
	},
	{
		target: "POST /api/v1/sequencers", body: `{"name":"a","node":3}`, status: 400, code: "bad_request",
		undocumented: true,
	},
	{
		target: "POST /api/v1/sequencers", body: `{"name":"a","nodes":"3"}`, status: 400, code: "bad_request",
		undocumented: true,
	},
	{
		target: "POST /api/v1/sequencers", body: `{"name":"a","nodes":0}`, status: 400, code: "bad_request",
		undocumented: true,
	},
	{target: "POST /api/v1/sequencers", body: `{"name":"a","nodes":1025}`, status: 400, code: "bad_request"},
	{target: "POST /api/v1/sequencers", body: `{"name":"a","nodes":8,"reserve":9}`, status: 400, code: "bad_request"},
	{
		target: "POST /api/v1/sequencers", body: `{"name":"a","kind":"counter","reserve":1}`, status: 400,
		code: "bad_request",
	},
	{
		target: "POST /api/v1/sequencers", body: `{"name":"a","reserve":"1"}`, status: 400, code: "bad_request",
		undocumented: true,
	},
	{
		target: "POST /api/v1/sequencers", body: `{"name":"a","tick":10}`, status: 400, code: "bad_request",
		undocumented: true,
	},
	{
		target: "POST /api/v1/sequencers", body: `{"name":"a","node_bits":63}`, status: 400, code: "bad_request",
		undocumented: true,
	},
	{
		target: "POST /api/v1/sequencers", body: `{"name":"a","allocation":{"kind":"some"}}`, status: 400,
		code: "bad_request", undocumented: true,
	},
	{
		target: "POST /api/v1/sequencers", body: `{"name":"a","allocation":{"kind":"percent","percent":101}}`,
		status: 400,
		code:   "bad_request", undocumented: true,
	},
	{
		target: "POST /api/v1/sequencers", body: `{"name":"a","after":-1}`, status: 400, code: "bad_request",
		undocumented: true,
	},
	{
		target: "POST /api/v1/sequencers", body: `{"name":"a","epoch":"2026-01-01T00:00:00Z"}`, status: 400,
		code: "bad_request",
	},
	{target: "POST /api/v1/sequencers", body: `{"name":"default"}`, status: 409, code: "exists"},
	{
		target: "POST /api/v1/sequencers", body: `{"name":"` + strings.Repeat("a", 64<<10) + `"}`, status: 413,
		code: "too_large", undocumented: true,
	},
	{
		target: "POST /api/v1/sequencers", body: `{"name":"a","kind":"counter","nodes":2}`, status: 400,
		code: "bad_request",
	},
	{target: "POST /api/v1/sequencers", body: `{"name":"a","max":2}`, status: 400, code: "bad_request"},
	{target: "GET " + invoicesPath + "/times/1795231536425", status: 400, code: "bad_request"},
	{target: "POST " + invoicesPath + "/attach", status: 409, code: "refused"},
	{target: "PUT " + invoicesPath + "/allocation", body: `{"kind":"all"}`, status: 409, code: "refused"},
	{target: "GET /api/v1/sequencers/Orders", status: 400, code: "bad_request", undocumented: true},
	{target: "DELETE /api/v1/sequencers/Orders", status: 400, code: "bad_request", undocumented: true},
	{target: "POST /api/v1/sequencers/Orders/id", status: 400, code: "bad_request", undocumented: true},
	{target: "POST /api/v1/sequencers/Orders/ids", status: 400, code: "bad_request", undocumented: true},
	{target: "GET /api/v1/sequencers/default/ids/x", status: 400, code: "bad_request"},
	{target: "GET /api/v1/sequencers/Orders/nodes", status: 400, code: "bad_request", undocumented: true},
	{target: "GET /api/v1/sequencers/default/nodes?limit=0", status: 400, code: "bad_request", undocumented: true},
	{target: "GET /api/v1/sequencers/default/nodes?limit=4097", status: 400, code: "bad_request", undocumented: true},
	{target: "GET /api/v1/sequencers/default/nodes?from=-1", status: 400, code: "bad_request", undocumented: true},
	{target: "GET /api/v1/sequencers/default/nodes?at=1", status: 400, code: "bad_request"},
	{target: "POST /api/v1/sequencers/Orders/attach", status: 400, code: "bad_request", undocumented: true},
	{target: "POST /api/v1/sequencers/default/detach?x", status: 400, code: "bad_request"},
	{target: "GET /api/v1/cluster?at=1", status: 400, code: "bad_request"},
	{target: "GET /api/v1/cluster/history?x", status: 400, code: "bad_request"},
	{target: "POST /api/v1/cluster/resume?x", status: 400, code: "bad_request"},
	{target: "GET /api/v1/cluster/value?at=-1", status: 400, code: "bad_request", undocumented: true},
	{target: "GET /api/v1/cluster/log?follow=yes", status: 400, code: "bad_request", undocumented: true},
	{target: "GET /api/v1/cluster/log?follow=2", status: 400, code: "bad_request", undocumented: true},

	{target: "POST /api/v1/cluster/skip?x", body: `{"position":7}`, status: 400, code: "bad_request"},
	{
		target: "POST /api/v1/cluster/skip", body: `{"position":"7"}`, status: 400, code: "bad_request",
		undocumented: true,
	},
	{target: "POST /api/v1/cluster/skip", body: `{"position":7}`, status: 409, code: "refused"},
	{
		target: "POST /api/v1/cluster/skip", body: `{"position":` + strings.Repeat("1", 64<<10) + `}`, status: 413,
		code: "too_large",
	},
	{target: "POST /api/v1/cluster/forget?x", body: aName, status: 400, code: "bad_request"},
	{target: "POST /api/v1/cluster/forget", body: `{"name":"nobody"}`, status: 400, code: "bad_request"},
	{
		target: "POST /api/v1/cluster/forget", body: `{"names":["a"]}`, status: 400, code: "bad_request",
		undocumented: true,
	},
	{
		target: "POST /api/v1/cluster/forget", body: `{"name":"` + strings.Repeat("a", 64<<10) + `"}`, status: 413,
		code: "too_large",
	},
	{target: "POST /api/v1/cluster/expel?x", body: aMember, status: 400, code: "bad_request"},
	{target: "POST /api/v1/cluster/expel", body: `{"member":"nobody"}`, status: 400, code: "bad_request"},
	{target: "POST /api/v1/cluster/expel", body: `{"member":""}`, status: 400, code: "bad_request", undocumented: true},
	{
		target: "POST /api/v1/cluster/expel", body: `{"members":["a"]}`, status: 400, code: "bad_request",
		undocumented: true,
	},
	{
		target: "POST /api/v1/cluster/expel", body: `{"member":"` + strings.Repeat("a", 64<<10) + `"}`, status: 413,
		code: "too_large",
	},
	{target: "POST /api/v1/sequencers/default/drain", body: `{"member":"nobody"}`, status: 400, code: "bad_request"},
	{
		target: "POST /api/v1/sequencers/default/drain", body: `{"member":"` + strings.Repeat("a", 64<<10) + `"}`,
		status: 413, code: "too_large",
	},
	{target: "POST /api/v1/sequencers/default/undrain", body: `{"member":"nobody"}`, status: 400, code: "bad_request"},
	{
		target: "POST /api/v1/sequencers/default/undrain", body: `{"member":"` + strings.Repeat("a", 64<<10) + `"}`,
		status: 413, code: "too_large",
	},
	{
		target: "POST /api/v1/sequencers/default/move", body: `{"to":"a"}`, status: 400, code: "bad_request",
		undocumented: true,
	},
	{
		target: "POST /api/v1/sequencers/default/move", body: `{"node":-1,"to":"a"}`, status: 400, code: "bad_request",
		undocumented: true,
	},
	{
		target: "POST /api/v1/sequencers/default/move", body: `{"node":1,"to":"nobody"}`, status: 400,
		code: "bad_request",
	},
	{target: "POST /api/v1/sequencers/default/move", body: `{"node":1024,"to":"a"}`, status: 409, code: "refused"},
	{
		target: "POST /api/v1/sequencers/default/move", body: `{"to":"` + strings.Repeat("a", 64<<10) + `"}`,
		status: 413,
		code:   "too_large", undocumented: true,
	},
	{
		target: "PUT /api/v1/sequencers/default/allocation", body: `{"kind":"some"}`, status: 400, code: "bad_request",
		undocumented: true,
	},
	{
		target: "PUT /api/v1/sequencers/default/allocation", body: `{"kind":"count","count":0}`, status: 400,
		code: "bad_request", undocumented: true,
	},
	{
		target: "PUT /api/v1/sequencers/default/allocation", body: `{"kind":"` + strings.Repeat("a", 64<<10) + `"}`,
		status: 413, code: "too_large", undocumented: true,
	},
	{target: "GET /api/v1/cluster/policy?x", status: 400, code: "bad_request"},
	{target: "DELETE /api/v1/cluster/policy?x", status: 400, code: "bad_request"},
	{target: "PUT /api/v1/cluster/policy", body: `{"shares":[]}`, status: 400, code: "bad_request", undocumented: true},
	{
		target: "PUT /api/v1/cluster/policy", body: `{"shares":[{"sequencer":"default","percent":101}]}`, status: 400,
		code: "bad_request", undocumented: true,
	},
	{
		target: "PUT /api/v1/cluster/policy", body: `{"shares":[{"sequencer":"default","percent":99}]}`, status: 400,
		code: "bad_request",
	},
	{
		target: "PUT /api/v1/cluster/policy", body: `{"shares":[{"sequencer":"nothing"}]}`, status: 404,
		code: "unknown_sequencer",
	},
	{
		target: "PUT /api/v1/cluster/policy", body: `{"shares":"` + strings.Repeat("a", 64<<10) + `"}`, status: 413,
		code: "too_large", undocumented: true,
	},

	{target: "GET " + ordersPath + "/times/1795231536425", status: 404, code: "unknown_sequencer"},
	{target: "POST " + ordersPath + "/drain", body: aMember, status: 404, code: "unknown_sequencer"},
	{target: "POST " + ordersPath + "/undrain", body: aMember, status: 404, code: "unknown_sequencer"},
	{target: "POST " + ordersPath + "/move", body: `{"node":0,"to":"a"}`, status: 404, code: "unknown_sequencer"},
	{target: "POST " + ordersPath + "/resume", body: `{"after":7}`, status: 404, code: "unknown_sequencer"},
	{
		target: "POST " + invoicesPath + "/resume", body: `{"after":-7}`, status: 400, code: "bad_request",
		undocumented: true,
	},
	{target: "POST " + invoicesPath + "/resume", body: `{}`, status: 400, code: "bad_request", undocumented: true},
	{
		target: "POST " + invoicesPath + "/resume", body: `{"after":` + strings.Repeat("1", 64<<10) + `}`, status: 413,
		code: "too_large",
	},
	{target: "PUT " + ordersPath + "/allocation", body: `{"kind":"all"}`, status: 404, code: "unknown_sequencer"},
	{target: "POST " + ordersPath + "/reserve", body: aReserve, status: 404, code: "unknown_sequencer"},
	{target: "POST " + ordersPath + "/past", body: aPast, status: 404, code: "unknown_sequencer"},
	{
		target: "POST /api/v1/sequencers/default/past", body: `{"job":"x","times":["1969-01-01T00:00:00Z"]}`,
		status: 409, code: "refused",
	},
	{target: "POST /api/v1/sequencers/default/past", body: `{"job":"y","after":"7"}`, status: 409, code: "lost"},
	{
		target: "POST /api/v1/sequencers/default/past", body: `{"job":""}`, status: 400, code: "bad_request",
		undocumented: true,
	},
	{
		target: "POST /api/v1/sequencers/default/past", body: `{"job":"` + strings.Repeat("a", 4<<20) + `"}`,
		status: 413, code: "too_large", undocumented: true,
	},
	{target: "POST " + ordersPath + "/release", body: aRelease, status: 404, code: "unknown_sequencer"},
	{
		target: "POST /api/v1/sequencers/default/reserve", body: `{"for":"x","count":0}`, status: 400,
		code:         "bad_request",
		undocumented: true,
	},
	{
		target: "POST /api/v1/sequencers/default/reserve", body: `{"for":"x","nodes":[1024]}`, status: 409,
		code: "refused",
	},
	{
		target: "POST /api/v1/sequencers/default/reserve", body: `{"for":"` + strings.Repeat("a", 64<<10) + `"}`,
		status: 413, code: "too_large", undocumented: true,
	},
	{target: "POST /api/v1/sequencers/default/release", body: `{"for":"x"}`, status: 400, code: "bad_request"},
	{
		target: "POST /api/v1/sequencers/default/release",
		body:   `{"for":"x","greatest":"1","used_until":"2026-11-28T12:00:00Z"}`,
		status: 400, code: "bad_request",
	},
	{
		target: "POST /api/v1/sequencers/default/release", body: `{"for":"` + strings.Repeat("a", 64<<10) + `"}`,
		status: 413, code: "too_large", undocumented: true,
	},
	{target: "GET " + ordersPath, status: 404, code: "unknown_sequencer"},
	{target: "DELETE " + ordersPath, status: 404, code: "unknown_sequencer"},
	{target: "POST " + ordersPath + "/id", status: 404, code: "unknown_sequencer"},
	{target: "POST " + ordersPath + "/ids", status: 404, code: "unknown_sequencer"},
	{target: "GET " + ordersPath + "/ids/1", status: 404, code: "unknown_sequencer"},
	{target: "GET " + ordersPath + "/nodes", status: 404, code: "unknown_sequencer"},
	{target: "POST " + ordersPath + "/attach", status: 404, code: "unknown_sequencer"},
	{target: "POST " + ordersPath + "/detach", status: 404, code: "unknown_sequencer"},
	{target: "GET /api/v1/cluster/value?at=1000000", status: 404, code: "unknown_position"},
	{target: "DELETE /api/v1/sequencers/default", status: 409, code: "in_use"},
}

// quorumCalls look at the quorum, and change it.
var quorumCalls = []anExchange{
	{target: "GET /api/v1/quorum", status: 200},
	{target: "GET /api/v1/cluster", status: 200},
	{target: "POST /api/v1/quorum/replace", body: replacement, status: 200},
	{target: "POST /api/v1/quorum/remove", body: removal, status: 200},
	{target: "GET /api/v1/quorum/backup", status: 200},

	{target: "GET /api/v1/quorum?x", status: 400, code: "bad_request"},
	{target: "GET /api/v1/quorum/backup?x", status: 400, code: "bad_request"},
	{target: "POST /api/v1/quorum/replace?x", body: replacement, status: 400, code: "bad_request"},
	{target: "POST /api/v1/quorum/replace", status: 400, code: "bad_request", undocumented: true},
	{target: "POST /api/v1/quorum/replace", body: `{"lost":7}`, status: 400, code: "bad_request", undocumented: true},
	{
		target: "POST /api/v1/quorum/remove", body: `{"machine":["b"]}`, status: 400, code: "bad_request",
		undocumented: true,
	},
	{target: "POST /api/v1/quorum/remove", body: removal + removal, status: 400, code: "bad_request"},
	{
		target: "POST /api/v1/quorum/replace", body: `{"lost":"` + strings.Repeat("a", 64<<10) + `"}`, status: 413,
		code: "too_large", undocumented: true,
	},
	{
		target: "POST /api/v1/quorum/remove", body: `{"machines":["` + strings.Repeat("a", 64<<10) + `"]}`, status: 413,
		code: "too_large",
	},
}

const (
	replacement = `{"lost":"ids-2:7420","instead":"ids-4:7420"}`
	removal     = `{"machines":["ids-2:7420","ids-3:7420"]}`
	aMember     = `{"member":"a"}`
	aName       = `{"name":"ids-3"}`
)

// bodies are those of calls that need one.
var bodies = map[string]string{
	"POST /api/v1/sequencers": `{"name":"orders"}`, "POST /api/v1/quorum/replace": replacement,
	"POST /api/v1/quorum/remove":  removal,
	"POST /api/v1/cluster/skip":   `{"position":7}`,
	"POST /api/v1/cluster/forget": aName,
	"POST /api/v1/cluster/expel":  aMember, "POST " + ordersPath + "/drain": aMember,
	"POST " + ordersPath + "/undrain": aMember,
	"POST " + ordersPath + "/move":    `{"node":0,"to":"a"}`, "PUT " + ordersPath + "/allocation": `{"kind":"all"}`,
	"PUT /api/v1/cluster/policy":     `{"shares":[{"sequencer":"orders"}]}`,
	"POST " + ordersPath + "/resume": `{"after":7}`,

	"POST " + ordersPath + "/reserve": aReserve, "POST " + ordersPath + "/release": aRelease,
	"POST " + ordersPath + "/past": aPast,
}

const (
	spare    = `{"name":"spare","nodes":8,` + before
	aReserve = `{"for":"warehouse database","count":2}`
	aPast    = `{"job":"orders of 2025","times":["2026-01-02T00:00:00Z"]}`
	aRelease = `{"for":"warehouse database","greatest":"1"}`
)

// failingCalls are those that need the member, and those that need the cluster.
var (
	failingCalls = []string{"POST /api/v1/id", "POST /api/v1/ids", "GET /readyz"}

	failingVerbs = []string{
		"POST " + ordersPath + "/drain", "POST " + ordersPath + "/undrain", "POST " + ordersPath + "/move",
		"PUT /api/v1/cluster/policy",
		"PUT " + ordersPath + "/allocation", "POST /api/v1/cluster/expel", "POST /api/v1/cluster/skip",
		"POST " + ordersPath + "/resume", "POST " + ordersPath + "/reserve", "POST " + ordersPath + "/release",
		"POST " + ordersPath + "/past",
	}

	failingQuorumCalls = []string{
		"POST /api/v1/quorum/replace", "POST /api/v1/quorum/remove",
		"GET /api/v1/quorum/backup",
	}

	failingSequencerCalls = []string{
		"POST " + ordersPath + "/id", "POST " + ordersPath + "/ids", "POST " + ordersPath + "/attach",
		"POST " + ordersPath + "/detach", "GET " + ordersPath + "/nodes", "GET " + ordersPath,
		"GET " + ordersPath + "/ids/1", "GET " + ordersPath + "/times/1795231536425", "DELETE " + ordersPath,
		"POST /api/v1/sequencers", "POST /api/v1/cluster/resume", "GET /api/v1/cluster/history",
	}
)

// makeFail makes calls of a member, or of a cluster, that fails.
func (c *contract) makeFail(t *testing.T, h handler, targets []string, status int, code string) {
	t.Helper()
	for _, target := range targets {
		c.expect(t, h, []anExchange{{target: target, body: bodies[target], status: status, code: code}})
	}
}

// makeAll makes good calls, bad calls, and calls where it is not who calls that something is wrong with.
func (c *contract) makeAll(t *testing.T) {
	inBubble(t, []string{"a", "b"}, func(t *testing.T, all []*served) {
		a, b := all[0], all[1]
		c.expect(t, a.handler, goodCalls)
		c.expect(t, a.handler, []anExchange{
			{target: "POST /api/v1/sequencers", body: `{"name":"slips","kind":"counter"}`, status: 201},
		})
		if err := counter.Tell(t.Context(), a.client); err != nil {
			t.Fatal(err)
		}
		c.expect(t, a.handler, []anExchange{
			{target: "POST /api/v1/sequencers/slips/ids", status: 409, code: "lost"},
			{target: "POST /api/v1/sequencers/slips/resume", body: `{"after":7}`, status: 200},
		})
		c.expect(t, a.handler, badCalls)

		c.expect(t, a.handler, []anExchange{
			{target: "POST /api/v1/sequencers", body: oneNode, status: 201},
			{target: "POST " + ordersPath + "/id", status: 200},
		})
		c.expect(t, b.handler, []anExchange{
			{target: "POST " + ordersPath + "/id", status: 503, code: "waiting"},
			{target: "GET " + ordersPath, status: 200},
			{target: "GET /api/v1/cluster", status: 200},
			{target: "GET /api/v1/cluster/value", status: 200},
		})
		a.client.CutOff(true)
		c.expect(t, b.handler, []anExchange{{target: "DELETE " + ordersPath, status: 202}})
		a.client.CutOff(false)
		synctest.Wait()
		q, _ := b.member.Sequencer(peer.DefaultSequencer)
		b.handler = handlerWith(t, q, b.member, calls.Options{NoAutoAttach: true})
		c.expect(t, b.handler, []anExchange{
			{target: "POST /api/v1/sequencers", body: oneNode, status: 201},
			{target: "POST " + ordersPath + "/ids", status: 503, code: "detached"},
		})
	})
	notReady, surprise := fmt.Errorf("%w: it has not joined yet", peer.ErrNotReady), errors.New("surprise")
	ofMember := func(err error) handler {
		return newHandler(t, &servertest.Issuer{Err: err, IDs: firn.Default}, example(t).Member, nil)
	}
	c.makeFail(t, ofMember(notReady), failingCalls, 503, "not_ready")
	c.makeFail(t, ofMember(fmt.Errorf("%w: %w", peer.ErrNotReady,
		&peer.ClockError{Ahead: time.Hour, Of: 2, Others: 2})), failingCalls, 503, "clock")
	c.makeFail(t, ofMember(firn.ErrLifetime), failingCalls, 503, "lifetime")
	c.makeFail(t, ofMember(context.DeadlineExceeded), failingCalls[:2], 503, "overloaded")
	c.makeFail(t, ofMember(surprise), failingCalls, 500, "internal")
	allVerbs := append(slices.Clone(failingVerbs), "DELETE /api/v1/cluster/policy", "POST /api/v1/cluster/forget")
	ofCluster := func(err error) handler {
		return newHandler(t, &servertest.Issuer{Same: true}, failing(t, err), nil)
	}
	c.makeFail(t, ofCluster(notReady), failingSequencerCalls, 503, "not_ready")
	synctest.Test(t, func(t *testing.T) { // it tries again and again
		c.makeFail(t, newHandler(t, &servertest.Issuer{Same: true}, failing(t, store.ErrUnavailable), nil),
			slices.Concat(failingSequencerCalls, allVerbs), 503, "unavailable")
	})
	c.makeFail(t, ofCluster(peer.ErrNoSequencer), failingSequencerCalls[:len(failingSequencerCalls)-2], 404,
		"unknown_sequencer")
	c.makeFail(t, ofCluster(fmt.Errorf("%w: %w", peer.ErrNotReady, peer.ErrCopied)),
		failingSequencerCalls[:3], 503, "copied")
	c.makeFail(t, ofCluster(peer.ErrUnfit), failingSequencerCalls[:3], 503, "unfit")
	c.makeFail(t, ofCluster(surprise), failingSequencerCalls, 500, "internal")
	c.makeFail(t, ofCluster(&peer.RefusedError{Command: cluster.Drain{}, Why: "it left"}), failingVerbs, 409, "refused")
	c.makeFail(t, ofCluster(&cluster.PrefixError{Prefix: "ord", Holder: "orders"}), []string{"POST /api/v1/sequencers"},
		409, "refused")
	c.makeFail(t, ofCluster(surprise), allVerbs, 500, "internal")
	lost := example(t)
	lost.SetNodes(peer.NodeRecord{Name: "ids-3", Host: "h", Members: []string{"x"}, Reserved: time.Now()})
	c.expect(t, newHandler(t, &servertest.Issuer{Same: true}, lost.Member, nil), []anExchange{
		{target: "GET /api/v1/cluster", status: 200},
		{target: "POST /api/v1/cluster/forget", body: aName, status: 200},
	})
	c.expect(t, newHandler(t, &servertest.Issuer{Same: true}, example(t).Member, nil), []anExchange{
		{target: "POST /api/v1/cluster/expel", body: `{"member":"c"}`, status: 200}, // a joiner
		{target: "POST /api/v1/cluster/expel", body: `{"member":"b"}`, status: 200},
		{target: "GET /api/v1/cluster", status: 200},
	})
	damaged := newLog(t, cluster.PrepareJoin{Joiner: "a"}, cluster.PrepareJoin{Joiner: "c"})
	at := damaged.AppendData([]byte(`{"version":2}`))
	damaged.Append(cluster.PeerGC{By: "a"})
	c.expect(t, newHandler(t, &servertest.Issuer{Same: true}, damaged.Member, nil), []anExchange{
		{target: "GET /api/v1/cluster", status: 200}, // with a pending join
		{target: "GET /api/v1/cluster/log", status: 200},
		{target: "GET /api/v1/cluster/value?at=6", status: 500, code: "unreadable"},
		{target: "POST /api/v1/cluster/skip", body: fmt.Sprintf(`{"position":%d}`, at), status: 200},
	})
	c.expect(t, newHandler(t, &servertest.Issuer{Same: true}, servertest.Waiting(t, "no answer"), nil), []anExchange{
		{target: "GET /api/v1/sequencers", status: 503, code: "not_ready"},
		{target: "GET /api/v1/cluster", status: 503, code: "not_ready"},
		{target: "GET /api/v1/cluster/policy", status: 503, code: "not_ready"},
		{target: "GET /api/v1/cluster/value", status: 503, code: "not_ready"},
		{target: "GET /api/v1/cluster/log", status: 503, code: "not_ready"},
	})
	ofQuorum := func(q *servertest.Quorum) handler {
		return handlerWith(t, &servertest.Issuer{Same: true}, example(t).Member, calls.Options{Quorum: q})
	}
	c.expect(t, ofQuorum(servertest.ThreeMachines()), quorumCalls)
	c.expect(t, ofQuorum(&servertest.Quorum{State: quorum.Status{Waiting: "waiting for b:7420"}}), quorumCalls[:1])
	c.makeFail(t, ofQuorum(&servertest.Quorum{Err: fmt.Errorf("%w: no leader", store.ErrUnavailable)}),
		failingQuorumCalls, 503, "unavailable")
	c.makeFail(t, ofQuorum(&servertest.Quorum{Err: surprise}), failingQuorumCalls[:2], 400, "bad_request")
	c.makeFail(t, ofQuorum(&servertest.Quorum{Err: surprise}), failingQuorumCalls[2:], 500, "internal")
	withoutQuorum := newHandler(t, &servertest.Issuer{Same: true}, example(t).Member, nil)
	c.makeFail(t, withoutQuorum, append(failingQuorumCalls, "GET /api/v1/quorum"), 404, "no_quorum")
	broken := example(t)
	broken.Fail(store.ErrRefused)
	c.expect(t, newHandler(t, &servertest.Issuer{Same: true}, broken.Member, nil),
		[]anExchange{{target: "GET /api/v1/cluster/log", status: 500, code: "internal"}})
}

// bearing shows a token with every call.
type bearing struct {
	http.Handler
	token string
}

func (b bearing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Header.Set("Authorization", "Bearer "+b.token)
	b.Handler.ServeHTTP(w, r)
}

// makeAtTheDoor makes every call without a token, with one that allows something else, and with one that is spent.
func (c *contract) makeAtTheDoor(t *testing.T) {
	const other, spent = "a token for another sequencer", "a token that is spent"
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	entries := fmt.Sprintf("- {name: other, sha256: %s, allow: [issue, admin], sequencers: [other]}\n"+
		"- {name: spent, sha256: %s, allow: [issue, admin], rate: 0.001}\n", auth.Hash(other), auth.Hash(spent))
	if err := os.WriteFile(file, []byte(entries), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.OpenTokens(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	h := withMetrics(newHandler(t, &servertest.Issuer{Same: true, IDs: firn.Default}, example(t).Member, nil).Service,
		&auth.Policy{Tokens: tokens})
	if who, err := tokens.Identify(spent); err != nil || who.Spend(1) != nil {
		t.Fatal(err)
	}
	for path, item := range document(t).Paths.Map() {
		for method, op := range item.Operations() {
			if op.Extensions["x-firn-right"] == nil {
				continue
			}
			path = strings.NewReplacer("{name}", "orders", "{id}", "4194304000000001", "{time}", "1795231536425").
				Replace(path)
			target := method + " " + path
			call := anExchange{
				target: target, body: bodies[target], status: http.StatusUnauthorized,
				code: "unauthenticated",
			}
			c.expect(t, h, []anExchange{call})
			call.status, call.code = http.StatusForbidden, "forbidden"
			c.expect(t, bearing{h, other}, []anExchange{call})
			call.status, call.code = http.StatusTooManyRequests, "rate_limited"
			c.expect(t, bearing{h, spent}, []anExchange{call})
		}
	}
}

// What the handlers answer is what the document says, and what it says of good calls and of bad ones is so. Each status
// of each call is seen, but for those that the handlers do not give yet. Answers that the document does not allow are
// found.
func TestContract(t *testing.T) {
	c := newContract(t)
	c.makeAll(t)
	c.makeAtTheDoor(t)
	c.wantAllSeen(t)
	c.findChanges(t)
}

// Where there is no call, an error is told in the same way. So it is of pages of other sites.
func TestContractElsewhere(t *testing.T) {
	h := newHandler(t, &servertest.Issuer{Same: true}, example(t).Member, nil)
	failure := document(t).Components.Schemas["Failure"].Value
	for target, status := range map[string]int{
		"GET /nowhere": 404, "GET /": 404, "PUT /api/v1/id": 405, "DELETE /livez": 405,
		"POST /api/v1/id": 403, "DELETE " + ordersPath: 403,
	} {
		method, path, _ := strings.Cut(target, " ")
		w := call(h, method, path, "Sec-Fetch-Site", "cross-site")
		var body any
		err := json.Unmarshal(w.Body.Bytes(), &body)
		if err == nil {
			err = failure.VisitJSON(body, openapi3.EnableJSONSchema2020())
		}
		if err != nil || w.Code != status {
			t.Errorf("%s = %d %s: %v", target, w.Code, w.Body, err)
		}
	}
}
