package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// runServe measures the service: how long from its start to its first ID, what memory it
// then holds, and how many requests it answers.
func runServe(ctx context.Context, s settings) ([]table, error) {
	t := table{
		Title:   "serve: firn serve with nothing but an empty data directory",
		columns: []column{{"value", "value", "%.0f"}},
	}
	dir, err := os.MkdirTemp("", "firn-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	s.tell("building firn")
	binary, err := buildFirn(ctx, dir)
	if err != nil {
		s.tell("skipping serve: %v", err)
		t.Note = "Skipped: " + err.Error()
		return []table{t}, nil
	}
	s.tell("starting firn serve")
	served, err := startFirn(ctx, binary, dir)
	if err != nil {
		return nil, err
	}
	defer served.stop()
	first, err := served.firstID(ctx)
	if err != nil {
		return nil, err
	}
	t.rows = append(t.rows, row{"ms to the first ID", []float64{float64(first) / 1e6}})
	memory, err := residentMemory(served.process.Process.Pid)
	if err != nil {
		t.Note = "Resident memory is not known here: " + err.Error()
	} else {
		t.rows = append(t.rows, row{"resident memory then, MiB", []float64{memory / (1 << 20)}})
	}
	for _, connections := range []int{1, 16} {
		s.tell("requests over %d connections", connections)
		rate, err := served.requests(ctx, connections, s.requests)
		if err != nil {
			return nil, err
		}
		t.rows = append(t.rows, row{fmt.Sprintf("requests/s over %d connections", connections), []float64{rate}})
	}
	return []table{t}, nil
}

func buildFirn(ctx context.Context, dir string) (binary string, err error) {
	if _, err := os.Stat(filepath.Join("..", "cmd", "firn")); err != nil {
		return "", errors.New("there is no ../cmd/firn; run this in the directory bench of the repository")
	}
	binary = filepath.Join(dir, "firn")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/firn")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/firn: %w: %s", err, out)
	}
	return binary, nil
}

// served is a running firn serve.
type served struct {
	process *exec.Cmd
	output  *bytes.Buffer // of the process, to be read once it has ended
	ended   chan struct{}
	url     string
	started time.Time
	client  *http.Client
}

func startFirn(ctx context.Context, binary, dir string, args ...string) (*served, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	s := &served{
		output: new(bytes.Buffer),
		ended:  make(chan struct{}),
		url:    "http://" + address + "/api/v1/id",
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 5 * time.Second},
	}
	args = append([]string{"serve", "--http-addr", address, "--data-dir", filepath.Join(dir, "data")}, args...)
	s.process = exec.CommandContext(ctx, binary, args...)
	s.process.Dir = dir
	s.process.Stdout, s.process.Stderr = s.output, s.output
	s.started = time.Now()
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.process.Wait()
		close(s.ended)
	}()
	return s, nil
}

func freeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// firstID asks until there is an ID, and returns how long that took since the start.
func (s *served) firstID(ctx context.Context) (time.Duration, error) {
	const patience = time.Minute
	for time.Since(s.started) < patience {
		if s.ask(ctx) == nil {
			return time.Since(s.started), nil
		}
		select {
		case <-s.ended:
			return 0, fmt.Errorf("firn serve ended before it gave an ID: %s", s.output)
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return 0, fmt.Errorf("firn serve gave no ID in %v", patience)
}

// ask asks for one ID.
func (s *served) ask(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, nil)
	if err != nil {
		return err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// requests asks over so many connections at once, one ID each time, and returns how many
// answers came per second.
func (s *served) requests(ctx context.Context, connections int, d time.Duration) (perSecond float64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	var answers atomic.Int64
	start := time.Now()
	for range connections {
		all.Go(func() {
			for time.Since(start) < d && ctx.Err() == nil {
				if err := s.ask(ctx); err != nil {
					cancel(err)
					return
				}
				answers.Add(1)
			}
		})
	}
	all.Wait()
	return float64(answers.Load()) / time.Since(start).Seconds(), context.Cause(ctx)
}

func (s *served) stop() {
	_ = s.process.Process.Signal(os.Interrupt)
	select {
	case <-s.ended:
	case <-time.After(10 * time.Second):
		_ = s.process.Process.Kill()
		<-s.ended
	}
}

// residentMemory is what a process holds, in bytes.
func residentMemory(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, "VmRSS:"); found {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			return kib * 1024, err
		}
	}
	return 0, errors.New("no VmRSS")
}
