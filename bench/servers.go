package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// contest are the servers that are measured beside firn serve, which is the first; the constant is the second.
type contest struct {
	dir   string
	all   []*rival
	notes string // tell which are not here, and why
}

// rival is a server in a contest, and how it is asked.
type rival struct {
	*process
	name    string
	address string
	ask     askFunc
	rounds  []round // so far, over the present number of connections
}

func (w *contest) stop() {
	for _, s := range w.all {
		s.stop()
	}
}

// start starts all that are here, and waits until they serve. What has started by then must be stopped after an error.
func (w *contest) start(ctx context.Context, firn, constant string) error {
	p, address, err := startFirn(ctx, firn, w.dir)
	if err != nil {
		return err
	}
	w.all = append(w.all, &rival{process: p, name: "firn serve", address: address, ask: overHTTP})
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
	nginx := func(address string) (*process, error) { return w.startNginx(ctx, address, body) }
	redis := func(address string) (*process, error) { return w.startRedis(ctx, address) }
	return errors.Join(
		w.addIfHere(ctx, "nginx, a constant", overHTTP, nginx),
		w.addIfHere(ctx, "Redis, INCR (redis-benchmark)", overRedis(1), redis),
	)
}

// addIfHere adds a server that need not be installed.
func (w *contest) addIfHere(ctx context.Context, name string, ask askFunc, start func(address string) (*process, error)) error {
	err := w.add(ctx, name, ask, start)
	if errors.Is(err, exec.ErrNotFound) {
		w.notes += fmt.Sprintf("\nNot here: %s. %v", name, err)
		return nil
	}
	return err
}

// askFunc asks a server over so many connections for about the given time, or shortly if that is zero.
type askFunc func(ctx context.Context, s *rival, connections int, d time.Duration) (round, error)

// add starts a server, and waits until it answers. exec.ErrNotFound is returned when it is not installed.
func (w *contest) add(ctx context.Context, name string, ask askFunc, start func(address string) (*process, error)) error {
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	p, err := start(address)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s := &rival{process: p, name: name, address: address, ask: ask}
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

func (w *contest) startNginx(ctx context.Context, address, body string) (*process, error) {
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
