package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// runRedis measures firn serve with Redis clients beside Redis itself: the commands that redis-benchmark gets answered,
// and the CPU time that they cost the server.
func runRedis(ctx context.Context, s settings) ([]table, error) {
	t := table{
		Title: "redis: INCR default, sent by redis-benchmark to firn serve and to a Redis that keeps nothing",
		Note: "The servers are asked in turn, and share the machine with redis-benchmark, which is one thread and often the limit.\n" +
			"Ratios are medians over the rounds; CPU is user and system time of the server's process.",
		columns: []column{
			{"firn_per_s", "firn commands/s", "%.0f"},
			{"redis_per_s", "Redis commands/s", "%.0f"},
			{"ratio", "ratio", "%.2f"},
			{"firn_cpu_us", "firn CPU µs", "%.2f"},
			{"redis_cpu_us", "Redis CPU µs", "%.2f"},
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
	all := &contest{dir: dir}
	defer all.stop()
	err = all.startForRedis(ctx, binary)
	if errors.Is(err, exec.ErrNotFound) {
		s.tell("skipping redis: %v", err)
		t.Note = "Skipped: " + err.Error() + "; Debian has redis-server and redis-tools"
		return []table{t}, nil
	}
	if err != nil {
		return nil, err
	}
	firn, redis := all.all[0], all.all[1]
	for _, pipeline := range []int{1, 16} {
		for _, connections := range []int{1, 16, 128} {
			name := fmt.Sprintf("%s, %d in a pipeline", counted(connections, "connection"), pipeline)
			firn.ask, redis.ask = overRedis(pipeline), overRedis(pipeline)
			if err := all.askInTurn(ctx, s, connections); err != nil {
				return nil, err
			}
			rate := func(r round) float64 { return r.perSecond }
			ratio := firn.ratioTo(redis)
			t.rows = append(t.rows, row{name, []float64{firn.median(rate), redis.median(rate), ratio, firn.cpuPerAnswer(), redis.cpuPerAnswer()}})
			if pipeline > 1 {
				t.Targets = append(t.Targets, atLeast("commands/s to Redis's, "+name, ratio, 1))
			}
		}
	}
	return []table{t}, nil
}

// startForRedis starts firn serve and Redis. What has started by then must be stopped after an error.
func (w *contest) startForRedis(ctx context.Context, binary string) error {
	err := w.add(ctx, "firn", overRedis(1), func(address string) (*process, error) {
		p, web, err := startFirn(ctx, binary, w.dir, "--redis-addr", address)
		if err == nil {
			_, err = p.await(ctx, func() error {
				_, err := askOnce(ctx, web)
				return err
			})
		}
		return p, err
	})
	if err != nil {
		return err
	}
	return w.add(ctx, "redis", overRedis(1), func(address string) (*process, error) { return w.startRedis(ctx, address) })
}

func (w *contest) startRedis(ctx context.Context, address string) (*process, error) {
	server, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("redis-benchmark"); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return start(ctx, w.dir, server, "--bind", host, "--port", port, "--save", "", "--appendonly", "no")
}

// overRedis has redis-benchmark ask for as many numbers as took the given time in the round before.
func overRedis(pipeline int) askFunc {
	var ask askFunc
	ask = func(ctx context.Context, s *rival, connections int, d time.Duration) (r round, err error) {
		host, port, err := net.SplitHostPort(s.address)
		if err != nil {
			return r, err
		}
		var last round
		switch n := len(s.rounds); {
		case n > 0:
			last = s.rounds[n-1]
		case d > 0:
			if last, err = ask(ctx, s, connections, 0); err != nil {
				return r, err
			}
		}
		asked := max(100*connections*pipeline, int(last.perSecond*d.Seconds()))
		// It spins without end where nobody listens yet.
		a, err := dial(ctx, s.address, time.Second)
		if err != nil {
			return r, err
		}
		_ = a.conn.Close() // nothing was sent
		ctx, cancel := context.WithTimeout(ctx, d+time.Minute)
		defer cancel()
		for try := 1; ; try++ { // now and then it ends with "Connection reset by peer", with Redis too
			before := s.cpuTime()
			out, err := exec.CommandContext(ctx, "redis-benchmark", "-h", host, "-p", port, "-c", strconv.Itoa(connections),
				"-n", strconv.Itoa(asked), "-P", strconv.Itoa(pipeline), "--csv", "INCR", "default").Output()
			if err == nil {
				r, err = parseRedisBenchmark(string(out))
				r.answers, r.cpu = asked, s.cpuTime()-before
				return r, err
			}
			if try == 3 {
				return r, fmt.Errorf("redis-benchmark: %w: %s", err, out)
			}
		}
	}
	return ask
}

// parseRedisBenchmark reads the CSV of redis-benchmark: a line of names, and one of values.
func parseRedisBenchmark(text string) (r round, err error) {
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return r, fmt.Errorf("redis-benchmark printed %q: %w", text, err)
	}
	if len(lines) != 2 {
		return r, fmt.Errorf("redis-benchmark printed %q; want two lines", text)
	}
	values := map[string]float64{}
	for i, name := range lines[0] {
		values[name], _ = strconv.ParseFloat(lines[1][i], 64) // the first is no number
	}
	r = round{perSecond: values["rps"], p50: values["p50_latency_ms"] * 1000, p99: values["p99_latency_ms"] * 1000, p999: math.NaN()}
	if !(r.perSecond > 0 && r.p50 > 0 && r.p99 > 0) {
		return r, fmt.Errorf("redis-benchmark printed %q; want rps, p50_latency_ms and p99_latency_ms", text)
	}
	return r, nil
}
