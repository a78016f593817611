package main

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/ops/load"
)

// batchOf is how many IDs the measured batches hold.
const batchOf = 1000

// runGRPC measures firn's gRPC server beside one that answers the same messages and does nothing else.
func runGRPC(ctx context.Context, s settings, c *contest) ([]table, error) {
	program, err := s.build(ctx, "constant")
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		c.addFirn(ctx, "firn", "grpc", nil, "--layout", "41/1/21"),
		c.add(ctx, "constant", "grpc", nil, func(address string) (*process, error) {
			return c.start(ctx, program, "grpc", address, fmt.Sprint(batchOf))
		}))
	if err != nil {
		return nil, err
	}
	constant := c.rivals[1]
	measure := func(connections, batch int, connect func(string, int) (load.Connection, error)) error {
		for _, r := range c.rivals {
			r.ask = overLoad(batch, connect)
		}
		return c.askInTurn(ctx, s, connections)
	}
	var tables []table
	for _, callers := range []int{1, 16, 128} {
		if err := measure(callers, 1, dialShared("")); err != nil {
			return nil, err
		}
		t := table{
			Title: fmt.Sprintf("grpc: Next, %s over one connection", counted(callers, "caller")),
			Note: "Beside a gRPC server with its defaults that answers the same ID again and again. Each server is a " +
				"process of its own;\n" +
				"the callers are a third, on the same machine. Medians over the rounds; the CPU time is that of all " +
				"rounds.",
			columns: []column{
				{"requests_per_second", "median requests/s", "%.0f"},
				{"p50_us", "p50 us", "%.0f"},
				{"p99_us", "p99 us", "%.0f"},
				{"cpu_us", "server CPU us/request", "%.1f"},
				{"to_constant", "requests/s to the constant", "%.3f"},
				{"cpu_to_constant", "CPU to the constant", "%.3f"},
			},
		}
		for _, r := range c.rivals {
			t.add(r.name, r.median(perSecond),
				r.median(func(r round) float64 { return r.p50 }),
				r.median(func(r round) float64 { return r.p99 }),
				r.cpuPerAnswer(), r.ratioTo(constant), r.cpuPerAnswer()/constant.cpuPerAnswer())
		}
		tables = append(tables, t)
	}
	batches := table{
		Title: fmt.Sprintf("grpc: batches of %d, 1 caller", batchOf),
		Note:  "Beside a server that sends the same batch again and again. Ratios are medians over the rounds.",
		columns: []column{
			{"ids_per_second", "median IDs/s", "%.0f"},
			{"cpu_ns", "server CPU ns/ID", "%.1f"},
			{"to_constant", "IDs/s to the constant", "%.3f"},
			{"cpu_to_constant", "CPU to the constant", "%.3f"},
		},
	}
	for _, kind := range []struct {
		name    string
		connect func(address string, i int) (load.Connection, error)
	}{{"NextBatch", dialShared("")}, {"Stream", dialStream}} {
		if err := measure(1, batchOf, kind.connect); err != nil {
			return nil, err
		}
		for _, r := range c.rivals {
			batches.add(kind.name+", "+r.name, batchOf*r.median(perSecond), r.cpuPerAnswer()*1e3/batchOf,
				r.ratioTo(constant), r.cpuPerAnswer()/constant.cpuPerAnswer())
		}
	}
	return append(tables, batches), nil
}

// dialShared has all callers of a server share one gRPC connection.
func dialShared(sequencer string) func(address string, i int) (load.Connection, error) {
	return shared(func(address string) (load.Connection, error) {
		return dial("grpc", address, load.Access{Sequencer: sequencer})
	})
}

// shared has all callers of a server share one connection.
func shared(connect func(address string) (load.Connection, error)) func(string, int) (load.Connection, error) {
	open := map[string]load.Connection{}
	return func(address string, _ int) (c load.Connection, err error) {
		if open[address] == nil {
			open[address], err = connect(address)
		}
		return open[address], err
	}
}

// stream takes batches from one call of Stream.
type stream struct {
	conn    *grpc.ClientConn
	batches grpc.ServerStreamingClient[firnv1.StreamResponse]
}

func dialStream(address string, _ int) (load.Connection, error) {
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	batches, err := firnv1.NewFirnClient(conn).Stream(context.Background(), &firnv1.StreamRequest{BatchSize: batchOf})
	return &stream{conn, batches}, err
}

func (s *stream) Close() { _ = s.conn.Close() }

func (s *stream) Take(_ context.Context, ids []firn.ID) error {
	batch, err := s.batches.Recv()
	if err == nil && len(batch.GetIds()) != len(ids) {
		err = fmt.Errorf("a batch of %d IDs; want %d", len(batch.GetIds()), len(ids))
	}
	return err
}
