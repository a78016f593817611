package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/firn-id/firn/internal/ops/load"
)

// runUnix measures one connection at a time over a Unix socket, beside the same over loopback.
func runUnix(ctx context.Context, s settings, c *contest) ([]table, error) {
	connect := map[string]func(address string, i int) (load.Connection, error){
		"http": dialLean,
		"grpc": func(address string, _ int) (load.Connection, error) { return dial("grpc", address, load.Access{}) },
		"redis": func(address string, _ int) (load.Connection, error) {
			return dial("redis", address, load.Access{})
		},
	}
	t := table{
		Title: "unix: one ID with each request, 1 connection",
		Note: "Two nodes of the same kind, one on a Unix socket and one on loopback, asked in turn. Ratios are " +
			"medians over the rounds.",
		columns: []column{
			{"unix_per_s", "Unix requests/s", "%.0f"},
			{"tcp_per_s", "TCP requests/s", "%.0f"},
			{"ratio", "ratio", "%.2f"},
			{"unix_p50_us", "Unix p50 µs", "%.0f"},
			{"tcp_p50_us", "TCP p50 µs", "%.0f"},
			{"unix_cpu_us", "Unix CPU µs", "%.1f"},
			{"tcp_cpu_us", "TCP CPU µs", "%.1f"},
		},
	}
	for _, protocol := range []string{"http", "grpc", "redis"} {
		start := func(name string) func(string) (*process, error) {
			return func(address string) (*process, error) {
				return c.start(ctx, c.firn, "serve", "--admin-addr", "none", "--data-dir",
					filepath.Join(c.dir, protocol+name), "--drain-delay", "0s",
					"--http-addr", "127.0.0.1:0", "--"+protocol+"-addr", address)
			}
		}
		c.rivals = nil
		if err := c.addAt(ctx, "unix:"+filepath.Join(c.dir, protocol), "Unix", protocol, overLoad(1, connect[protocol]),
			start("unix")); err != nil {
			return nil, err
		}
		if err := c.add(ctx, "TCP", protocol, overLoad(1, connect[protocol]), start("tcp")); err != nil {
			return nil, err
		}
		if err := c.askInTurn(ctx, s, 1); err != nil {
			return nil, err
		}
		unix, tcp := c.rivals[0], c.rivals[1]
		p50 := func(r round) float64 { return r.p50 }
		ratio := unix.ratioTo(tcp)
		t.add(protocol, unix.median(perSecond), tcp.median(perSecond), ratio, unix.median(p50), tcp.median(p50),
			unix.cpuPerAnswer(), tcp.cpuPerAnswer())
		t.Targets = append(t.Targets,
			atLeast(fmt.Sprintf("requests/s over a Unix socket to loopback, %s", protocol), ratio, 1.4))
		for _, r := range c.rivals {
			r.stop()
		}
	}
	return []table{t}, nil
}
