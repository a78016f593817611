package main

import (
	"crypto/tls"

	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/internal/server/respapi"
)

// redisFront is for Redis clients; nil, if there is no address for them.
func (n *node) redisFront() (*front, error) {
	if n.redisAddr == noAddress {
		return nil, nil
	}
	listener, err := n.listenOn(redisDoor, "redis-addr", n.redisAddr)
	if err != nil {
		return nil, err
	}
	if n.tls != nil {
		listener = handshakes{tls.NewListener(listener, n.tls), n}
	}
	s := respapi.New(n.service, &auth.Policy{Tokens: n.tokens}, n.log)
	return &front{name: redisDoor.log, listener: listener, serve: s.Serve, shutdown: s.Shutdown, close: s.Close}, nil
}
