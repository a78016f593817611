package main

import (
	"errors"
	"fmt"

	"github.com/firn-id/firn/internal/node"
	"github.com/firn-id/firn/member"
	"github.com/spf13/cobra"
)

const serveHelp = `Serve joins a cluster as one node and gives out IDs over HTTP:

  POST /api/v1/id              {"id":1234,"id_str":"1234"}
  POST /api/v1/ids?count=100   as many, 1 to 100000, in ascending order
  GET  /api/v1/ids/{id}        what an ID says: its time, node and sequence
  GET  /livez, /readyz         alive; ready to give IDs (else status 503)
  GET  /docs/                  all calls, and a page to try them

With --grpc-addr it speaks gRPC too: firn.v1.Firn and firn.v1.Admin do the same,
with health and reflection; and with --redis-addr the Redis protocol: INCR default.

Without flags it is a cluster of its own, with an etcd inside that keeps its data
in ./firn-data. With --etcd any number of nodes share an etcd cluster, and each
takes a node ID that nobody else has. All must have the same layout and epoch:
these are the default sequencer's. Others, by name, have their own, and a node
attaches to one, that is it takes a node ID there, when it is asked for an ID of it.

Whoever reaches it can take IDs, and users of this machine can look at the cluster,
on --admin-addr; its page at /ui/ shows it as it changes. Changes (firn sequencer) are
for who has started it, and for root: firn commands find its secret in a file that no
others can read. --tokens says who may do what instead.

Every flag can also be an environment variable (FIRN_HTTP_ADDR for --http-addr)
or a key of a YAML file (http-addr) that --config names. Flags go before
variables, and variables before the file. Variables that begin with FIRN_ and are
no flags are ignored, empty ones too; in the file an unknown key is an error.

SIGTERM and SIGINT stop it without an error to anybody: it is not ready, goes on
serving for the drain delay, finishes what it was asked, and gives its node ID
back. A second signal ends it at once.

Exit statuses: 0 stopped by a signal; 1 failure; 2 a crash; 3 no node ID is free, or
this machine's clock is too far behind (--wait waits instead); 78 wrong
configuration. Start it again after all but 0 and 78: a wrong configuration stays
wrong until somebody corrects it.`

const serveExamples = `  firn serve
  firn serve --data-dir /var/lib/firn --http-addr 127.0.0.1:8080
  firn serve --etcd 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379 --wait
  firn serve --etcd https://etcd:2379 --etcd-ca ca.pem --etcd-cert firn.pem --etcd-key firn.key
  firn serve --grpc-addr :9090
  firn serve --layout twitter --datacenter 11
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
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := p.configure(&o, flags)
		if err != nil {
			return err
		}
		for _, w := range append(s.warnings, misspelled(flags, p.env)...) {
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
		return fmt.Errorf("%w; --data-dir names the directory, --etcd an etcd cluster elsewhere", err)
	case ok:
		return fmt.Errorf("%w; --%s sets another address", err, setting.Setting)
	case errors.Is(err, member.ErrSequencerExists):
		return fmt.Errorf("%w; --layout and --epoch must be those of the cluster's first start", err)
	case node.NoNodeID(err):
		return fmt.Errorf("%w; --wait waits", err)
	default:
		return err
	}
}
