package deploy

import (
	"fmt"
	"time"
)

// HAProxy is a load balancer, /etc/haproxy/haproxy.cfg.
type HAProxy struct {
	Nodes []string // where nodes serve HTTP: host:port of each
	// GRPCNodes and RedisNodes are where the same nodes, in the same order, serve those. None is none.
	GRPCNodes, RedisNodes []string

	Listen, GRPCListen, RedisListen string // for callers
	StatusListen                    string // for this machine: whether it works, and figures

	Balance                     string        // how to choose: one of Balances
	CheckInterval, CheckTimeout time.Duration // how often nodes are asked whether they are ready, and for how long they may think
	Fall, Rise                  int64         // after so many answers a node is out, or in again
	Timeout                     time.Duration // how long a node may take to answer, before another one is asked
	Retries                     int64         // how many others are asked
	MaxConnections              int64         // of callers; fewer where HAProxy may not open two files for each
}

// Balances are the ways to choose a node.
var Balances = []string{"roundrobin", "leastconn", "random"}

// NewHAProxy is a balancer without nodes yet.
func NewHAProxy() HAProxy {
	return HAProxy{
		Listen: ":8080", GRPCListen: ":9090", RedisListen: ":6379", StatusListen: DefaultStatus,
		Balance: "roundrobin", CheckInterval: 200 * time.Millisecond, CheckTimeout: 500 * time.Millisecond, Fall: 2, Rise: 1,
		Timeout: time.Second, Retries: 3, MaxConnections: 20_000,
	}
}

// DefaultStatus is where HAProxy tells keepalived, on the same machine, that it works.
const DefaultStatus = "127.0.0.1:8404"

// Files is how many files HAProxy opens at most: two for each connection of a caller, and some for its listeners, checks
// and itself.
func (h HAProxy) Files() int64 { return 2*h.MaxConnections + 300 }

// HasNames tells whether there are nodes with a name, that has to be looked up.
func (h HAProxy) HasNames() bool {
	return hasNames(h.Nodes) || hasNames(h.GRPCNodes) || hasNames(h.RedisNodes)
}

// Text is the configuration.
func (h HAProxy) Text(o Origin) (string, error) {
	var c checks
	c.addresses("nodes", h.Nodes, 1)
	c.alsoOf("grpc-nodes", h.GRPCNodes, h.Nodes)
	c.alsoOf("redis-nodes", h.RedisNodes, h.Nodes)
	c.listen("listen", h.Listen)
	c.listen("status-listen", h.StatusListen)
	places := places{}
	places.take(&c, "status-listen", h.StatusListen)
	places.take(&c, "listen", h.Listen)
	if len(h.GRPCNodes) > 0 {
		c.listen("grpc-listen", h.GRPCListen)
		places.take(&c, "grpc-listen", h.GRPCListen)
	}
	if len(h.RedisNodes) > 0 {
		c.listen("redis-listen", h.RedisListen)
		places.take(&c, "redis-listen", h.RedisListen)
	}
	c.oneOf("balance", h.Balance, Balances)
	c.from("check-interval", h.CheckInterval, 10*time.Millisecond)
	c.from("check-timeout", h.CheckTimeout, 10*time.Millisecond)
	c.between("fall", h.Fall, 1, 100)
	c.between("rise", h.Rise, 1, 100)
	c.from("timeout", h.Timeout, 10*time.Millisecond)
	c.between("retries", h.Retries, 0, 100)
	c.between("max-connections", h.MaxConnections, 1, 1_000_000)
	if c.err != nil {
		return "", c.err
	}
	return text(o, "haproxy.cfg", h)
}

// alsoOf are further addresses of the same nodes.
func (c *checks) alsoOf(name string, list, nodes []string) {
	c.addresses(name, list, 0)
	if len(list) != 0 && len(list) != len(nodes) {
		c.that(name, fmt.Errorf("there are %d of them and %d nodes; want one of each node, in the order of nodes", len(list), len(nodes)))
	}
}

// places are where it listens already.
type places map[string]string

// take refuses a place that is taken, as far as that can be seen.
func (p places) take(c *checks, name, address string) {
	if by, taken := p[address]; taken {
		c.that(name, fmt.Errorf("%s is taken already, by %s; want another port", address, by))
	}
	p[address] = name
}
