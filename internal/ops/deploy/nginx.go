package deploy

import (
	"strings"
	"time"
)

// Nginx is a load balancer, /etc/nginx/nginx.conf, that learns from requests which nodes are gone.
type Nginx struct {
	Nodes     []string // where nodes serve HTTP: host:port of each
	GRPCNodes []string // where nodes serve gRPC, if they do

	Listen, GRPCListen string // for callers

	User           string        // whom its workers run as: www-data at Debian, nginx elsewhere
	Balance        string        // how to choose: one of NginxBalances
	Timeout        time.Duration // how long a node may take to answer, before another one is asked
	Retries        int64         // how many others are asked
	MaxConnections int64         // of callers and to nodes, for each worker
}

// NginxBalances are the ways to choose a node.
var NginxBalances = []string{"round_robin", "least_conn"}

// NewNginx is a balancer without nodes yet.
func NewNginx() Nginx {
	return Nginx{
		Listen: ":8080", GRPCListen: ":9090", User: "www-data", Balance: "round_robin",
		Timeout: time.Second, Retries: 3, MaxConnections: 10_000,
	}
}

// Files is how many files a worker opens at most: one for each connection, and some for its listeners and itself.
func (n Nginx) Files() int64 { return n.MaxConnections + 100 }

// Tries is how many nodes are asked at most.
func (n Nginx) Tries() int64 { return n.Retries + 1 }

// Text is the configuration.
func (n Nginx) Text(o Origin) (string, error) {
	var c checks
	c.nodes(n.Nodes)
	c.addresses("grpc-nodes", n.GRPCNodes)
	c.listen("listen", n.Listen)
	if len(n.GRPCNodes) > 0 {
		c.listen("grpc-listen", n.GRPCListen)
	}
	c.user(n.User)
	c.balance(n.Balance, NginxBalances)
	c.duration("timeout", n.Timeout, 10*time.Millisecond)
	c.number("retries", n.Retries, 0, 100)
	c.number("max-connections", n.MaxConnections, 16, 1_000_000)
	// For nginx a port alone stands for all addresses.
	n.Listen, n.GRPCListen = strings.TrimPrefix(n.Listen, ":"), strings.TrimPrefix(n.GRPCListen, ":")
	return c.text(o, "nginx.conf", n)
}
