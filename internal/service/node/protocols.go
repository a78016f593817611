package node

import (
	"crypto/tls"
	"log"
	"net"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/grpcapi"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/service/pages"
	"github.com/firn-id/firn/internal/service/respapi"
	"github.com/firn-id/firn/internal/service/ui"
)

// public serves all callers over HTTP.
func (n *Node) public(secure *tls.Config) *protocolServer {
	var options []httpapi.Option
	if n.config.MetricsAddr == "" {
		options = append(options, n.withMetrics())
	}
	if n.config.Leaf.Served {
		options = append(options, httpapi.WithLeaf(n.config.Leaf))
	}
	return n.http(Public, secure, n.api(&auth.Policy{Tokens: n.tokens}, options...))
}

// admin serves administrators over HTTP.
func (n *Node) admin(secure *tls.Config) *protocolServer {
	p := &auth.Policy{Tokens: n.tokens, Trusted: true, Secret: n.secret}
	mux := http.NewServeMux()
	mux.Handle("/", n.api(p, httpapi.WithProfiles(), n.withMetrics()))
	mux.Handle("GET /{$}", pages.Redirect("ui/"))
	mux.Handle("GET /ui", pages.Redirect("ui/"))
	mux.Handle(ui.Root, ui.New(n.service, p, ui.Options{Given: n.config.Given}))
	return n.http(Admin, secure, mux)
}

// probes serves health probes and metrics over HTTP, and requires no token.
func (n *Node) probes(secure *tls.Config) *protocolServer {
	return n.http(Metrics, secure, httpapi.NewProbes(n.service, n.withMetrics()))
}

func (n *Node) withMetrics() httpapi.Option { return httpapi.WithMetrics(n.metrics.Handler(n.log)) }

// api serves programs over HTTP.
func (n *Node) api(p *auth.Policy, options ...httpapi.Option) http.Handler {
	if n.config.TextIDs {
		options = append(options, httpapi.WithTexts())
	}
	return n.traces.web(httpapi.New(n.service, p, options...))
}

func (n *Node) http(a Address, secure *tls.Config, handler http.Handler) *protocolServer {
	s := newHTTP(httpapi.WithCluster(n.service, handler), n.budget(a), secure, log.New(httpErrors{n, a}, "", 0))
	// it has stopped listening
	p := &protocolServer{serve: s.Serve, shutdown: s.Shutdown, close: func() { _ = s.Close() }}
	if secure != nil {
		p.serve = func(l net.Listener) error { return s.ServeTLS(l, "", "") }
	}
	return p
}

// budget returns what bounds the calls on an HTTP address: callers can't take the places of administrators and probes.
func (n *Node) budget(a Address) *httpapi.Budget {
	calls := n.limits.Calls
	if a != Public {
		calls = max(64, calls/16)
	}
	return httpapi.NewBudget(n.service, calls)
}

// grpc serves gRPC clients.
func (n *Node) grpc(secure *tls.Config) *protocolServer {
	options := n.traces.served()
	if secure != nil {
		options = append(options, grpc.Creds(grpcapi.Timely(shakenHands{credentials.NewTLS(secure.Clone()), n})))
	}
	s := grpcapi.New(n.service, &auth.Policy{Tokens: n.tokens}, options...)
	// Shutdown has cut off the calls that took too long
	return &protocolServer{serve: s.Serve, shutdown: s.Shutdown, close: func() {}}
}

// redis serves Redis clients.
func (n *Node) redis(secure *tls.Config) *protocolServer {
	s := respapi.New(n.service, &auth.Policy{Tokens: n.tokens}, n.log)
	s.Texts = n.config.RedisTexts
	p := &protocolServer{serve: s.Serve, shutdown: s.Shutdown, close: s.Close}
	if secure != nil {
		p.serve = func(l net.Listener) error { return s.Serve(handshakes{tls.NewListener(l, secure), n}) }
	}
	return p
}
