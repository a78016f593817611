package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/base/unixsocket"
	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/pgstore"
	"github.com/firn-id/firn/store/zkstore"
)

// seeWithin is how long each request to the node may take.
const seeWithin = 5 * time.Second

// longestAnswer is the most bytes of an answer that are read.
const longestAnswer = 64 << 20

// seePorts tries to listen on each address. One in use belongs to a node if it answers as a node does; once a
// node answers, the addresses for gRPC and Redis count as its own.
func (c Config) seePorts(ctx context.Context) (all []Port) {
	running := false
	for _, a := range c.Addresses {
		if a.Passed {
			all = append(all, Port{Flag: a.Flag, Address: a.At, Passed: true})
			continue
		}
		p := seePort(a.Flag, a.At)
		if p.InUse {
			p.Firn = running
			if a.Flag == "http-addr" || a.Flag == "admin-addr" || a.Flag == "metrics-addr" {
				p.Firn = c.livesAt(ctx, a)
				running = running || p.Firn
			}
		}
		all = append(all, p)
	}
	return all
}

// seePort tries to listen on an address.
func seePort(flag, address string) Port {
	p := Port{Flag: flag, Address: address}
	path, notUnix := unixsocket.Parse(address)
	var l net.Listener
	var err error
	if notUnix != nil {
		l, err = net.Listen("tcp", address)
	} else if p.InUse, err = unixsocket.Living(path); err == nil && !p.InUse {
		l, err = unixsocket.Listen(path, 0o600)
	}
	switch {
	case p.InUse:
	case err == nil:
		_ = l.Close() // nobody has connected
	case errors.Is(err, syscall.EADDRINUSE):
		p.InUse = true
	default:
		p.Error = reason(err)
	}
	return p
}

// ask reads the answer of the node at an address. It accepts any certificate: the address is on this machine.
func ask(ctx context.Context, a Address, path string) (status int, body []byte, err error) {
	base, transport := a.URL,
		&http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	if socket, err := unixsocket.Parse(a.At); err == nil {
		base, transport = unixsocket.URL, unixsocket.Transport(transport, socket)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return 0, nil, err
	}
	client := http.Client{Timeout: seeWithin, Transport: transport}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	return response.StatusCode, body, err
}

// livesAt reports whether a node answers. A server that requires a client certificate counts as a node.
func (c Config) livesAt(ctx context.Context, a Address) bool {
	status, body, err := ask(ctx, a, "/livez")
	if err != nil {
		return c.wantsCertificate(err)
	}
	return status == http.StatusOK && strings.TrimSpace(string(body)) == "ok"
}

// wantsCertificate reports whether a node may have refused a call because it requires a client certificate. Package tls
// has no type for an alert from the other side, but for QUIC.
func (c Config) wantsCertificate(err error) bool {
	failed, ok := errors.AsType[*net.OpError](err)
	return ok && failed.Op == "remote error" && c.TLS.ClientCA != ""
}

// seeNode asks the node on this machine. A node that requires a token or a certificate tells less.
func (c Config) seeNode(ctx context.Context) *Node {
	public := c.Addresses[0]
	d := &Node{URL: public.URL, Alive: -1}
	status, body, err := ask(ctx, public, "/readyz")
	if err != nil && c.TLS.ClientCA == "" {
		d.Why = err.Error()
	} else if err == nil && status != http.StatusOK {
		d.Why, d.Over = notReady(status, body)
	}
	admin := slices.IndexFunc(c.Addresses, func(a Address) bool { return a.Flag == "admin-addr" })
	if admin < 0 {
		return d
	}
	status, body, err = ask(ctx, c.Addresses[admin], "/api/v1/cluster")
	var s calls.Status
	if err != nil || status != http.StatusOK || json.Unmarshal(body, &s) != nil {
		return d
	}
	d.Member, d.Alive, d.Problems = s.Member, 0, s.Problems
	d.At = s.At
	for _, m := range s.Members {
		if m.Alive != nil && !*m.Alive {
			d.Dead++
		} else {
			d.Alive++
		}
	}
	return d
}

// notReady returns why a node is not ready, by its answer to /readyz, and whether the layout's lifetime is over.
func notReady(status int, body []byte) (why string, over bool) {
	var f httpapi.Failure
	if json.Unmarshal(body, &f) != nil || f.Error.Message == "" {
		return http.StatusText(status), false
	}
	return strings.TrimPrefix(f.Error.Message, peer.ErrNotReady.Error()+": "), f.Error.Code == codes.Lifetime
}

