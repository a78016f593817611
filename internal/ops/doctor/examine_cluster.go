package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
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
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/calls"
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
	d := &Node{URL: public.URL}
	status, body, err := ask(ctx, public, "/readyz")
	if err != nil && c.TLS.ClientCA == "" {
		d.Why = err.Error()
	} else if err == nil && status != http.StatusOK {
		d.Why = notReady(status, body)
	}
	admin := slices.IndexFunc(c.Addresses, func(a Address) bool { return a.Flag == "admin-addr" })
	if admin < 0 {
		return d
	}
	status, body, err = ask(ctx, c.Addresses[admin], "/api/v1/cluster")
	var s calls.Status
	if err == nil && status == http.StatusOK && json.Unmarshal(body, &s) == nil {
		d.Status = &s
	}
	return d
}

// notReady returns why a node is not ready, by its answer to /readyz.
func notReady(status int, body []byte) string {
	var f httpapi.Failure
	if json.Unmarshal(body, &f) != nil || f.Error.Message == "" {
		return http.StatusText(status)
	}
	return strings.TrimPrefix(f.Error.Message, peer.ErrNotReady.Error()+": ")
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
	own := ""
	if seen.Node != nil && seen.Node.Status != nil {
		own = seen.Node.Status.Member
	}
	seen.Stored = c.seeStored(ctx, s, own)
}

// pulses is where members say that they live.
const pulses = "peers/"

// seeStored reads what members have written to the store, without the pulse of the node here; nil: unknown.
func (c Config) seeStored(ctx context.Context, s store.Store, own string) *Stored {
	const horizons = "sequencers/" + peer.DefaultSequencer + "/workers/last_reported_time/"
	kvs, err := s.List(ctx, horizons)
	if err != nil {
		return nil
	}
	d, now := &Stored{Window: c.Window}, time.Now()
	for _, kv := range kvs {
		text, _, _ := strings.Cut(string(kv.Value), " ")
		if horizon, err := strconv.ParseInt(text, 10, 64); err == nil {
			d.Furthest = max(d.Furthest, time.UnixMilli(horizon).Sub(now))
		}
	}
	var alive map[string]peer.Pulse
	if d.Clock, alive, err = seeClocks(ctx, s, own); err != nil {
		return nil
	}
	v, unread := valueOf(ctx, s)
	joined, err := s.List(ctx, pulses) // who has left since is in alive, and who has joined since is here
	if unread != nil || err != nil {
		return d
	}
	for _, kv := range joined {
		alive[strings.TrimPrefix(kv.Key, pulses)] = pulseOf(kv)
	}
	now = time.Now()
	if d.Clock.Out() {
		now = now.Add(-d.Clock.Offset)
	}
	owners := map[string][]peer.Owner{}
	for name, q := range v.Sequencers() {
		if q.Reserved() == 0 {
			continue
		}
		if known, err := peer.OwnersIn(ctx, s, name); err == nil {
			owners[name] = known
		}
	}
	d.Status = new(calls.Stored(v, alive, owners, now))
	return d
}

// pulseOf reads a pulse; a foreign value shows as a zero Pulse.
func pulseOf(kv store.KV) (p peer.Pulse) {
	if json.Unmarshal(kv.Value, &p) != nil {
		return peer.Pulse{}
	}
	return p
}

// valueOf returns the value at the end of the log. An error is returned when the log can't be read up to there.
func valueOf(ctx context.Context, s store.Log) (v cluster.Value, err error) {
	batch, err := s.Read(ctx, 0)
	if err != nil {
		return v, err
	}
	if c := batch.Checkpoint; c != nil && c.Position > 0 {
		if v, err = cluster.DecodeCheckpoint(c.Value); err != nil {
			return v, err
		}
	}
	for _, e := range batch.Entries {
		entry, err := cluster.Decode(int64(e.Position), e.Data)
		if err != nil {
			return v, err
		}
		v, _ = cluster.Apply(v, entry)
	}
	return v, nil
}

// lookEach is how often pulses are read again while they are too old to tell the time.
const lookEach = 250 * time.Millisecond

// seeClocks compares this machine's clock with those of members, except that of the node here, and returns the pulses
// of all. If what they wrote last is too old to tell, it waits until they have written again.
func seeClocks(ctx context.Context, s store.Store, own string) (clocks.Verdict, map[string]peer.Pulse, error) {
	type sight struct {
		version store.Version
		reading clocks.Reading
	}
	began, due := time.Now(), time.Duration(0)
	for before, last := map[string]sight{}, began; ; {
		all, err := s.List(ctx, pulses)
		if err != nil {
			return clocks.Verdict{}, nil, err
		}
		now := time.Now()
		alive, seen, readings := map[string]peer.Pulse{}, map[string]sight{}, []clocks.Reading(nil)
		for _, kv := range all {
			id, p := strings.TrimPrefix(kv.Key, pulses), pulseOf(kv)
			if alive[id] = p; id == own || p.Clock.IsZero() {
				continue
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
		verdict := clocks.Judge(readings)
		if verdict.Kind != clocks.Unclear || time.Since(began) > due {
			return verdict, alive, nil
		}
		if err := retry.Sleep(ctx, lookEach); err != nil {
			return verdict, alive, err
		}
		before, last = seen, now
	}
}
