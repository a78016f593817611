package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/ops/load"
)

// runHTTP measures how many requests firn serve answers, beside servers that answer without making an ID.
func runHTTP(ctx context.Context, s settings, c *contest) ([]table, error) {
	if err := c.startForHTTP(ctx, s); err != nil {
		return nil, err
	}
	var tables []table
	for _, connections := range []int{1, 16, 128} {
		if err := c.askInTurn(ctx, s, connections); err != nil {
			return nil, err
		}
		t := table{
			Title: "http: one ID with each request, " + counted(connections, "connection"),
			Note: "The servers share the CPUs with the callers. Medians over the rounds; the CPU time is the " +
				"server's." + c.notes,
			columns: []column{
				{"per_second", "requests/s", "%.0f"},
				{"ratio", "to the constant", "%.2f"},
				{"p50_us", "p50 µs", "%.0f"},
				{"p99_us", "p99 µs", "%.0f"},
				{"p999_us", "p99.9 µs", "%.0f"},
				{"cpu_us", "CPU µs", "%.1f"},
			},
		}
		firn, constant := c.rivals[0], c.rivals[1]
		for _, r := range c.rivals {
			t.add(r.name, r.median(perSecond), r.ratioTo(constant),
				r.median(func(r round) float64 { return r.p50 }),
				r.median(func(r round) float64 { return r.p99 }),
				r.median(func(r round) float64 { return r.p999 }),
				r.cpuPerAnswer())
		}
		t.Targets = []target{atLeast("requests/s of firn serve to the constant", firn.ratioTo(constant), 0.95)}
		tables = append(tables, t)
	}
	return tables, nil
}

// runPacked measures batches from firn serve over HTTP, packed and in JSON. The caller reads every ID.
func runPacked(ctx context.Context, s settings, c *contest) ([]table, error) {
	// many more IDs/s than a caller takes
	if err := c.addFirn(ctx, "packed", "http", nil, "--layout", "41/1/21"); err != nil {
		return nil, err
	}
	other := *c.rivals[0] // the same server
	other.name = "JSON"
	c.rivals = append(c.rivals, &other)
	for _, r := range c.rivals {
		r.ask = overLoad(batchOf, func(address string, _ int) (load.Connection, error) {
			return dial("http", address, load.Access{JSON: r.name == "JSON"})
		})
	}
	var tables []table
	for _, connections := range []int{1, 16} {
		if err := c.askInTurn(ctx, s, connections); err != nil {
			return nil, err
		}
		t := table{
			Title: fmt.Sprintf("packed: batches of %d over HTTP, %s", batchOf, counted(connections, "connection")),
			Note: "One server, asked for packed IDs and for JSON in turn. Callers, on the same machine, read " +
				"every ID.",
			columns: []column{
				{"ids_per_second", "IDs/s", "%.0f"},
				{"cpu_ns", "server CPU ns/ID", "%.1f"},
				{"to_json", "IDs/s to JSON", "%.2f"},
			},
		}
		packed, json := c.rivals[0], c.rivals[1]
		for _, r := range c.rivals {
			t.add(r.name, batchOf*r.median(perSecond), r.cpuPerAnswer()*1e3/batchOf, r.ratioTo(json))
		}
		t.Targets = []target{atLeast("IDs/s of packed to JSON", packed.ratioTo(json), 5)}
		tables = append(tables, t)
	}
	return tables, nil
}

// startForHTTP starts firn serve, a server that always answers the same, and nginx and Redis where they are installed.
func (c *contest) startForHTTP(ctx context.Context, s settings) error {
	constant, err := s.build(ctx, "constant")
	if err != nil {
		return err
	}
	if err := c.addFirn(ctx, "firn serve", "http", overLoad(1, dialLean)); err != nil {
		return err
	}
	body, err := answer(ctx, c.rivals[0].address) // the others give the same
	if err != nil {
		return err
	}
	return errors.Join(
		c.add(ctx, "net/http, a constant", "http", overLoad(1, dialLean), func(address string) (*process, error) {
			return c.start(ctx, constant, "http", address, body)
		}),
		c.add(ctx, "nginx, a constant", "http", overLoad(1, dialLean), func(address string) (*process, error) {
			return c.startNginx(ctx, address, body)
		}),
		c.add(ctx, "Redis, INCR (redis-benchmark)", "redis", overRedis(1), func(address string) (*process, error) {
			return c.startRedis(ctx, address)
		}))
}

// answer returns the body of an answer with an ID.
func answer(ctx context.Context, address string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/api/v1/id", http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// lean is a connection that asks for one ID with the same bytes each time. It shares the CPUs with the server, and
// http.Transport would take as much of them as the server does.
type lean struct {
	net.Conn
	in      *bufio.Reader
	request []byte
}

func dialLean(address string, _ int) (load.Connection, error) {
	network, host := "tcp", address
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address, host = "unix", path, "localhost"
	}
	conn, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return &lean{
		conn, bufio.NewReader(conn),
		fmt.Appendf(nil, "POST /api/v1/id HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\n\r\n", host),
	}, nil
}

func (l *lean) Close() { _ = l.Conn.Close() }

func (l *lean) Take(_ context.Context, ids []firn.ID) error {
	if _, err := l.Write(l.request); err != nil {
		return err
	}
	response, err := http.ReadResponse(l.in, nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	if n, err := io.Copy(io.Discard, response.Body); err != nil || n == 0 || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s with %d bytes: %w", response.Status, n, err)
	}
	ids[0] = 0 // which one came does not matter
	return nil
}

// nginxConf has nginx write no log, and keep connections as long as firn serve does.
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
			add_header Vary Accept;
			return 200 '%s';
		}
	}
}
`

func (c *contest) startNginx(ctx context.Context, address, body string) (*process, error) {
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		if nginx, err = exec.LookPath("/usr/sbin/nginx"); err != nil { // which is not on everybody's path
			return nil, err
		}
	}
	conf := fmt.Sprintf(nginxConf, address, strings.ReplaceAll(body, "\n", `\n`))
	if err := os.WriteFile(filepath.Join(c.dir, "nginx.conf"), []byte(conf), 0o600); err != nil {
		return nil, err
	}
	return c.start(ctx, nginx, "-p", c.dir, "-c", "nginx.conf", "-e", "stderr")
}
