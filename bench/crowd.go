package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// crowdRounds is how often single IDs are asked for, alone and beside others, for crowdFor each time with settings that measure.
const (
	crowdRounds = 5
	crowdFor    = 3 * time.Second
)

// runCrowd measures single IDs beside 20 callers of 100 000 IDs: both are firn bench, and share the machine with firn serve.
func runCrowd(ctx context.Context, s settings) ([]table, error) {
	t := table{
		Title: "crowd: 16 connections that ask for one ID each, alone and beside 20 that ask for 100 000",
		Note:  "Both are firn bench, over HTTP, on the CPUs of firn serve. Medians over the rounds, and of the ratios within each.",
		columns: []column{
			{"per_s", "single IDs/s", "%.0f"},
			{"to_alone", "to alone", "%.2f"},
			{"p50_ms", "p50 ms", "%.2f"},
			{"p99_ms", "p99 ms", "%.2f"},
			{"p99_to_alone", "p99 to alone", "%.2f"},
			{"large_per_s", "other IDs/s", "%.0f"},
		},
	}
	dir, err := os.MkdirTemp("", "firn-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s.tell("building firn")
	binary, err := build(ctx, dir, filepath.Join("..", "cmd", "firn"))
	if err != nil {
		return nil, err
	}
	p, address, err := startFirn(ctx, binary, dir)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	if _, err := p.await(ctx, func() error {
		_, err := askOnce(ctx, address)
		return err
	}); err != nil {
		return nil, err
	}
	rounds, each := crowdRounds, crowdFor
	if s.loads == 1 {
		rounds, each = 1, s.load
	}
	var alone, beside crowdRun
	for i := range rounds {
		s.tell("crowd: round %d of %d", i+1, rounds)
		a, err := firnBench(ctx, binary, address, 16, 1, each)
		if err != nil {
			return nil, err
		}
		large := make(chan error, 1)
		var l loaded
		go func() {
			var err error
			l, err = firnBench(ctx, binary, address, 20, 100_000, each+each/2)
			large <- err
		}()
		time.Sleep(each / 4) // until they are all there
		b, err := firnBench(ctx, binary, address, 16, 1, each)
		if err := <-large; err != nil {
			return nil, err
		}
		if err != nil {
			return nil, err
		}
		alone.add(a.PerSecond, 1, a.Latency.P50, a.Latency.P99, 1, 0)
		beside.add(b.PerSecond, b.PerSecond/a.PerSecond, b.Latency.P50, b.Latency.P99, b.Latency.P99/a.Latency.P99, l.PerSecond)
	}
	t.rows = []row{{"alone", alone.medians()}, {"beside the 20", beside.medians()}}
	t.Targets = []target{atMost("p99 ms beside the 20", beside.medians()[3], 50)}
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

// loaded is a part of what firn bench --json says.
type loaded struct {
	PerSecond float64 `json:"ids_per_second"`
	Latency   struct {
		P50 float64 `json:"p50"`
		P99 float64 `json:"p99"`
	} `json:"latency_ms"`
}

// firnBench has firn bench ask for IDs.
func firnBench(ctx context.Context, binary, address string, connections, batch int, d time.Duration) (l loaded, err error) {
	out, err := exec.CommandContext(ctx, binary, "bench", "--json", "--server", "http://"+address, "--concurrency", strconv.Itoa(connections),
		"--batch", strconv.Itoa(batch), "--duration", d.String()).Output()
	if err == nil {
		err = json.Unmarshal(out, &l)
	}
	if err != nil {
		err = fmt.Errorf("firn bench: %w", err)
	}
	return l, err
}
