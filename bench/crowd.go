package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
)

// runCrowd measures single IDs beside 20 callers of 100 000 IDs: both are firn bench, and share the machine with firn
// serve.
func runCrowd(ctx context.Context, s settings, c *contest) ([]table, error) {
	if err := c.addFirn(ctx, "firn serve", "http", nil); err != nil {
		return nil, err
	}
	var alone, beside crowdRun
	for i := range s.crowds {
		s.tell("crowd: round %d of %d", i+1, s.crowds)
		a, err := c.firnBench(ctx, 16, 1, s.crowd)
		if err != nil {
			return nil, err
		}
		var l loaded
		large := make(chan error, 1)
		go func() {
			var err error
			l, err = c.firnBench(ctx, 20, 100_000, s.crowd+s.crowd/2)
			large <- err
		}()
		_ = retry.Sleep(ctx, s.crowd/4) // until they are all there
		b, err := c.firnBench(ctx, 16, 1, s.crowd)
		if err := errors.Join(err, <-large); err != nil {
			return nil, err
		}
		alone.add(a.PerSecond, 1, a.Latency.P50, a.Latency.P99, 1, 0)
		beside.add(b.PerSecond, b.PerSecond/a.PerSecond, b.Latency.P50, b.Latency.P99,
			b.Latency.P99/a.Latency.P99, l.PerSecond)
	}
	t := table{
		Title: "crowd: 16 connections that ask for one ID each, alone and beside 20 that ask for 100 000",
		Note: "Both are firn bench, over HTTP, on the CPUs of firn serve. Medians over the rounds, and of the ratios " +
			"within each.",
		columns: []column{
			{"per_s", "single IDs/s", "%.0f"},
			{"to_alone", "to alone", "%.2f"},
			{"p50_ms", "p50 ms", "%.2f"},
			{"p99_ms", "p99 ms", "%.2f"},
			{"p99_to_alone", "p99 to alone", "%.2f"},
			{"large_per_s", "other IDs/s", "%.0f"},
		},
		Targets: []target{atMost("p99 ms beside the 20", beside.medians()[3], 50)},
	}
	t.add("alone", alone.medians()...)
	t.add("beside the 20", beside.medians()...)
	return []table{t}, nil
}

// crowdRun are the figures of a row, round by round.
type crowdRun [6][]float64

func (c *crowdRun) add(figures ...float64) {
	for i, f := range figures {
		c[i] = append(c[i], f)
	}
}

func (c *crowdRun) medians() (all []float64) {
	for _, samples := range c {
		all = append(all, median(samples))
	}
	return all
}

// loaded is the part of firn bench --json that is used.
type loaded struct {
	PerSecond float64 `json:"ids_per_second"`
	Latency   struct {
		P50 float64 `json:"p50"`
		P99 float64 `json:"p99"`
	} `json:"latency_ms"`
}

// firnBench has firn bench ask for IDs.
func (c *contest) firnBench(ctx context.Context, connections, batch int, d time.Duration) (l loaded, err error) {
	out, err := exec.CommandContext(ctx, c.firn, "bench", "--json", "--server", "http://"+c.rivals[0].address,
		"--concurrency", strconv.Itoa(connections),
		"--batch", strconv.Itoa(batch), "--duration", d.String()).Output()
	if err == nil {
		err = json.Unmarshal(out, &l)
	}
	if err != nil {
		err = fmt.Errorf("firn bench: %w", err)
	}
	return l, err
}
