package etcdserver

import (
	"net/url"
	"sync"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"google.golang.org/grpc"
)

// segment is the size of the log's files in bytes. etcd allocates two of them in
// advance: with its own default the first start would take 123 MB.
const segment = 4 << 20

// smallSegments makes etcd write its log in segments of that size.
var smallSegments = sync.OnceFunc(func() { wal.SegmentSizeBytes = segment })

// settings returns the configuration of etcd.
func (s *Server) settings() *embed.Config {
	c := embed.NewConfig()
	c.Dir = s.dir.Path
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(s.log.zap())
	c.ListenClientUrls = []url.URL{{Scheme: "unix", Path: s.socket.path}}
	c.EnableGRPCGateway = false
	c.MaxConcurrentStreams = maxCalls
	c.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.WaitForHandlers(true)} // when they are stopped
	c.ServiceRegister = s.calls.add
	if s.config.Peers == nil {
		without(c)
	} else {
		s.config.Peers.among(c, s.socket)
	}

	// What keeps the directory small: a snapshot of the log every so many writes,
	// after which older segments can go; old revisions dropped every five
	// minutes, whose room in the database is used again; and a database with
	// much unused room is rewritten at the next start.
	c.SnapshotCount, c.SnapshotCatchUpEntries = 10_000, 1_000
	c.MaxSnapFiles, c.MaxWalFiles = 2, 2
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModeRevision, "1000"
	c.BootstrapDefragThresholdMegabytes = 64
	return c
}

// maxCalls is how many calls a connection carries at a time; others wait for their turn. gRPC stops reading a
// connection at which it has more than 100 frames to react to, so with hundreds of calls at once both sides could wait
// for each other with full sockets (https://github.com/grpc/grpc-go/issues/9330).
const maxCalls = 64

// without sets what is different for a server without others.
func without(c *embed.Config) {
	c.Name = "firn"
	// Nothing listens for others. The address for them is part of the server's identity; nobody connects to it.
	c.ListenPeerUrls, c.AdvertisePeerUrls = nil, []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.AdvertiseClientUrls = c.ListenClientUrls
	c.InitialCluster = c.InitialClusterFromName(c.Name)

	// It elects itself: short ticks only make it ready sooner
	// and allow sessions of one second.
	c.TickMs, c.ElectionMs = 10, 100
}

// among sets what is different for one of several servers. Connections from others come through the socket for them.
func (p *Peers) among(c *embed.Config, socket socket) {
	c.Name = p.Self
	c.ListenPeerUrls = []url.URL{{Scheme: "unix", Host: socket.peers()}}
	c.ListenClientUrls = append(c.ListenClientUrls, url.URL{Scheme: "unix", Path: socket.limited()})
	c.GRPCAdditionalServerOptions = append(c.GRPCAdditionalServerOptions, limit{socket.path, p.May}.options()...)
	c.HostWhitelist = map[string]struct{}{" ": {}} // no request has it: nothing but gRPC is answered
	c.AdvertisePeerUrls = types.MustNewURLs([]string{URL(p.Self)})
	c.AdvertiseClientUrls = c.AdvertisePeerUrls
	c.InitialCluster = ""
	for i, address := range p.All {
		if i > 0 {
			c.InitialCluster += ","
		}
		c.InitialCluster += address + "=" + URL(address)
	}
	c.InitialClusterToken = p.Cluster
	if p.Cluster == "" {
		c.ClusterState = embed.ClusterStateFlagExisting
	}
	c.PeerTLSInfo = transport.TLSInfo{
		CertFile: p.CertFile, KeyFile: p.KeyFile, TrustedCAFile: p.CAFile, ServerName: p.ServerName,
	}
	c.TlsMinVersion = "TLS1.3"
	c.TickMs, c.ElectionMs = 100, 1000
	c.MaxLearners = maxLearners
	// Package quorum sees to it that a change of the members leaves a majority. etcd's own check takes a learner for a
	// voter that does not answer, so that with one of three lost it would let none in.
	c.StrictReconfigCheck = false
}

// maxLearners is how many servers may catch up at a time: one becomes five.
const maxLearners = 4
