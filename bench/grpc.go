package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn/api/firnv1"
)

// What the servers that are compared are called.
const (
	firnServer     = "firn"
	constantServer = "constant"
)

// batchOf is how many IDs the batches that are measured hold.
const batchOf = 1000

// runGRPC measures firn's gRPC server beside one of the same messages that does nothing but answer.
func runGRPC(ctx context.Context, s settings) ([]table, error) {
	names := []string{firnServer, constantServer}
	servers := map[string]*rpcServer{}
	for _, name := range names {
		server, err := startRPC(ctx, name)
		if err != nil {
			return nil, err
		}
		defer server.stop()
		servers[name] = server
	}
	var tables []table
	for _, callers := range []int{1, 16, 128} {
		found, err := s.rpcRounds(ctx, names, servers, callers, next)
		if err != nil {
			return nil, err
		}
		tables = append(tables, callsTable(names, found, callers))
	}
	batches := table{
		Title: fmt.Sprintf("grpc: batches of %d, 1 caller", batchOf),
		Note:  "Beside a server that sends the same batch again and again. Ratios are medians over the rounds.",
		columns: []column{
			{"ids_per_second", "median IDs/s", "%.0f"},
			{"cpu_ns", "median server CPU ns/ID", "%.1f"},
			{"to_constant", "IDs/s to the constant", "%.3f"},
			{"cpu_to_constant", "CPU to the constant", "%.3f"},
		},
	}
	for _, kind := range []struct {
		name string
		call rpcCall
	}{{"NextBatch", nextBatch}, {"Stream", stream}} {
		found, err := s.rpcRounds(ctx, names, servers, 1, kind.call)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			f := found[name]
			batches.rows = append(batches.rows, row{kind.name + ", " + name, []float64{
				batchOf * median(f.rates), median(f.cpu) / batchOf,
				ratio(f.rates, found[constantServer].rates), ratio(f.cpu, found[constantServer].cpu),
			}})
		}
	}
	return append(tables, batches), nil
}

func callsTable(names []string, found map[string]*rpcSamples, callers int) table {
	t := table{
		Title: fmt.Sprintf("grpc: Next, %s over one connection", counted(callers, "caller")),
		Note: "Beside a gRPC server with its defaults that answers the same ID again and again. Each server is a process of its own;\n" +
			"the callers are a third, on the same machine. Ratios are medians over the rounds.",
		columns: []column{
			{"requests_per_second", "median requests/s", "%.0f"},
			{"p50_us", "p50 us", "%.0f"},
			{"p99_us", "p99 us", "%.0f"},
			{"cpu_us", "median server CPU us/request", "%.1f"},
			{"to_constant", "requests/s to the constant", "%.3f"},
			{"cpu_to_constant", "CPU to the constant", "%.3f"},
		},
	}
	for _, name := range names {
		f := found[name]
		slices.Sort(f.took)
		at := func(percent int) float64 { return float64(f.took[len(f.took)*percent/100]) / 1e3 }
		t.rows = append(t.rows, row{name, []float64{
			median(f.rates), at(50), at(99), median(f.cpu) / 1e3,
			ratio(f.rates, found[constantServer].rates), ratio(f.cpu, found[constantServer].cpu),
		}})
	}
	return t
}

// rpcSamples are what was measured of a server, by round.
type rpcSamples struct {
	rates []float64       // answers per second
	cpu   []float64       // nanoseconds of the server per answer
	took  []time.Duration // each answer
}

func ratio(a, b []float64) float64 { return speeds{"a": a}.ratioTo("a", b) }

// rpcCall makes calls one after the other, each with a time of its own, until then.
type rpcCall func(ctx context.Context, client firnv1.FirnClient, until time.Time) ([]time.Duration, error)

// rpcRounds measures all servers in turn, round after round.
func (s settings) rpcRounds(ctx context.Context, names []string, servers map[string]*rpcServer, callers int, call rpcCall) (map[string]*rpcSamples, error) {
	found := map[string]*rpcSamples{}
	for round := range s.loads + 1 { // the first warms up
		s.tell("%s over gRPC: round %d of %d", counted(callers, "caller"), round, s.loads)
		for _, name := range names {
			f := found[name]
			if f == nil || round == 1 {
				f = &rpcSamples{}
				found[name] = f
			}
			if err := f.sample(ctx, servers[name], callers, s.load, call); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return found, nil
}

func (f *rpcSamples) sample(ctx context.Context, server *rpcServer, callers int, d time.Duration, call rpcCall) error {
	before, err := server.cpu()
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	took, errs := make([][]time.Duration, callers), make([]error, callers)
	start := time.Now()
	for i := range callers {
		all.Go(func() { took[i], errs[i] = call(ctx, server.client, start.Add(d)) })
	}
	all.Wait()
	elapsed := time.Since(start)
	after, err := server.cpu()
	if err != nil {
		return err
	}
	count := 0
	for i := range callers {
		if errs[i] != nil {
			return errs[i]
		}
		count += len(took[i])
		f.took = append(f.took, took[i]...)
	}
	f.rates = append(f.rates, float64(count)/elapsed.Seconds())
	f.cpu = append(f.cpu, float64(after-before)/float64(count))
	return nil
}

// each makes calls by do.
func each(until time.Time, do func() error) (took []time.Duration, err error) {
	for last := time.Now(); last.Before(until); {
		if err := do(); err != nil {
			return nil, err
		}
		now := time.Now()
		took = append(took, now.Sub(last))
		last = now
	}
	return took, nil
}

func next(ctx context.Context, client firnv1.FirnClient, until time.Time) ([]time.Duration, error) {
	var request firnv1.NextRequest
	return each(until, func() error {
		_, err := client.Next(ctx, &request)
		return err
	})
}

func nextBatch(ctx context.Context, client firnv1.FirnClient, until time.Time) ([]time.Duration, error) {
	request := firnv1.NextBatchRequest{Count: batchOf}
	return each(until, func() error {
		_, err := client.NextBatch(ctx, &request)
		return err
	})
}

func stream(ctx context.Context, client firnv1.FirnClient, until time.Time) ([]time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches, err := client.Stream(ctx, &firnv1.StreamRequest{BatchSize: batchOf})
	if err != nil {
		return nil, err
	}
	return each(until, func() error {
		_, err := batches.Recv()
		return err
	})
}
