package main

import (
	"errors"
	"fmt"

	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/node"
	"github.com/firn-id/firn/store/quorum"
	"github.com/spf13/cobra"
)

const serveHelp = `Serve joins a cluster as one node and serves IDs over HTTP:

  POST /api/v1/id?ids=string   {"id":"1234","id_str":"1234"}
  POST /api/v1/id              {"id":1234,"id_str":"1234"}
  POST /api/v1/ids?count=100   1 to 100000 IDs, in ascending order
  GET  /api/v1/ids/{id}        what an ID says: its time, node and sequence
  GET  /api/v1/times/{time}    the first and the last ID of a time
  GET  /livez, /readyz         alive; ready to give IDs (else status 503)
  GET  /docs/                  all calls, and a page to try them

--grpc-addr adds gRPC: firn.v1.Firn and firn.v1.Admin, with health and
reflection. --redis-addr adds the Redis protocol: FIRN.ID default. INCR default
works, too.

In languages whose numbers are doubles, such as JavaScript, numbers in JSON and
INCR lose digits, so that different IDs become one: ask for text there, or use
--layout javascript.

Without flags the node is a quorum of one, with its data in ./firn-data.

With --quorum three machines (or five) keep the data together, and the cluster
survives the loss of one (or two). Give the same list to every node; a node that
is not in it keeps no data. A machine finds its own address in the list; if it
can't, as with several nodes on one machine, name it with --quorum-addr.
Machines need only this one port, and encrypt all traffic with a shared key:
firn quorum key makes one.

With --store any number of nodes share your etcd, ZooKeeper or PostgreSQL.
--etcd is a short form.

Each node takes a node ID of its own. All nodes must have the same layout and
epoch, those of the default sequencer. Every other sequencer has its own layout;
a node attaches to it (takes a node ID there) when a caller asks for one of its
IDs.

Anyone who can reach the node can take IDs. Users of this machine can look at
the cluster on --admin-addr, and at its dashboard there, /ui/. Only root and the
user who started the node can change the cluster (firn sequencer): firn commands
find the node's secret in a file that only these users can read. With --tokens,
a file of tokens says who may do what instead.

An address is host:port, unix:PATH (a Unix socket), or systemd:NAME (the socket
that systemd passes under this name).

Every flag can also be an environment variable (FIRN_HTTP_ADDR for --http-addr)
or a key (http-addr) of the YAML file that --config names. A flag overrides a
variable, and a variable overrides the file. firn ignores empty variables. It
ignores variables that begin with FIRN_ and that no command reads, too, with a
warning unless Kubernetes has set them for a service. An unknown key in the file
is an error.

SIGTERM and SIGINT stop the node, and no caller sees an error: the node reports
that it is not ready, serves on for the drain delay, finishes its calls, and
returns its node ID. A second signal ends it at once.

Exit statuses: 0 stopped by a signal; 1 failure; 2 a crash; 3 no node ID is
free, or this machine's clock is wrong (with --wait, the node waits instead); 4
an operator expelled the node; 78 wrong configuration, or a copy of a data
directory. Let a supervisor restart the node after all but 0, 4 and 78.`

const serveExamples = `  firn serve
  firn serve --data-dir /var/lib/firn --http-addr 127.0.0.1:8080
  firn serve --quorum ids-1:7420,ids-2:7420,ids-3:7420 --quorum-key-file firn.key
  firn serve --etcd 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379 --wait
  firn serve --store postgres://firn@db:5432/ids --postgres-password-file password
  firn serve --store zookeeper://zk-1:2181,zk-2:2181,zk-3:2181/firn
  firn serve --etcd https://etcd:2379 --etcd-ca ca.pem --etcd-cert firn.pem --etcd-key firn.key
  firn serve --grpc-addr :9090
  firn serve --http-addr unix:/run/firn/firn.sock --socket-mode 0660
  firn serve --layout twitter --datacenter 11
  firn serve --etcd 10.1.0.1:2379 --region 0/8
  firn serve --etcd 10.0.0.1:2379 --no-auto-attach
  FIRN_LOG_FORMAT=json firn serve --config /etc/firn.yaml`

func (p *program) serveCommand() *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:     "serve",
		Short:   "Run a node, which serves IDs over HTTP, gRPC and Redis",
		Long:    serveHelp,
		Example: serveExamples,
		Args:    noArguments,
	}
	flags := c.Flags()
	o.add(c, flags)
	c.SetUsageFunc(serveUsage)
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := p.configure(&o, flags)
		if err != nil {
			return err
		}
		for _, w := range append(s.warnings, p.unknownVariables()...) {
			s.Logger.Warn(w.About+": "+w.Found, "do", w.Do)
		}
		return explain(s.node.Serve(untilSignal(c.Context())))
	}
	return c
}

// explain says which flags matter to an error that ends a node, or a demo.
func explain(err error) error {
	setting, ok := errors.AsType[*node.SettingError](err)
	switch {
	case ok && setting.Setting == "data-dir":
		return fmt.Errorf("%w; --data-dir names the directory, --store a store elsewhere", err)
	case ok && setting.Setting == "quorum-addr": // it stays wrong
		return usagef("%w; --quorum-addr names it", err)
	case ok:
		return fmt.Errorf("%w; --%s sets another address", err, setting.Setting)
	case errors.As(err, new(*peer.RegionError)): // it stays wrong
		return usagef("%w; --region names it", err)
	case errors.As(err, new(*quorum.PlaceError)): // it stays a copy, and says what to do
		return usageError{err}
	case errors.Is(err, peer.ErrSequencerExists):
		return fmt.Errorf("%w; --layout and --epoch must be those of the cluster's first start", err)
	case node.NoNodeID(err):
		return fmt.Errorf("%w; --wait waits", err)
	default:
		return err
	}
}
