package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/deploy"
	"github.com/firn-id/firn/internal/ops/setting"
)

const genHAProxyHelp = `Haproxy prints /etc/haproxy/haproxy.cfg. Callers use one address; HAProxy sends
each request to a node that is ready (/readyz), and repeats it at another node
if the first does not answer. With --grpc-nodes and --redis-nodes it balances
those protocols, too.`

const genHAProxyExamples = `  firn gen haproxy --nodes 10.0.0.1:8080,10.0.0.2:8080,10.0.0.3:8080
  firn gen haproxy --nodes 10.0.0.1:8080,10.0.0.2:8080 \
    --grpc-nodes 10.0.0.1:9090,10.0.0.2:9090 --output /etc/haproxy/haproxy.cfg`

func (p *program) genHAProxy() *cobra.Command {
	h := deploy.NewHAProxy()
	flags := func(c *cobra.Command) {
		fs := c.Flags()
		setting.List(fs, &h.Nodes, "nodes", "the nodes' addresses for HTTP: host:port, separated by commas")
		setting.List(fs, &h.GRPCNodes, "grpc-nodes", "the same nodes' addresses for gRPC, in the same order")
		setting.List(fs, &h.RedisNodes, "redis-nodes", "the same nodes' addresses for Redis clients, in the same order")
		setting.Text(fs, &h.Listen, "listen", "address", "where callers connect")
		setting.Text(fs, &h.GRPCListen, "grpc-listen", "address", "where gRPC callers connect")
		setting.Text(fs, &h.RedisListen, "redis-listen", "address", "where Redis clients connect")
		setting.Text(fs, &h.StatusListen, "status-listen", "address",
			"where HAProxy serves /up, /stats and /metrics, for this machine")
		setting.Text(fs, &h.Cluster, "cluster", "id",
			"send requests only to nodes of this cluster ID, as firn cluster\nstatus prints it (default: any)")
		setting.Text(fs, &h.Sequencer, "sequencer", "name",
			"send requests only to nodes that are ready to give IDs of this\n"+
				"sequencer, their own or another node's (default: default)")
		setting.Bool(fs, &h.Resolve, "resolve",
			"look up the nodes' names in DNS again while HAProxy runs, if nodes\n"+
				"get new addresses; without it, HAProxy looks names up when it\nstarts")
		setting.Text(fs, &h.Balance, "balance", "algorithm", "how to choose a node: "+words(deploy.Balances))
		completes(c, "balance", deploy.Balances)
		setting.Duration(fs, &h.CheckInterval, "check-interval", h.CheckInterval.String(), 0,
			"how often to check whether a node is ready")
		setting.Duration(fs, &h.CheckTimeout, "check-timeout", h.CheckTimeout.String(), 0,
			"how long a node may take to answer a check")
		setting.Number(fs, &h.Fall, "fall", decimal(h.Fall), 0,
			"a node gets no more requests after this many failed checks")
		setting.Number(fs, &h.Rise, "rise", decimal(h.Rise), 0,
			"a node gets requests again after this many successful checks")
		setting.Duration(fs, &h.Timeout, "timeout", h.Timeout.String(), 0,
			"how long to wait for a node's answer before asking another")
		setting.Number(fs, &h.Retries, "retries", decimal(h.Retries), 0, "how many other nodes to ask")
		setting.Number(fs, &h.MaxConnections, "max-connections", decimal(h.MaxConnections), 0,
			"how many connections callers may have; fewer if HAProxy may not\nopen two files for each")
	}
	return p.genKind("haproxy", "Print an HAProxy configuration (balances load over nodes)", genHAProxyHelp,
		genHAProxyExamples, flags,
		func(o deploy.Origin) (string, error) { return h.Text(o) })
}
