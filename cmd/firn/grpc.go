package main

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/internal/server/grpcapi"
)

// grpcFront is for gRPC clients; nil, if there is no address for them.
func (n *node) grpcFront() (*front, error) {
	if n.grpcAddr == noAddress {
		return nil, nil
	}
	listener, err := n.listenOn(grpcDoor, "grpc-addr", n.grpcAddr)
	if err != nil {
		return nil, err
	}
	options := n.traces.served()
	if n.tls != nil {
		options = append(options, grpc.Creds(shakenHands{credentials.NewTLS(n.tls.Clone()), n}))
	}
	s := grpcapi.New(n.service, &auth.Policy{Tokens: n.tokens}, options...)
	return &front{
		name: grpcDoor.log, listener: listener, serve: s.Serve, shutdown: s.Shutdown,
		close: func() {}, // Shutdown has cut off what took too long
	}, nil
}
