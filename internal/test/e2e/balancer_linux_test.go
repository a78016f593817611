package e2e

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/responsive"
	"github.com/firn-id/firn/internal/test/testenv"
)

const (
	vip     = "10.77.0.100"
	service = "http://" + vip + ":8080"
)

// picture is what docs/operate.md describes, on a network of its own: a machine with etcd, three with a node, two
// with a balancer, of which one holds the VIP, and one with callers. Every configuration is as firn gen prints it.
type picture struct {
	t         *testing.T
	firn      string
	ledger    *ledger
	nodes     []*placed
	balancers []*balancer
	callers   *machine
	table     []string
}

// placed is a node on a machine.
type placed struct {
	*machine
	config string // the file
	run    *program
}

// balancer is a machine with HAProxy and keepalived.
type balancer struct {
	*machine
	config              string // HAProxy's
	haproxy, keepalived *program
}

func newPicture(t *testing.T) *picture {
	t.Helper()
	for _, name := range []string{"haproxy", "keepalived", "nginx", "curl"} {
		testenv.Program(t, name, name)
	}
	l := newLAN(t)
	path, err := firn()
	if err != nil {
		t.Fatal(err)
	}
	p := &picture{t: t, firn: path, ledger: new(ledger)}
	etcd := l.plug("etcd", "10.77.0.10")
	p.startEtcd(etcd)
	p.callers = l.plug("callers", "10.77.0.50")

	var http, grpc, redis []string
	for i := range 3 {
		m := l.plug(fmt.Sprint("node", i+1), fmt.Sprint("10.77.0.", 11+i))
		at := func(port int) string { return fmt.Sprint(m.address, ":", port) }
		http, grpc, redis = append(http, at(8080)), append(grpc, at(9090)), append(redis, at(6379))
		p.nodes = append(p.nodes,
			&placed{machine: m, config: p.gen("config", "--etcd", etcd.address+":2379", "--http-addr", at(8080),
				"--grpc-addr", at(9090), "--redis-addr", at(6379), "--ttl", "5s")})
	}
	for _, n := range p.nodes {
		n.start(p)
	}
	for i := range 2 {
		m := l.plug(fmt.Sprint("balancer", i+1), fmt.Sprint("10.77.0.", 8+i))
		b := &balancer{
			machine: m,
			config: p.gen("haproxy", "--nodes", strings.Join(http, ","), "--grpc-nodes", strings.Join(grpc, ","),
				"--redis-nodes", strings.Join(redis, ","), "--listen", vip+":8080", "--grpc-listen", vip+":9090",
				"--redis-listen", vip+":6379", "--max-connections", "1000"),
		}
		p.balancers = append(p.balancers, b)
		b.balance()
		b.keepalived = m.run("keepalived", "--dont-fork", "--log-console", "-f",
			p.gen("keepalived", "--vip", vip+"/24"))
	}
	p.whole()
	return p
}

// gen is the path of a file that firn gen has made.
func (p *picture) gen(args ...string) string {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), args[0])
	if out, err := exec.Command(p.firn, append(append([]string{"gen"}, args...), "--output", path)...).
		CombinedOutput(); err != nil {
		p.t.Fatalf("firn gen %v: %v: %s", args, err, out)
	}
	return path
}

func (p *picture) startEtcd(m *machine) {
	p.t.Helper()
	server, err := etcdtest.Binary()
	if err != nil {
		p.t.Fatal(err)
	}
	url := "http://" + m.address + ":2379"
	m.run(server, "--data-dir="+p.t.TempDir(), "--listen-client-urls="+url, "--advertise-client-urls="+url,
		"--log-level=warn")
	eventually(p.t, func() error {
		status, body, err := m.get(url + "/health")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("etcd is not well: %d %s", status, body)
		}
		return err
	})
}

// start starts the node, and waits until it is ready.
func (n *placed) start(p *picture) {
	p.t.Helper()
	n.run = n.machine.run(p.firn, "serve", journaled(p.t, nil), "--config", n.config)
	eventually(p.t, func() error {
		status, body, err := p.callers.get("http://" + n.address + ":8080/readyz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%s is not ready: %d %s", n.name, status, body)
		}
		return err
	})
}

// balance starts HAProxy.
func (b *balancer) balance() { b.haproxy = b.run("haproxy", "-db", "-f", b.config) }

