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

// runClient measures a client that fetches IDs ahead beside a generator in memory. The server, in the same process, has
// more IDs than callers take.
func runClient(ctx context.Context, s settings) ([]table, error) {
	generator := must(firn.NewGenerator(wide, 0))
	served := must(firn.NewGenerator(wide, 1))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count, err := strconv.Atoi(r.URL.Query().Get("count"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ids := make([]firn.ID, count)
		if served.Fill(r.Context(), ids) == nil {
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = w.Write(packed.Append(nil, ids...)) // else the client tells
		}
	}))
	defer server.Close()
	const ahead = 100_000
	c, err := client.New([]string{server.URL}, client.WithPrefetch(ahead, time.Minute))
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }() // the server ends right after
	const next, bare, goroutines = "Client.Next", "Generator.Next", 64
	contenders := []contender{sourceNext(bare, generator), sourceNext(next, c)}
	got, cpu, err := measure(ctx, s, contenders, goroutines)
	if err != nil {
		return nil, err
	}
	t := table{
		Title: "client: IDs fetched ahead beside a generator in memory, " + plural(goroutines),
		Note: "The client keeps 100 000 IDs, which a server in the same process makes. Ratios are medians over the " +
			"rounds.",
		columns: []column{
			{"min_ns", "min ns/ID", "%.1f"},
			{"median_ns", "median ns/ID", "%.1f"},
			{"cpu_ns", "median CPU ns/ID", "%.1f"},
			{"to_generator", "to the generator", "%.2f"},
		},
	}
	for _, c := range contenders {
		t.add(c.name, got.least(c.name), got.median(c.name), cpu.median(c.name), got.ratio(c.name, bare))
	}
	t.Targets = []target{atMost("Client.Next to Generator.Next", got.ratio(next, bare), 3)}
	return []table{t}, nil
}