// seeStore examines the servers of a store that others keep, and reads what members have written: node IDs and pulses.
func (c Config) seeStore(ctx context.Context, seen *Seen) {
	d := &Store{Kind: c.StoreKind()}
	seen.Store = d
	s, err := c.Open(nil)
	if err != nil { // unlikely: the caller has opened it
		d.Err = err
		return
	}
	defer func() { _ = s.Close() }() // it has no sessions
	switch s := s.(type) {
	case *etcdstore.Store:
		var servers []etcdstore.ServerReport
		servers, d.Read, d.Err = s.Examine(ctx)
		for _, r := range servers {
			d.Servers = append(d.Servers, etcdServer(r))
		}
		d.Place = c.Etcd.Prefix
	case *zkstore.Store:
		var servers []zkstore.ServerReport
		servers, d.Err = s.Examine(ctx)
		for _, r := range servers {
			d.Servers, d.Read = append(d.Servers, zookeeperServer(r)), max(d.Read, r.Took)
		}
		d.Place = cmp.Or(c.ZooKeeper.Chroot, zkstore.DefaultChroot)
	case *pgstore.Store:
		var r pgstore.Report
		r, d.Err = s.Examine(ctx)
		for _, server := range r.Servers {
			d.Servers = append(d.Servers, postgresServer(server))
		}
		d.Wrong = postgresWrong(r)
		d.Read, d.Place = r.Read, cmp.Or(c.Postgres.Schema, pgstore.DefaultSchema)
	}
	if d.Err != nil {
		return
	}
	seen.Nodes = c.seeNodes(ctx, s)
	own := ""
	if seen.Node != nil {
		own = seen.Node.Member
	}
	if seen.Clocks = seeClocks(ctx, s, own); seen.Clocks != nil && own != "" {
		seen.Clocks.Wrong = nil // the problems that the node sees have them
	}
}

// pulses is where members say that they live.
const pulses = "peers/"

// seeNodes reads the owners of the default sequencer's node IDs; nil: unknown.
func (c Config) seeNodes(ctx context.Context, s store.Store) *Nodes {
	const workers = "sequencers/" + peer.DefaultSequencer + "/workers/"
	kvs, err := s.List(ctx, workers)
	alive, errPulses := s.List(ctx, pulses)
	if err != nil || errPulses != nil {
		return nil
	}
	d := &Nodes{NodeIDs: c.Layout.NodeIDs(), Members: len(alive), Window: c.Window}
	now := time.Now()
	for _, kv := range kvs {
		if strings.HasPrefix(kv.Key, workers+"live/") {
			d.Live++
		}
		_, ok := strings.CutPrefix(kv.Key, workers+"last_reported_time/")
		text, _, _ := strings.Cut(string(kv.Value), " ")
		if horizon, err := strconv.ParseInt(text, 10, 64); ok && err == nil {
			d.Furthest = max(d.Furthest, time.UnixMilli(horizon).Sub(now))
		}
	}
	return d
}

// lookEach is how often pulses are read again while they are too old to tell the time.
const lookEach = 250 * time.Millisecond

// seeClocks compares this machine's clock with those of members, except that of the node here; nil: unknown. If what
// they wrote last is too old to tell, it waits until they have written again.
func seeClocks(ctx context.Context, s store.Store, own string) *Clocks {
	type sight struct {
		version store.Version
		reading clocks.Reading
	}
	began, due := time.Now(), time.Duration(0)
	for before, last := map[string]sight{}, began; ; {
		all, err := s.List(ctx, pulses)
		if err != nil {
			return nil
		}
		now := time.Now()
		d, seen, readings := &Clocks{}, map[string]sight{}, []clocks.Reading(nil)
		for _, kv := range all {
			var p peer.Pulse
			if strings.TrimPrefix(kv.Key, pulses) == own || json.Unmarshal(kv.Value, &p) != nil || p.Clock.IsZero() {
				continue
			}
			if v := p.Vitals.Judgement(); v.Out() {
				d.Wrong = append(d.Wrong, fmt.Sprintf("the clock of %s is %s", p.Owner, v))
			}
			one, known := before[kv.Key]
			if one.version != kv.Version {
				age := p.Every + time.Second
				due = max(due, age)
				if known {
					age = now.Sub(last)
				}
				one = sight{kv.Version, clocks.Read(p.Clock, now, age)}
			}
			seen[kv.Key], readings = one, append(readings, one.reading)
		}
		d.Here = clocks.Judge(readings)
		if d.Here.Kind != clocks.Unclear || time.Since(began) > due || retry.Sleep(ctx, lookEach) != nil {
			return d
		}
		before, last = seen, now
	}
}
