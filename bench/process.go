package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// process is a server that was started to be measured.
type process struct {
	command *exec.Cmd
	output  bytes.Buffer  // to be read once it has ended
	ended   chan struct{} // closed then
	started time.Time
}

// start starts a program in a directory.
func start(ctx context.Context, dir, program string, args ...string) (*process, error) {
	p := &process{command: exec.CommandContext(ctx, program, args...), ended: make(chan struct{})}
	p.command.Dir = dir
	p.command.Stdout, p.command.Stderr = &p.output, &p.output
	p.started = time.Now()
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.command.Wait()
		close(p.ended)
	}()
	return p, nil
}

// await tries until it works, and returns how long that took since the start.
func (p *process) await(ctx context.Context, try func() error) (time.Duration, error) {
	const patience = time.Minute
	var err error
	for time.Since(p.started) < patience {
		if err = try(); err == nil {
			return time.Since(p.started), nil
		}
		select {
		case <-p.ended:
			return 0, fmt.Errorf("%s ended before it served: %s", p.command, &p.output)
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return 0, fmt.Errorf("%s did not serve within %v: %w", p.command, patience, err)
}

func (p *process) stop() {
	_ = p.command.Process.Signal(os.Interrupt)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = p.command.Process.Kill()
		<-p.ended
	}
}

// residentMemory is what the process holds, in bytes.
func (p *process) residentMemory() (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
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

// cpu is what the process and its children have used, in whole clock ticks of 10 ms.
func (p *process) cpu() (time.Duration, error) {
	const tick = 10 * time.Millisecond
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	pid := p.command.Process.Pid
	var ticks int
	found := false
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		parent, used, err := parseStat(string(stat))
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		if itself := path == fmt.Sprintf("/proc/%d/stat", pid); itself || parent == pid {
			ticks += used
			found = found || itself
		}
	}
	if !found {
		return 0, fmt.Errorf("/proc has no process %d", pid)
	}
	return time.Duration(ticks) * tick, nil
}

// parseStat reads the parent of a process, and the clock ticks that it has used, from its stat in /proc.
func parseStat(stat string) (parent, ticks int, err error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]) // its name may hold anything
	if len(fields) < 13 {
		return 0, 0, fmt.Errorf("%q is too short", stat)
	}
	parent, err = strconv.Atoi(fields[1])
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return parent, user + system, errors.Join(err, err1, err2)
}

// freeAddress is where nobody listens.
func freeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// build builds a program of this repository, whose package is named from the directory bench on.
func build(ctx context.Context, dir, program string) (binary string, err error) {
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("there is no %s; run this in the directory bench of the repository", program)
	}
	binary = filepath.Join(dir, filepath.Base(program))
	command := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	command.Dir = program // whose module it is
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build in %s: %w: %s", program, err, out)
	}
	return binary, nil
}

// startFirn starts firn serve with an empty data directory, and the given flags.
func startFirn(ctx context.Context, binary, dir string, args ...string) (p *process, address string, err error) {
	if address, err = freeAddress(ctx); err != nil {
		return nil, "", err
	}
	args = append([]string{"serve", "--http-addr", address, "--admin-addr", "none", "--data-dir", filepath.Join(dir, "data"), "--drain-delay", "0s"}, args...)
	p, err = start(ctx, dir, binary, args...)
	return p, address, err
}
