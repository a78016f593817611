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

--grpc-addr adds gRPC: firn.v1.Firn and firn.v1.Admin, with health and reflection.
--redis-addr adds the Redis protocol: FIRN.ID default. INCR default works, too.

Where numbers are doubles, as in JavaScript, INCR and numbers in JSON lose digits, so
that different IDs become one: ask for text there, or use --layout javascript.

Without flags the node is a cluster of its own, with an etcd inside that keeps its
data in ./firn-data.

With --quorum three machines (or five) keep the data together, and the cluster goes on
without any one of them (any two). The flag names them, and is the same on every node;
a node that is none of them keeps no data. A machine finds its own address in the list;
--quorum-addr tells it where it can't, as with several nodes on one machine. All their
traffic uses that one port, and is encrypted with a key that all have: firn quorum key
makes one.

With --store any number of nodes share a store of yours instead: an etcd, a ZooKeeper or
a PostgreSQL, which they reach at the address that it gives. --etcd is a short form.

Each node takes a node ID of its own. All nodes must have the same layout and epoch,
which are those of the default sequencer. Every other sequencer has its own layout; a
node attaches to it (takes a node ID there) when a caller asks for one of its IDs.

Anyone who can reach the node can take IDs. Users of this machine can look at the
cluster on --admin-addr, whose page /ui/ shows it as it changes. Only the user who
started the node, and root, can change the cluster (firn sequencer): firn commands
find the node's secret in a file that only these users can read. With --tokens, a
file of tokens says who may do what instead.

An address is host:port, unix:PATH (a Unix socket), or systemd:NAME (the socket that
systemd passes under this name).

Every flag can also be an environment variable (FIRN_HTTP_ADDR for --http-addr) or a
key (http-addr) of the YAML file that --config names. A flag overrides a variable,
and a variable overrides the file. Empty variables are ignored; so are variables that
begin with FIRN_ and that no command of firn reads, with a warning, unless Kubernetes
has set them for a service. An unknown key in the file is an error.

SIGTERM and SIGINT stop the node, and no caller sees an error: the node reports that
it is not ready, serves on for the drain delay, finishes the calls it has, and gives
its node ID back. A second signal ends it at once.

Exit statuses: 0 stopped by a signal; 1 failure; 2 a crash; 3 no node ID is free, or
this machine's clock is wrong (--wait waits instead); 4 an operator expelled the node
from the cluster; 78 wrong configuration, or a copy of a data directory. Restart it
after all but 0, 4 and 78: what is wrong then stays wrong until somebody corrects it,
and a node that was expelled comes back when it is started.`

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
		Short:   "Give out IDs over HTTP, as a node of a cluster",
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