// up are the nodes that HAProxy would use now.
func (b *balancer) up() (up []string, err error) {
	_, text, err := b.get("http://127.0.0.1:8404/stats;csv")
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	name, status := slices.Index(rows[0], "svname"), slices.Index(rows[0], "status")
	for _, row := range rows {
		if row[0] == "firn" && strings.HasPrefix(row[status], "UP") && row[name] != "BACKEND" {
			up = append(up, row[name])
		}
	}
	return up, nil
}

// sees waits until HAProxy would use these nodes, and no other.
func (b *balancer) sees(nodes ...string) {
	b.t.Helper()
	eventually(b.t, func() error {
		up, err := b.up()
		if err == nil && !slices.Equal(up, nodes) {
			err = fmt.Errorf("%s uses the nodes %v; want %v", b.name, up, nodes)
		}
		return err
	})
}

// holder waits until exactly one balancer has the VIP, and returns it with the other.
func (p *picture) holder() (holds, other *balancer) {
	p.t.Helper()
	eventually(p.t, func() error {
		a, b := p.balancers[0], p.balancers[1]
		switch atA, atB := a.has(vip), b.has(vip); {
		case atA && !atB:
			holds, other = a, b
		case atB && !atA:
			holds, other = b, a
		default:
			return fmt.Errorf("the VIP is on %s: %v, on %s: %v; want it on one", a.name, atA, b.name, atB)
		}
		return nil
	})
	return holds, other
}

// whole waits until everything is there, and the service answers at the VIP.
func (p *picture) whole() {
	p.t.Helper()
	for _, b := range p.balancers {
		b.sees("n1", "n2", "n3")
	}
	p.holder()
	eventually(p.t, func() error {
		status, body, err := p.callers.get(service + "/readyz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("the service is not ready: %d %s", status, body)
		}
		return err
	})
}

// fault has callers take IDs at a URL while something happens to the picture, and goes on until happen has returned and
// everybody is served again. No call may fail but for as long as the fault may be felt, on a responsive machine: zero
// is never.
func (p *picture) fault(name, url string, felt time.Duration, happen func(*testing.T)) {
	p.t.Run(name, func(t *testing.T) {
		c := p.callers.load(t, p.ledger, url)
		c.served(25)
		at := time.Now()
		happen(t)
		c.served(50)
		s := c.finish()
		p.table = append(p.table, fmt.Sprintf("| %s | %d | %d | %d | %d ms | %d ms |",
			name, s.calls, s.again, len(s.failed), s.longest.Milliseconds(), s.silence.Milliseconds()))
		each := map[int]int{}
		for _, f := range s.failed {
			each[f.caller]++
			switch off := f.began.Sub(at); {
			case f.ended.Before(at):
				responsive.Errorf(t, f.began.Add(-mercy), "a call failed before it happened: %v, then %v",
					f.first, f.err)
			case felt == 0:
				responsive.Errorf(t, f.began.Add(-mercy), "a call failed, begun %v after it began: %v, then %v", off,
					f.first, f.err)
			case off > felt+mercy:
				responsive.Errorf(t, f.began.Add(-mercy),
					"a call failed, begun %v after it happened; it is felt for %v: %v, then %v", off, felt,
					f.first, f.err)
			}
		}
		for i, n := range each {
			if most := int((felt + mercy) / askEvery); n > most {
				responsive.Errorf(t, at.Add(-mercy),
					"caller %d: %d calls failed; want %d at most, as many as it makes in %v", i, n, most, felt+mercy)
			}
		}
	})
	if p.t.Failed() {
		p.t.FailNow() // the picture may be broken
	}
}

// How long faults may be felt, by what firn gen says: HAProxy finds that a node is gone after fall x inter, and that it
// is silent after fall x the check's timeout. Keepalived asks HAProxy every second; three adverts later the VIP moves.
const (
	nodeGone     = 2 * 200 * time.Millisecond
	nodeSilent   = 2 * (500 + 200) * time.Millisecond
	haproxyGone  = 2*time.Second + 4*100*time.Millisecond
	balancerGone = 4 * 100 * time.Millisecond
)

