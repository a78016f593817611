package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/deploy"
	"github.com/firn-id/firn/internal/ops/setting"
)

const genNginxHelp = `Nginx prints /etc/nginx/nginx.conf, a load balancer for HTTP and gRPC. Unlike
HAProxy, nginx does not check nodes: it notices a lost node by failing requests,
and repeats them at another.`

const genNginxExamples = `  firn gen nginx --nodes 10.0.0.1:8080,10.0.0.2:8080,10.0.0.3:8080
  firn gen nginx --nodes 10.0.0.1:8080 --listen 10.0.0.9:80 --user nginx`

func (p *program) genNginx() *cobra.Command {
	n := deploy.NewNginx()
	flags := func(c *cobra.Command) {
		fs := c.Flags()
		setting.List(fs, &n.Nodes, "nodes", "the nodes' addresses for HTTP: host:port, separated by commas")
		setting.List(fs, &n.GRPCNodes, "grpc-nodes", "the nodes' addresses for gRPC")
		setting.Text(fs, &n.Listen, "listen", "address", "where callers connect")
		setting.Text(fs, &n.GRPCListen, "grpc-listen", "address", "where gRPC callers connect")
		setting.Text(fs, &n.User, "user", "name", "the user of nginx's workers: www-data on Debian, nginx elsewhere")
		setting.Text(fs, &n.Balance, "balance", "algorithm", "how to choose a node: "+words(deploy.NginxBalances))
		completes(c, "balance", deploy.NginxBalances)
		setting.Duration(fs, &n.Timeout, "timeout", n.Timeout.String(), 0,
			"how long to wait for a node's answer before asking another")
		setting.Number(fs, &n.Retries, "retries", decimal(n.Retries), 0, "how many other nodes to ask")
		setting.Number(fs, &n.MaxConnections, "max-connections", decimal(n.MaxConnections), 0,
			"how many connections each worker may have, to callers and nodes;\nfewer if it may not open as many files")
	}
	return p.genKind("nginx", "Print an nginx configuration (balances load over nodes)", genNginxHelp,
		genNginxExamples, flags,
		func(o deploy.Origin) (string, error) { return n.Text(o) })
}
