package node

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/internal/server/grpcapi"
)

// grpcServer is for gRPC clients; nil, if there is no address for them.
func (n *Node) grpcServer() (*protocolServer, error) {
	if n.config.GRPCAddr == "" {
		return nil, nil
	}
	listener, err := n.listenOn(GRPC, n.config.GRPCAddr)
	if err != nil {
		return nil, err
	}
	options := n.traces.served()
	if n.tls != nil {
		options = append(options, grpc.Creds(shakenHands{credentials.NewTLS(n.tls.Clone()), n}))
	}
	s := grpcapi.New(n.service, &auth.Policy{Tokens: n.tokens}, options...)
	return &protocolServer{
		Address: GRPC, listener: listener, serve: s.Serve, shutdown: s.Shutdown,
		close: func() {}, // Shutdown has cut off what took too long
	}, nil
}
