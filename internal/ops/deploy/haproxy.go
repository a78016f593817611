package deploy

import (
	"time"

	"github.com/firn-id/firn/internal/base/clusterid"
	"github.com/firn-id/firn/internal/core/cluster"
)

// HAProxy is a load balancer, /etc/haproxy/haproxy.cfg.
type HAProxy struct {
	Nodes []string // where nodes serve HTTP: host:port of each
	// GRPCNodes and RedisNodes are where the same nodes, in the same order, serve those. None is none.
	GRPCNodes, RedisNodes []string

	Listen, GRPCListen, RedisListen string // for callers
	StatusListen                    string // for this machine: whether it works, and figures

	Cluster   string // the cluster ID that nodes must have; empty: any
	Sequencer string // whose IDs nodes must be ready to give; empty: the default one's
	Resolve   bool   // look the nodes' names up again in DNS while it runs

	Balance string // how to choose: one of Balances
	// how often nodes are asked whether they are ready, and for how long they may think
	CheckInterval, CheckTimeout time.Duration
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
		Balance: "roundrobin", CheckInterval: 200 * time.Millisecond, CheckTimeout: 500 * time.Millisecond,
		Fall: 2, Rise: 1,
		Timeout: time.Second, Retries: 3, MaxConnections: 20_000,
	}
}

// DefaultStatus is where HAProxy tells keepalived, on the same machine, that it works.
const DefaultStatus = "127.0.0.1:8404"

// Files is how many files HAProxy opens at most: two for each connection of a caller, and some for its listeners,
// checks and itself.
func (h HAProxy) Files() int64 { return 2*h.MaxConnections + 300 }

// Text is the configuration.
func (h HAProxy) Text(o Origin) (string, error) {
	var c checks
	c.nodes(h.Nodes)
	c.listen("status-listen", h.StatusListen)
	c.listen("listen", h.Listen)
	h.also(&c, "grpc", h.GRPCNodes, h.GRPCListen)
	h.also(&c, "redis", h.RedisNodes, h.RedisListen)
	if h.Cluster != "" {
		err := clusterid.Validate(h.Cluster)
		c.that(err == nil, "cluster", "%v", err)
	}
	if h.Sequencer != "" {
		err := cluster.CheckName(h.Sequencer)
		c.that(err == nil, "sequencer", "%v", err)
	}
	c.balance(h.Balance, Balances)
	c.duration("check-interval", h.CheckInterval, 10*time.Millisecond)
	c.duration("check-timeout", h.CheckTimeout, 10*time.Millisecond)
	c.number("fall", h.Fall, 1, 100)
	c.number("rise", h.Rise, 1, 100)
	c.duration("timeout", h.Timeout, 10*time.Millisecond)
	c.number("retries", h.Retries, 0, 100)
	c.number("max-connections", h.MaxConnections, 1, 1_000_000)
	return c.text(o, "haproxy.cfg", h)
}

// also checks where the nodes serve a further protocol, if they do.
func (h HAProxy) also(c *checks, protocol string, nodes []string, listen string) {
	if len(nodes) == 0 {
		return
	}
	c.addresses(protocol+"-nodes", nodes)
	c.that(len(nodes) == len(h.Nodes), protocol+"-nodes",
		"there are %d of them and %d nodes; want one of each node, in the order of nodes", len(nodes), len(h.Nodes))
	c.listen(protocol+"-listen", listen)
}
