package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
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
			{"cpu_ratio", "ratio", "%.2f"},
		},
	}
	dir, err := os.MkdirTemp("", "firn-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s.tell("building firn")
	binary, err := buildFirn(ctx, dir)
	for _, tool := range []string{"redis-server", "redis-benchmark"} {
		if err == nil {
			_, err = exec.LookPath(tool)
		}
	}
	if err != nil {
		s.tell("skipping redis: %v", err)
		t.Note = "Skipped: " + err.Error() + "; Debian has redis-server and redis-tools"
		return []table{t}, nil
	}
	firn, end, err := firnForRedis(ctx, binary, dir)
	if err != nil {
		return nil, err
	}
	defer end()
	peer, end, err := startRedis(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer end()
	for _, pipeline := range []int{1, 16} {
		for _, connections := range []int{1, 16, 128} {
			name := fmt.Sprintf("%s, %d in a pipeline", counted(connections, "connection"), pipeline)
			s.tell("%s", name)
			rates, costs, err := compare(ctx, s, load{pipeline, connections}, firn, peer)
			if err != nil {
				return nil, err
			}
			t.rows = append(t.rows, row{name, []float64{
				rates.median(firn.name), rates.median(peer.name), rates.ratio(firn.name, peer.name),
				costs.median(firn.name), costs.median(peer.name), costs.ratio(firn.name, peer.name),
			}})
			if pipeline > 1 {
				t.Targets = append(t.Targets, atLeast("commands/s to Redis's, "+name, rates.ratio(firn.name, peer.name), 1))
			}
		}
	}
	return []table{t}, nil
}

// redisServer is a server that answers Redis clients.
type redisServer struct {
	name string
	port string
	pid  int
}

func firnForRedis(ctx context.Context, binary, dir string) (r redisServer, end func(), err error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return r, nil, err
	}
	served, err := startFirn(ctx, binary, dir, "--redis-addr", address)
	if err != nil {
		return r, nil, err
	}
	if _, err := served.firstID(ctx); err != nil {
		served.stop()
		return r, nil, err
	}
	_, port, _ := net.SplitHostPort(address)
	return redisServer{"firn", port, served.process.Process.Pid}, served.stop, nil
}

func startRedis(ctx context.Context, dir string) (r redisServer, end func(), err error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return r, nil, err
	}
	host, port, _ := net.SplitHostPort(address)
	process := exec.CommandContext(ctx, "redis-server", "--bind", host, "--port", port, "--dir", dir, "--save", "", "--appendonly", "no")
	if err := process.Start(); err != nil {
		return r, nil, err
	}
	end = func() {
		_ = process.Process.Signal(os.Interrupt) // it may have ended
		_ = process.Wait()
	}
	const patience = 10 * time.Second
	for started := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close() // it was only to see who listens
			return redisServer{"redis", port, process.Process.Pid}, end, nil
		}
		if time.Since(started) > patience {
			end()
			return r, nil, fmt.Errorf("redis-server does not listen: %w", err)
		}
	}
}

// load is how redis-benchmark asks.
type load struct{ pipeline, connections int }

// compare sends the same commands to all servers in turn, round after round. It returns the commands per second, and
// the CPU time of each in microseconds.
func compare(ctx context.Context, s settings, l load, servers ...redisServer) (rates, costs speeds, err error) {
	rates, costs = speeds{}, speeds{}
	slowest := 1e9
	for _, r := range servers { // a warm-up
		rate, err := r.ask(ctx, l, 1000*l.pipeline)
		if err != nil {
			return nil, nil, err
		}
		slowest = min(slowest, rate)
	}
	count := max(l.pipeline*l.connections, int(slowest*s.redis.Seconds()))
	for round := range s.redises {
		order := slices.Clone(servers)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, r := range order {
			before, err := cpuOf(r.pid)
			if err != nil {
				return nil, nil, err
			}
			rate, err := r.ask(ctx, l, count)
			if err != nil {
				return nil, nil, err
			}
			after, err := cpuOf(r.pid)
			if err != nil {
				return nil, nil, err
			}
			rates[r.name] = append(rates[r.name], rate)
			costs[r.name] = append(costs[r.name], float64((after-before).Nanoseconds())/1e3/float64(count))
		}
	}
	return rates, costs, nil
}

// ask sends so many commands, and returns how many were answered per second.
func (r redisServer) ask(ctx context.Context, l load, count int) (perSecond float64, err error) {
	out, err := exec.CommandContext(ctx, "redis-benchmark", "-p", r.port, "-P", strconv.Itoa(l.pipeline),
		"-c", strconv.Itoa(l.connections), "-n", strconv.Itoa(count), "--csv", "INCR", "default").Output()
	if err != nil {
		return 0, fmt.Errorf("redis-benchmark: %w: %s", err, out)
	}
	lines, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
	if err != nil || len(lines) != 2 || len(lines[1]) < 2 { // "test","rps",... and a line for the command
		return 0, fmt.Errorf("redis-benchmark printed %q", out)
	}
	return strconv.ParseFloat(lines[1][1], 64)
}

// cpuOf is the CPU time that a process has had, which Linux counts by 10 ms.
func cpuOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	const utime, stime = 14 - 3, 15 - 3 // counted from 1, and what follows the name begins with the third
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) <= stime {
		return 0, fmt.Errorf("/proc/%d/stat is %q", pid, text)
	}
	var ticks int64
	for _, f := range []string{fields[utime], fields[stime]} {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}
