package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/deploy"
	"github.com/firn-id/firn/internal/setting"
)

const genNginxHelp = `Nginx prints /etc/nginx/nginx.conf, a load balancer for HTTP and gRPC. It does not
check nodes as HAProxy does, but learns from callers' requests which ones are
gone, and asks another one then.`

const genNginxExamples = `  firn gen nginx --nodes 10.0.0.1:8080,10.0.0.2:8080,10.0.0.3:8080
  firn gen nginx --nodes 10.0.0.1:8080 --listen 10.0.0.9:80 --user nginx`

func (p *program) genNginx() *cobra.Command {
	n := deploy.NewNginx()
	flags := func(c *cobra.Command) {
		fs := c.Flags()
		setting.List(fs, &n.Nodes, "nodes", "where the nodes serve HTTP: host:port, with commas between")
		setting.List(fs, &n.GRPCNodes, "grpc-nodes", "where they serve gRPC")
		setting.Text(fs, &n.Listen, "listen", "address", "where callers come")
		setting.Text(fs, &n.GRPCListen, "grpc-listen", "address", "where gRPC callers come")
		setting.Text(fs, &n.User, "user", "name", "whom its workers run as: www-data at Debian, elsewhere nginx")
		setting.Text(fs, &n.Balance, "balance", "algorithm", "how to choose a node: "+words(deploy.NginxBalances))
		completes(c, "balance", deploy.NginxBalances)
		setting.Duration(fs, &n.Timeout, "timeout", n.Timeout.String(), 0, "how long a node may take to answer, before another is asked")
		setting.Number(fs, &n.Retries, "retries", decimal(n.Retries), 0, "how many others are asked")
		setting.Number(fs, &n.MaxConnections, "max-connections", decimal(n.MaxConnections), 0, "how many connections each worker may have, to callers and nodes,\nif it may open so many files; else it takes fewer")
	}
	return p.genKind("nginx", "Print a load balancer: nginx", genNginxHelp, genNginxExamples, flags,
		func(o deploy.Origin) (string, error) { return n.Text(o) })
}
