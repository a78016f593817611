package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/deploy"
)

const genHAProxyHelp = `Haproxy prints /etc/haproxy/haproxy.cfg: callers come to one address, and each of
their requests goes to a node that is ready. Nodes are asked at /readyz; one that
fails is not used, and what it did not answer another one is asked. With
--grpc-nodes and --redis-nodes it balances those protocols, too.`

const genHAProxyExamples = `  firn gen haproxy --nodes 10.0.0.1:8080,10.0.0.2:8080,10.0.0.3:8080
  firn gen haproxy --nodes 10.0.0.1:8080,10.0.0.2:8080 \
    --grpc-nodes 10.0.0.1:9090,10.0.0.2:9090 --output /etc/haproxy/haproxy.cfg`

func (p *program) genHAProxy() *cobra.Command {
	h := deploy.NewHAProxy()
	flags := func(c *cobra.Command) {
		fs := c.Flags()
		addNodes(fs, &h.Nodes, "nodes", "where the nodes serve HTTP: host:port, with commas between")
		addNodes(fs, &h.GRPCNodes, "grpc-nodes", "where the same nodes, in the same order, serve gRPC")
		addNodes(fs, &h.RedisNodes, "redis-nodes", "where the same nodes, in the same order, serve Redis clients")
		addText(fs, &h.Listen, "listen", "address", "where callers come")
		addText(fs, &h.GRPCListen, "grpc-listen", "address", "where gRPC callers come")
		addText(fs, &h.RedisListen, "redis-listen", "address", "where Redis clients come")
		addText(fs, &h.StatusListen, "status-listen", "address", "where this machine sees how HAProxy is: /up, /stats, /metrics")
		addText(fs, &h.Balance, "balance", "algorithm", "how to choose a node: "+words(deploy.Balances))
		completes(c, "balance", deploy.Balances)
		addDuration(fs, &h.CheckInterval, "check-interval", h.CheckInterval.String(), 0, "how often each node is asked whether it is ready")
		addDuration(fs, &h.CheckTimeout, "check-timeout", h.CheckTimeout.String(), 0, "how long it may think about that")
		addNumber(fs, &h.Fall, "fall", decimal(h.Fall), 0, "after so many checks that failed a node is out")
		addNumber(fs, &h.Rise, "rise", decimal(h.Rise), 0, "after so many that did not it is in again")
		addDuration(fs, &h.Timeout, "timeout", h.Timeout.String(), 0, "how long a node may take to answer, before another is asked")
		addNumber(fs, &h.Retries, "retries", decimal(h.Retries), 0, "how many others are asked")
		addNumber(fs, &h.MaxConnections, "max-connections", decimal(h.MaxConnections), 0, "how many connections callers may have at a time, if HAProxy\nmay open two files for each; else it takes fewer")
	}
	return p.genKind("haproxy", "Print a load balancer: HAProxy", genHAProxyHelp, genHAProxyExamples, flags,
		func(o deploy.Origin) (string, error) { return h.Text(o) })
}

const genNginxHelp = `Nginx prints /etc/nginx/nginx.conf, a load balancer for HTTP and gRPC. It does not
check nodes as HAProxy does, but learns from callers' requests which ones are
gone, and asks another one then.`

const genNginxExamples = `  firn gen nginx --nodes 10.0.0.1:8080,10.0.0.2:8080,10.0.0.3:8080
  firn gen nginx --nodes 10.0.0.1:8080 --listen 10.0.0.9:80 --user nginx`

func (p *program) genNginx() *cobra.Command {
	n := deploy.NewNginx()
	flags := func(c *cobra.Command) {
		fs := c.Flags()
		addNodes(fs, &n.Nodes, "nodes", "where the nodes serve HTTP: host:port, with commas between")
		addNodes(fs, &n.GRPCNodes, "grpc-nodes", "where they serve gRPC")
		addText(fs, &n.Listen, "listen", "address", "where callers come")
		addText(fs, &n.GRPCListen, "grpc-listen", "address", "where gRPC callers come")
		addText(fs, &n.User, "user", "name", "whom its workers run as: www-data at Debian, elsewhere nginx")
		addText(fs, &n.Balance, "balance", "algorithm", "how to choose a node: "+words(deploy.NginxBalances))
		completes(c, "balance", deploy.NginxBalances)
		addDuration(fs, &n.Timeout, "timeout", n.Timeout.String(), 0, "how long a node may take to answer, before another is asked")
		addNumber(fs, &n.Retries, "retries", decimal(n.Retries), 0, "how many others are asked")
		addNumber(fs, &n.MaxConnections, "max-connections", decimal(n.MaxConnections), 0, "how many connections each worker may have, to callers and nodes,\nif it may open so many files; else it takes fewer")
	}
	return p.genKind("nginx", "Print a load balancer: nginx", genNginxHelp, genNginxExamples, flags,
		func(o deploy.Origin) (string, error) { return n.Text(o) })
}

const genKeepalivedHelp = `Keepalived prints /etc/keepalived/keepalived.conf for two balancers with HAProxy:
one of them holds the address that callers use, and the other one takes it over
when that machine or its HAProxy is gone.

By default they find each other by multicast; where a network has none, --source
and --peers say who they are.`

const genKeepalivedExamples = `  firn gen keepalived --vip 10.0.0.100/24 --interface eth0
  firn gen keepalived --vip 10.0.0.100/24 --source 10.0.0.8 --peers 10.0.0.9`

func (p *program) genKeepalived() *cobra.Command {
	k := deploy.NewKeepalived()
	flags := func(c *cobra.Command) {
		fs := c.Flags()
		addText(fs, &k.VIP, "vip", "address", "the address that callers use, with its prefix: 10.0.0.100/24")
		addText(fs, &k.Interface, "interface", "name", "the network interface that it is put on")
		addNumber(fs, &k.Router, "router", decimal(k.Router), 0, "the number of the VRRP router, 1 to 255; each VIP of a network has its own")
		addNumber(fs, &k.Priority, "priority", decimal(k.Priority), 0, "1 to 254; who has more is the first, when both start")
		addDuration(fs, &k.Advert, "advert", k.Advert.String(), 0, "how often the holder says that it is there; when three are missed, the other takes over")
		addText(fs, &k.Check, "check", "address", "HAProxy's --status-listen")
		addDuration(fs, &k.CheckInterval, "check-interval", k.CheckInterval.String(), 0, "how often HAProxy is asked, in whole seconds")
		addNumber(fs, &k.Fall, "fall", decimal(k.Fall), 0, "after so many times without an answer the other takes over")
		addText(fs, &k.Source, "source", "address", "this balancer's address, for --peers")
		addNodes(fs, &k.Peers, "peers", "the other balancers' addresses, for networks without multicast")
	}
	return p.genKind("keepalived", "Print who holds a VIP: keepalived", genKeepalivedHelp, genKeepalivedExamples, flags,
		func(o deploy.Origin) (string, error) { return k.Text(o) })
}
