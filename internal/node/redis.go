package node

import (
	"crypto/tls"

	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/internal/server/respapi"
)

// redisServer is for Redis clients; nil, if there is no address for them.
func (n *Node) redisServer() (*protocolServer, error) {
	if n.config.RedisAddr == "" {
		return nil, nil
	}
	listener, err := n.listenOn(Redis, n.config.RedisAddr)
	if err != nil {
		return nil, err
	}
	if n.tls != nil {
		listener = handshakes{tls.NewListener(listener, n.tls), n}
	}
	s := respapi.New(n.service, &auth.Policy{Tokens: n.tokens}, n.log)
	return &protocolServer{Address: Redis, listener: listener, serve: s.Serve, shutdown: s.Shutdown, close: s.Close}, nil
}
