package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/firn-id/firn/internal/doctor"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/httpapi"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
)

// seeWithin is how long each look may take.
const seeWithin = 5 * time.Second

// address is where the node is to listen, with the flag that says so.
type address struct{ flag, at string }

// addresses are all of them, the public one first.
func (n *node) addresses() (all []address) {
	for _, a := range []address{{"http-addr", n.httpAddr}, {"admin-addr", n.adminAddr}, {"grpc-addr", n.grpcAddr}, {"redis-addr", n.redisAddr}, {"metrics-addr", n.metricsAddr}} {
		if a.at != noAddress {
			all = append(all, a)
		}
	}
	return all
}

// seePorts tries to listen. Where somebody does already, it is a node if it answers as one; gRPC and Redis are
// believed to be that node's.
func (n *node) seePorts(ctx context.Context) (all []doctor.Port) {
	running := false
	for _, a := range n.addresses() {
		p := doctor.Port{Flag: a.flag, Address: a.at}
		l, err := net.Listen("tcp", a.at)
		switch {
		case err == nil:
			_ = l.Close() // nobody knows of it
		case errors.Is(err, syscall.EADDRINUSE):
			p.InUse = true
			p.Firn = running
			if a.flag == "http-addr" || a.flag == "admin-addr" || a.flag == "metrics-addr" {
				p.Firn = n.livesAt(ctx, a.at)
				running = running || p.Firn
			}
		default:
			var op *net.OpError
			if errors.As(err, &op) {
				err = op.Err
			}
			p.Error = err.Error()
		}
		all = append(all, p)
	}
	return all
}

// neighbour is who asks the node on this machine. That it is the right one is known from the address.
func neighbour() *http.Client {
	return &http.Client{Timeout: seeWithin, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
}

// ask reads what the node at an address answers.
func (n *node) ask(ctx context.Context, at, path string) (status int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, urlOf(at, n.tls != nil)+path, nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := neighbour().Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, longestValue))
	return response.StatusCode, body, err
}

// livesAt tells whether a node answers. One that wants to see a certificate is believed to be one.
func (n *node) livesAt(ctx context.Context, at string) bool {
	status, body, err := n.ask(ctx, at, "/livez")
	if err != nil {
		var alert tls.AlertError
		return n.certificates.ClientCA != "" && errors.As(err, &alert)
	}
	return status == http.StatusOK && strings.TrimSpace(string(body)) == "ok"
}

// seeNode asks the node that runs here. Where it wants a token, or a certificate, it says less.
func (n *node) seeNode(ctx context.Context) *doctor.Node {
	d := &doctor.Node{URL: urlOf(n.httpAddr, n.tls != nil), Alive: -1}
	status, body, err := n.ask(ctx, n.httpAddr, "/readyz")
	if err != nil && n.certificates.ClientCA == "" {
		d.Why = err.Error()
	} else if err == nil && status != http.StatusOK {
		var f httpapi.Failure
		d.Why = http.StatusText(status)
		if json.Unmarshal(body, &f) == nil && f.Error.Message != "" {
			d.Why = strings.TrimPrefix(f.Error.Message, member.ErrNotReady.Error()+": ")
			d.Over = f.Error.Code == server.Lifetime
		}
	}
	if n.adminAddr == noAddress {
		return d
	}
	status, body, err = n.ask(ctx, n.adminAddr, "/api/v1/cluster")
	var s server.Status
	if err != nil || status != http.StatusOK || json.Unmarshal(body, &s) != nil {
		return d
	}
	d.Alive = 0
	for _, m := range s.Members {
		if m.Alive != nil && !*m.Alive {
			d.Dead++
		} else {
			d.Alive++
		}
	}
	return d
}

// seeEtcd asks the etcd cluster, and what is written there.
func (n *node) seeEtcd(ctx context.Context) (*doctor.Store, *doctor.Nodes) {
	d := &doctor.Store{Prefix: n.etcd.Prefix}
	s, err := etcdstore.Open(n.etcd)
	if err != nil { // it was opened before
		d.Down = err.Error()
		return d, nil
	}
	defer func() { _ = s.Close() }() // it has no sessions
	servers, read, err := s.Examine(ctx)
	d.Read = read
	switch {
	case errors.Is(err, store.ErrRefused):
		d.Refused = lastOf(err)
	case err != nil:
		d.Down = lastOf(err)
	}
	for _, r := range servers {
		one := doctor.Server{Endpoint: r.Endpoint, Version: r.Version, Alarms: r.Alarms, Size: r.Size, Took: r.Took}
		if r.Err != nil {
			one.Error = lastOf(r.Err)
		}
		if r.TooOld != nil {
			one.TooOld = lastOf(r.TooOld)
		}
		d.Servers = append(d.Servers, one)
	}
	if err != nil {
		return d, nil
	}
	return d, n.seeNodes(ctx, s)
}

// lastOf is the end of a chain of errors: what etcd, or the network, says.
func lastOf(err error) string {
	text := err.Error()
	if errors.Is(err, context.DeadlineExceeded) || strings.HasSuffix(text, context.DeadlineExceeded.Error()) {
		return "not in time"
	}
	if at := strings.LastIndex(text, "desc = "); at >= 0 {
		return text[at+len("desc = "):]
	}
	for _, prefix := range []string{"etcdstore: ", "read: ", "write: ", "login: ", "store: refused: ", "store: unavailable: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}

// seeNodes reads who has which node ID of the default sequencer; nil: that can't be read.
func (n *node) seeNodes(ctx context.Context, s store.Store) *doctor.Nodes {
	const workers = "sequencers/" + member.DefaultSequencer + "/workers/"
	kvs, err := s.List(ctx, workers)
	pulses, errPulses := s.List(ctx, "peers/")
	if err != nil || errPulses != nil {
		return nil
	}
	d := &doctor.Nodes{NodeIDs: n.layout.NodeIDs(), Members: len(pulses), Window: n.window}
	live, now := map[string]bool{}, time.Now()
	for _, kv := range kvs {
		if node, ok := strings.CutPrefix(kv.Key, workers+"live/"); ok {
			live[node] = true
		}
	}
	d.Live = len(live)
	first := true
	for _, kv := range kvs {
		node, ok := strings.CutPrefix(kv.Key, workers+"last_reported_time/")
		text, _, _ := strings.Cut(string(kv.Value), " ")
		horizon, err := strconv.ParseInt(text, 10, 64)
		if !ok || err != nil {
			continue
		}
		ahead := time.UnixMilli(horizon).Sub(now)
		d.Furthest = max(d.Furthest, ahead)
		if live[node] && (first || ahead > d.Horizon) {
			d.Horizon, first = ahead, false
		}
	}
	return d
}
