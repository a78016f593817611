package httpapi_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/base/throttle"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/test/servertest"
)

// nobody is known by any token.
type nobody struct{}

func (nobody) Identify(string) (*auth.Caller, error) {
	return nil, fmt.Errorf("%w: the token is not known", auth.ErrUnauthenticated)
}

// Who is refused is in the audit trail: with the address, and with the path as it is written in the documentation,
// since the one that was asked for may hold anything.
func TestAuditTrail(t *testing.T) {
	var trail bytes.Buffer
	s := calls.New(servertest.Join(t), calls.Options{
		Default: &servertest.Issuer{Same: true},
		Audit:   throttle.New(slog.New(slog.NewTextHandler(&trail, nil))),
	})
	const token = "firn_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
	for _, tt := range []struct {
		policy         auth.Policy
		method, target string
		headers        []string
		want           string
	}{
		{
			auth.Policy{},
			"DELETE", "/api/v1/sequencers/orders", nil,
			`who=(anonymous) remote=192.0.2.1:1234 protocol=http call="DELETE /api/v1/sequencers/{name}" ` +
				`sequencer=orders outcome=forbidden`,
		},
		{
			auth.Policy{},
			"DELETE", "/api/v1/sequencers/" + token, nil,
			`sequencer="firn_(not shown)" outcome=bad_request`,
		},
		{auth.Policy{}, "GET", "/api/v1/cluster/log?from=1", nil, `call="GET /api/v1/cluster/log" outcome=forbidden`},
		{auth.Policy{Tokens: nobody{}}, "POST", "/api/v1/id", nil, `call="POST /api/v1/id" outcome=unauthenticated`},
		{
			auth.Policy{Tokens: nobody{}},
			"POST", "/api/v1/id?token=" + token,
			[]string{"Authorization", "Bearer " + token},
			`call="POST /api/v1/id" outcome=unauthenticated`,
		},
		{
			auth.Policy{},
			"POST", "/api/v1/id",
			[]string{"Sec-Fetch-Site", "cross-site"},
			`call="POST /api/v1/id" outcome=cross_origin`,
		},
		{
			auth.Policy{Trusted: true},
			"DELETE", "/api/v1/sequencers/default", nil,
			`level=INFO msg="audit: a change was asked for" who=(anonymous) remote=192.0.2.1:1234 protocol=http ` +
				`call=destroy sequencer=default outcome=in_use`,
		},
		{
			auth.Policy{Trusted: true},
			"POST", "/api/v1/cluster/resume", nil,
			`level=INFO msg="audit: a change was asked for" who=(anonymous) remote=192.0.2.1:1234 protocol=http ` +
				`call=resume outcome=ok`,
		},
		{auth.Policy{}, "POST", "/api/v1/id", nil, ""},
		{auth.Policy{}, "GET", "/" + token, nil, ""},
		{auth.Policy{Trusted: true}, "GET", "/api/v1/sequencers?x=1", nil, ""},
	} {
		trail.Reset()
		r := httptest.NewRequest(tt.method, "http://localhost"+tt.target, nil)
		for i := 0; i < len(tt.headers); i += 2 {
			r.Header.Set(tt.headers[i], tt.headers[i+1])
		}
		var h http.Handler = httpapi.New(s, &tt.policy)
		h.ServeHTTP(httptest.NewRecorder(), r)
		got := trail.String()
		if !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") || strings.Count(got, "\n") > 1 ||
			strings.Contains(got, token) {
			t.Errorf("%s %s: the trail says %q; want %s", tt.method, tt.target, got, tt.want)
		}
	}
}
