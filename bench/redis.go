package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// runRedis measures firn serve with Redis clients beside Redis itself: the commands that redis-benchmark gets answered,
// and the CPU time that they cost the server.
func runRedis(ctx context.Context, s settings, c *contest) ([]table, error) {
	t := table{
		Title: "redis: INCR default, sent by redis-benchmark to firn serve and to a Redis that keeps nothing",
		Note: "The servers are asked in turn, and share the machine with redis-benchmark, which is one thread and " +
			"often the limit.\n" +
			"Ratios are medians over the rounds; CPU is user and system time of the server's process.",
		columns: []column{
			{"firn_per_s", "firn commands/s", "%.0f"},
			{"redis_per_s", "Redis commands/s", "%.0f"},
			{"ratio", "ratio", "%.2f"},
			{"firn_cpu_us", "firn CPU µs", "%.2f"},
			{"redis_cpu_us", "Redis CPU µs", "%.2f"},
		},
	}
	err := c.add(ctx, "Redis", "redis", nil, func(address string) (*process, error) {
		return c.startRedis(ctx, address)
	})
	if err != nil {
		return nil, err
	}
	if len(c.rivals) == 0 {
		s.tell("skipping redis")
		t.Note = "Skipped; Debian has redis-server and redis-tools." + c.notes
		return []table{t}, nil
	}
	if err := c.addFirn(ctx, "firn", "redis", nil); err != nil {
		return nil, err
	}
	redis, firn := c.rivals[0], c.rivals[1]
	for _, pipeline := range []int{1, 16} {
		firn.ask, redis.ask = overRedis(pipeline), overRedis(pipeline)
		for _, connections := range []int{1, 16, 128} {
			if err := c.askInTurn(ctx, s, connections); err != nil {
				return nil, err
			}
			name := fmt.Sprintf("%s, %d in a pipeline", counted(connections, "connection"), pipeline)
			ratio := firn.ratioTo(redis)
			t.add(name, firn.median(perSecond), redis.median(perSecond), ratio, firn.cpuPerAnswer(),
				redis.cpuPerAnswer())
			if pipeline > 1 {
				t.Targets = append(t.Targets, atLeast("commands/s to Redis's, "+name, ratio, 1))
			}
		}
	}
	return []table{t}, nil
}

func (c *contest) startRedis(ctx context.Context, address string) (*process, error) {
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
	return c.start(ctx, server, "--bind", host, "--port", port, "--save", "", "--appendonly", "no")
}

// overRedis has redis-benchmark ask for as many numbers as took the given time in the round before.
func overRedis(pipeline int) askFunc {
	return func(ctx context.Context, r *rival, connections int, d time.Duration) (found round, err error) {
		var last round
		if n := len(r.rounds); n > 0 {
			last = r.rounds[n-1]
		} else if last, err = redisBenchmark(ctx, r, connections, pipeline, 0); err != nil {
			return found, err
		}
		return redisBenchmark(ctx, r, connections, pipeline, int(last.perSecond*d.Seconds()))
	}
}

// redisBenchmark asks for so many numbers, and for a hundred with each connection and place in the pipeline at least.
func redisBenchmark(ctx context.Context, r *rival, connections, pipeline, numbers int) (round, error) {
	host, port, err := net.SplitHostPort(r.address)
	if err != nil {
		return round{}, err
	}
	numbers = max(100*connections*pipeline, numbers)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for try := 1; ; try++ { // now and then it ends with "Connection reset by peer", with Redis too
		before := r.cpu()
		out, err := exec.CommandContext(ctx, "redis-benchmark", "-h", host, "-p", port, "-c", strconv.Itoa(connections),
			"-n", strconv.Itoa(numbers), "-P", strconv.Itoa(pipeline), "--csv", "INCR", "default").Output()
		if err == nil {
			found, err := parseRedisBenchmark(string(out))
			found.answers, found.cpu = int64(numbers), r.cpu()-before
			return found, err
		}
		if try == 3 {
			return round{}, fmt.Errorf("redis-benchmark: %w: %s", err, out)
		}
	}
}

// parseRedisBenchmark reads the CSV of redis-benchmark: a line of names, and one of values.
func parseRedisBenchmark(text string) (r round, err error) {
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(lines) != 2 {
		return r, fmt.Errorf("redis-benchmark printed %q; want two lines of CSV: %w", text, err)
	}
	values := map[string]float64{}
	for i, name := range lines[0] {
		values[name], _ = strconv.ParseFloat(lines[1][i], 64) // the first is no number
	}
	r = round{
		perSecond: values["rps"], p50: values["p50_latency_ms"] * 1000, p99: values["p99_latency_ms"] * 1000,
		p999: math.NaN(),
	}
	if !(r.perSecond > 0 && r.p50 > 0 && r.p99 > 0) {
		return r, fmt.Errorf("redis-benchmark printed %q; want rps, p50_latency_ms and p99_latency_ms", text)
	}
	return r, nil
}
