package load

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/base/clusterid"
)

// grpcConnection asks over gRPC. It is safe for concurrent use: calls share the connection.
type grpcConnection struct {
	conn      *grpc.ClientConn
	firn      firnv1.FirnClient
	sequencer string
	metadata  metadata.MD
	server    string
	clusters  *Clusters
}

func dialGRPC(u *url.URL, a Access) (Connection, error) {
	security := insecure.NewCredentials()
	if a.TLS != nil {
		security = credentials.NewTLS(a.TLS.Clone())
	}
	target := "passthrough:///" + u.Host
	if u.Scheme == "unix" {
		target = u.String()
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(security))
	if err != nil {
		return nil, err
	}
	c := &grpcConnection{
		conn: conn, firn: firnv1.NewFirnClient(conn), sequencer: a.Sequencer, server: u.String(),
		clusters: a.Clusters,
	}
	if a.Token != "" {
		c.metadata = metadata.Pairs("authorization", "Bearer "+a.Token)
	}
	return c, nil
}

func (c *grpcConnection) Close() { _ = c.conn.Close() } // no call is in progress

func (c *grpcConnection) Take(ctx context.Context, ids []firn.ID) error {
	if c.metadata != nil {
		ctx = metadata.NewOutgoingContext(ctx, c.metadata)
	}
	var trailer metadata.MD
	if len(ids) == 1 {
		answer, err := c.firn.Next(ctx, &firnv1.NextRequest{Sequencer: c.sequencer}, grpc.Trailer(&trailer))
		if mixed := c.clusters.take(c.server, first(trailer.Get(clusterid.Trailer))); mixed != nil {
			return mixed
		}
		if err != nil {
			return grpcError(ctx, err)
		}
		return fill(ids, []int64{answer.GetId()})
	}
	answer, err := c.firn.NextBatch(ctx, &firnv1.NextBatchRequest{Sequencer: c.sequencer, Count: int32(len(ids))},
		grpc.Trailer(&trailer))
	if mixed := c.clusters.take(c.server, first(trailer.Get(clusterid.Trailer))); mixed != nil {
		return mixed
	}
	if err != nil {
		return grpcError(ctx, err)
	}
	return fill(ids, answer.GetIds())
}

// grpcError returns an error with firn's code. An error without one is from a gRPC library, of the client or of
// the server.
func grpcError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s := status.Convert(err)
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return &CodeError{info.GetReason(), s.Message()}
		}
	}
	switch s.Code() {
	case codes.Unavailable:
		return errors.New(s.Message())
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	}
	return &CodeError{"grpc_" + strings.ToLower(s.Code().String()), s.Message()}
}
