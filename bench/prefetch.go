package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
	"github.com/firn-id/firn/internal/base/packed"
)

const (
	ahead   = 100_000 // IDs that the client keeps
	callers = 64
)

// runClient measures a client that fetches IDs ahead beside a generator in memory. The server, in the same process,
// answers as a node does.
func runClient(ctx context.Context, s settings) ([]table, error) {
	server := httptest.NewServer(packedIDs(must(firn.NewGenerator(wide, 1))))
	defer server.Close()
	fetched := make(chan struct{}, 1)
	c, err := client.New([]string{server.URL}, client.WithPrefetch(ahead, time.Minute),
		client.WithHooks(client.Hooks{Batch: func(client.Batch) {
			select {
			case fetched <- struct{}{}:
			default: // nobody waits
			}
		}}))
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }() // the server ends right after
	const bare, next = "Generator.Next", "Client.Next"
	contenders := []contender{sourceNext(bare, must(firn.NewGenerator(wide, 0))), sourceNext(next, c)}
	tableOf := func(title, note string, times, cpu speeds, want float64) table {
		t := table{
			Title: "client: " + title + ", " + plural(callers),
			Note:  note + " Ratios are medians over the rounds.",
			columns: []column{
				{"min_ns", "min ns/ID", "%.1f"},
				{"median_ns", "median ns/ID", "%.1f"},
				{"cpu_ns", "median CPU ns/ID", "%.1f"},
				{"to_generator", "to the generator", "%.2f"},
			},
		}
		for _, c := range contenders {
			t.add(c.name, times.least(c.name), times.median(c.name), cpu.median(c.name), times.ratio(c.name, bare))
		}
		t.Targets = []target{atMost(title+": Client.Next to Generator.Next", times.ratio(next, bare), want)}
		return t
	}
	times, cpu, err := measureInMemory(ctx, s, contenders, c, fetched)
	if err != nil {
		return nil, err
	}
	inMemory := tableOf("IDs that are in memory", "The client keeps 100 000 IDs, and fetches between the samples.",
		times, cpu, 1.5)
	if times, cpu, err = measure(ctx, s, contenders, callers); err != nil {
		return nil, err
	}
	fetches := tableOf("IDs as fast as they come", "The client fetches about 50 000 IDs at a time from a server in "+
		"the same process,\nwhich callers that do nothing else slow down.", times, cpu, 1.5)
	return []table{inMemory, fetches}, nil
}

// measureInMemory samples the contenders, one of which takes from c, in turn. Between the rounds it awaits what c
// fetches.
func measureInMemory(ctx context.Context, s settings, contenders []contender, c *client.Client,
	fetched <-chan struct{},
) (times, cpu speeds, err error) {
	const (
		rest = 2000 // after the samples, until half of the IDs are left
		each = (ahead/2 - rest) / callers
	)
	s.tell("%s, IDs in memory", plural(callers))
	times, cpu = speeds{}, speeds{}
	for takes := 1; len(times[contenders[0].name]) < s.rounds; takes = rest {
		if err := c.Fill(ctx, make([]firn.ID, takes)); err != nil {
			return nil, nil, err
		}
		select {
		case <-fetched:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		for _, one := range contenders {
			before := cpuTime()
			took := timed(one.loop, callers, each)
			times[one.name] = append(times[one.name], float64(took)/(callers*each))
			cpu[one.name] = append(cpu[one.name], float64(cpuTime()-before)/(callers*each))
		}
	}
	return times, cpu, nil
}

// packedIDs answers with packed IDs, as a node does.
func packedIDs(g *firn.Generator) http.HandlerFunc {
	const piece = 32 << 10 // bytes that are written at once
	return func(w http.ResponseWriter, r *http.Request) {
		count, err := strconv.Atoi(r.URL.Query().Get("count"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", packed.Type)
		w.Header().Set("Content-Length", strconv.Itoa(count*packed.Size))
		ids, b := make([]firn.ID, piece/packed.Size), make([]byte, 0, piece)
		for ; count > 0; count -= len(ids) {
			ids = ids[:min(count, len(ids))]
			if g.Fill(r.Context(), ids) != nil {
				return // the client tells
			}
			_, _ = w.Write(packed.Append(b, ids...))
		}
	}
}
