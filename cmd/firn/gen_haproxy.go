package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/deploy"
	"github.com/firn-id/firn/internal/setting"
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
		setting.List(fs, &h.Nodes, "nodes", "where the nodes serve HTTP: host:port, with commas between")
		setting.List(fs, &h.GRPCNodes, "grpc-nodes", "where the same nodes, in the same order, serve gRPC")
		setting.List(fs, &h.RedisNodes, "redis-nodes", "where the same nodes, in the same order, serve Redis clients")
		setting.Text(fs, &h.Listen, "listen", "address", "where callers come")
		setting.Text(fs, &h.GRPCListen, "grpc-listen", "address", "where gRPC callers come")
		setting.Text(fs, &h.RedisListen, "redis-listen", "address", "where Redis clients come")
		setting.Text(fs, &h.StatusListen, "status-listen", "address", "where this machine sees how HAProxy is: /up, /stats, /metrics")
		setting.Text(fs, &h.Balance, "balance", "algorithm", "how to choose a node: "+words(deploy.Balances))
		completes(c, "balance", deploy.Balances)
		setting.Duration(fs, &h.CheckInterval, "check-interval", h.CheckInterval.String(), 0, "how often each node is asked whether it is ready")
		setting.Duration(fs, &h.CheckTimeout, "check-timeout", h.CheckTimeout.String(), 0, "how long it may think about that")
		setting.Number(fs, &h.Fall, "fall", decimal(h.Fall), 0, "after so many checks that failed a node is out")
		setting.Number(fs, &h.Rise, "rise", decimal(h.Rise), 0, "after so many that did not it is in again")
		setting.Duration(fs, &h.Timeout, "timeout", h.Timeout.String(), 0, "how long a node may take to answer, before another is asked")
		setting.Number(fs, &h.Retries, "retries", decimal(h.Retries), 0, "how many others are asked")
		setting.Number(fs, &h.MaxConnections, "max-connections", decimal(h.MaxConnections), 0, "how many connections callers may have at a time, if HAProxy\nmay open two files for each; else it takes fewer")
	}
	return p.genKind("haproxy", "Print a load balancer: HAProxy", genHAProxyHelp, genHAProxyExamples, flags,
		func(o deploy.Origin) (string, error) { return h.Text(o) })
}
