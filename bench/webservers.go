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

// webServers are those that are measured beside firn serve, which is the first; the constant is the second.
type webServers struct {
	dir   string
	all   []*webServer
	notes string // tell which are not here, and why
}

// webServer is a server, and how it is asked.
type webServer struct {
	*process
	name    string
	address string
	ask     askFunc
	rounds  []webRound // so far, over the present number of connections
}

func (w *webServers) stop() {
	for _, s := range w.all {
		s.stop()
	}
}

// start starts all that are here, and waits until they serve. What has started by then must be stopped after an error.
func (w *webServers) start(ctx context.Context, firn, constant string) error {
	p, address, err := startFirn(ctx, firn, w.dir)
	if err != nil {
		return err
	}
	w.all = append(w.all, &webServer{process: p, name: "firn serve", address: address, ask: overHTTP})
	var body string // the others give the same
	_, err = p.await(ctx, func() (err error) {
		body, err = askOnce(ctx, address)
		return err
	})
	if err != nil {
		return err
	}
	err = w.add(ctx, "net/http, a constant", overHTTP, func(address string) (*process, error) {
		return start(ctx, w.dir, constant, address, body)
	})
	if err != nil {
		return err
	}
	err = w.add(ctx, "nginx, a constant", overHTTP, func(address string) (*process, error) {
		return w.startNginx(ctx, address, body)
	})
	if err != nil {
		return err
	}
	return w.add(ctx, "Redis, INCR (redis-benchmark)", overRedis, func(address string) (*process, error) {
		return w.startRedis(ctx, address)
	})
}

// askFunc asks a server over so many connections for about the given time, or shortly if that is zero.
type askFunc func(ctx context.Context, s *webServer, connections int, d time.Duration) (webRound, error)

// add starts a server, unless it is not installed.
func (w *webServers) add(ctx context.Context, name string, ask askFunc, start func(address string) (*process, error)) error {
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	p, err := start(address)
	if errors.Is(err, exec.ErrNotFound) {
		w.notes += fmt.Sprintf("\nNot here: %s. %v", name, err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s := &webServer{process: p, name: name, address: address, ask: ask}
	w.all = append(w.all, s)
	_, err = p.await(ctx, func() error {
		_, err := ask(ctx, s, 1, 0)
		return err
	})
	return err
}

// nginxConf has nginx write nothing, and let connections live on as long as firn serve does.
const nginxConf = `daemon off;
worker_processes auto;
pid nginx.pid;
events { worker_connections 1024; }
http {
	access_log off;
	keepalive_requests 1000000000;
	keepalive_timeout 120s;
	default_type application/json;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	server {
		listen %s;
		location = /api/v1/id {
			add_header Cache-Control no-store;
			return 200 '%s';
		}
	}
}
`

func (w *webServers) startNginx(ctx context.Context, address, body string) (*process, error) {
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		if nginx, err = exec.LookPath("/usr/sbin/nginx"); err != nil { // which is not on everybody's path
			return nil, err
		}
	}
	dir := filepath.Join(w.dir, "nginx")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	conf := fmt.Sprintf(nginxConf, address, strings.ReplaceAll(body, "\n", `\n`))
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(conf), 0o600); err != nil {
		return nil, err
	}
	return start(ctx, dir, nginx, "-p", dir, "-c", "nginx.conf", "-e", "stderr")
}

func (w *webServers) startRedis(ctx context.Context, address string) (*process, error) {
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
func overRedis(ctx context.Context, s *webServer, connections int, d time.Duration) (r webRound, err error) {
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		return r, err
	}
	last := webRound{}
	switch n := len(s.rounds); {
	case n > 0:
		last = s.rounds[n-1]
	case d > 0:
		if last, err = overRedis(ctx, s, connections, 0); err != nil {
			return r, err
		}
	}
	asked := max(100*connections, int(last.perSecond*d.Seconds()))
	before := s.cpuTime()
	out, err := exec.CommandContext(ctx, "redis-benchmark", "-h", host, "-p", port,
		"-c", strconv.Itoa(connections), "-n", strconv.Itoa(asked), "-P", "1", "--csv", "INCR", "id").Output()
	if err != nil {
		return r, fmt.Errorf("redis-benchmark: %w: %s", err, out)
	}
	r, err = parseRedisBenchmark(string(out))
	r.answers, r.cpu = asked, s.cpuTime()-before
	return r, err
}

// parseRedisBenchmark reads the CSV of redis-benchmark: a line of names, and one of values.
func parseRedisBenchmark(text string) (r webRound, err error) {
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
	r = webRound{perSecond: values["rps"], p50: values["p50_latency_ms"] * 1000, p99: values["p99_latency_ms"] * 1000, p999: math.NaN()}
	if !(r.perSecond > 0 && r.p50 > 0 && r.p99 > 0) {
		return r, fmt.Errorf("redis-benchmark printed %q; want rps, p50_latency_ms and p99_latency_ms", text)
	}
	return r, nil
}