// What callers see who retry once: nothing of a rolling restart, and of everything else failures for as long as a
// health check takes at most. No ID is given twice.
func TestTwoBalancersAndTheirFaults(t *testing.T) {
	testenv.Slow(t)
	p := newPicture(t)
	first := p.nodes[0]
	p.fault("a node is killed", service, nodeGone, func(t *testing.T) {
		first.run.kill()
		holds, _ := p.holder()
		holds.sees("n2", "n3")
	})
	first.start(p)
	p.whole()

	p.fault("a node freezes", service, nodeSilent, func(t *testing.T) {
		first.run.signal(syscall.SIGSTOP)
		holds, _ := p.holder()
		holds.sees("n2", "n3")
	})
	first.run.signal(syscall.SIGCONT)
	p.whole()

	p.fault("the active HAProxy is killed", service, haproxyGone, func(t *testing.T) {
		holds, other := p.holder()
		holds.haproxy.kill()
		p.moves(t, holds, other)
		t.Cleanup(holds.balance)
	})
	p.whole()

	p.fault("the active balancer is cut off", service, balancerGone, func(t *testing.T) {
		holds, other := p.holder()
		holds.cut()
		eventually(t, func() error { return onThe(other) }) // who is cut off can't be told, and holds it, too
		t.Cleanup(holds.mend)
	})
	p.whole()

	rolling := func(t *testing.T) {
		for _, n := range p.nodes {
			n.run.signal(syscall.SIGTERM)
			if status := n.run.ended(); status != 0 {
				t.Errorf("%s ended with status %d", n.name, status)
			}
			n.start(p)
		}
	}
	p.fault("rolling restart of all nodes", service, 0, rolling)
	p.whole()

	p.protocols()

	on := p.balancers[0]
	on.run("nginx", "-g", "daemon off;", "-c",
		p.gen("nginx", "--nodes", p.addresses(":8080"), "--listen", on.address+":8081"))
	behindNginx := "http://" + on.address + ":8081"
	eventually(t, func() error {
		_, _, err := p.callers.get(behindNginx + "/readyz")
		return err
	})
	p.fault("rolling restart behind nginx", behindNginx, 0, rolling)

	p.ledger.unique(t, 5000)
	t.Logf("what callers saw who retry once:\n\n"+
		"| fault | calls | asked twice | failed | longest call | longest silence |\n|---|---|---|---|---|---|\n%s\n",
		strings.Join(p.table, "\n"))
}

// moves waits until the VIP is on the other balancer alone.
func (p *picture) moves(t *testing.T, from, to *balancer) {
	t.Helper()
	eventually(t, func() error {
		if from.has(vip) {
			return errors.New(from.name + " still has the VIP")
		}
		return onThe(to)
	})
}

func onThe(b *balancer) error {
	if !b.has(vip) {
		return errors.New(b.name + " has not got the VIP")
	}
	return nil
}

// addresses are those of all nodes, at a port.
func (p *picture) addresses(port string) string {
	var all []string
	for _, n := range p.nodes {
		all = append(all, n.address+port)
	}
	return strings.Join(all, ",")
}

// protocols has gRPC and Redis clients come to the VIP.
func (p *picture) protocols() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := grpc.NewClient("passthrough:///"+vip+":9090", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return p.callers.dial(ctx, "tcp", address)
		}))
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close()
	for range 6 { // every node twice
		answer, err := firnv1.NewFirnClient(conn).Next(ctx, &firnv1.NextRequest{})
		if err != nil {
			p.t.Fatalf("gRPC at the VIP: %v", err)
		}
		p.ledger.add([]int64{answer.GetId()})
	}
	stream, err := firnv1.NewFirnClient(conn).Stream(ctx, &firnv1.StreamRequest{BatchSize: 10, Total: 1000})
	for got := 0; got < 1000; {
		if err != nil {
			p.t.Fatalf("a gRPC stream at the VIP, after %d IDs: %v", got, err)
		}
		var batch *firnv1.StreamResponse
		batch, err = stream.Recv()
		got += len(batch.GetIds())
		p.ledger.add(batch.GetIds())
	}

	redis, err := p.callers.dial(ctx, "tcp", vip+":6379")
	if err != nil {
		p.t.Fatal(err)
	}
	defer redis.Close()
	_ = redis.SetDeadline(time.Now().Add(patience))
	if _, err := redis.Write([]byte("*2\r\n$4\r\nINCR\r\n$7\r\ndefault\r\n")); err != nil {
		p.t.Fatal(err)
	}
	var id int64
	if _, err := fmt.Fscanf(redis, ":%d\r\n", &id); err != nil {
		p.t.Fatalf("INCR at the VIP: %v", err)
	}
	p.ledger.add([]int64{id})
}
