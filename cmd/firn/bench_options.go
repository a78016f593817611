package main

import (
	"net/url"
	"time"

	"github.com/firn-id/firn/internal/ops/load"
	"github.com/firn-id/firn/internal/service/calls"
)

// benchOptions are the flags of firn bench.
type benchOptions struct {
	servers     []string
	access      serverFlags
	protocol    load.Protocol
	sequencer   string
	scattered   bool
	concurrency int64
	batch       int64
	duration    time.Duration
	count       int64
	rate        float64
	against     string // a command; empty: none
	json        bool
	clusters    load.Clusters         // of the servers
	asked       calls.StatusSequencer // what the first server says of the sequencer, with against
}

// mostConnections is as many as a process has files at the most, mostly.
const mostConnections = 10_000

// plan checks what can be checked without asking anybody.
func (o *benchOptions) plan() (load.Plan, error) {
	var none load.Plan
	if len(o.servers) == 0 {
		o.servers = []string{o.protocol.Default}
	}
	token, config, err := o.access.Load()
	if err != nil {
		return none, usageError{err}
	}
	var servers []*url.URL
	for _, text := range o.servers {
		u, err := o.protocol.Parse(text)
		if err != nil {
			return none, usagef("--server: %w", err)
		}
		if config != nil && !o.protocol.Secure(u) {
			return none,
				usagef("--server: %q is without TLS, and --ca, --cert and --key are for TLS; see firn bench --help",
					text)
		}
		servers = append(servers, u)
	}
	switch {
	case o.batch > int64(o.protocol.Most):
		return none, usagef("--batch: %d IDs at once; want at most %d by %s", o.batch, o.protocol.Most, o.protocol.Name)
	case o.concurrency < int64(len(servers)):
		return none, usagef("--concurrency: %d connections to %d servers; want at least one to each",
			o.concurrency, len(servers))
	case o.concurrency > mostConnections:
		return none, usagef("--concurrency: %d connections; want at most %d", o.concurrency, mostConnections)
	}
	access := load.Access{Sequencer: o.sequencer, Token: token, TLS: config, Clusters: &o.clusters}
	return load.Plan{
		Connect: func(i int) (load.Connection, error) {
			return o.protocol.Connect(servers[i%len(servers)], access)
		},
		Connections: int(o.concurrency), Batch: int(o.batch), Scattered: o.scattered, Count: o.count,
		Duration: o.duration, Rate: o.rate,
	}, nil
}
