package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// podMemory is what firn gen kubernetes gives a pod.
const podMemory = 256 << 20

// pod is a memory cgroup of its own, as Kubernetes makes one for a pod. The kernel kills a process that needs more than
// its limit.
type pod struct {
	t   testing.TB
	dir string
	v2  bool
}

// newPod makes a pod of so many bytes. The test is skipped where no cgroup can be made.
func newPod(t testing.TB, limit int64) *pod {
	t.Helper()
	p := &pod{t: t}
	parent, v2, err := memoryCgroup()
	if err == nil {
		p.v2 = v2
		p.dir, err = os.MkdirTemp(parent, "firn-e2e-")
	}
	if err != nil {
		t.Skipf("it needs a memory cgroup of its own: run it as root, where cgroups can be written to: %v", err)
	}
	t.Cleanup(p.remove)
	if err := os.WriteFile(p.file("memory.limit_in_bytes", "memory.max"), strconv.AppendInt(nil, limit, 10),
		0o600); err != nil {
		t.Skipf("it needs a memory cgroup with a limit: %v", err)
	}
	return p
}

// memoryCgroup is the nearest cgroup to this process's own that may have children with a limit of memory.
func memoryCgroup() (dir string, v2 bool, err error) {
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return "", false, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", false, err
	}
	for mount := range strings.Lines(string(mounts)) {
		f := strings.Fields(mount)
		v1 := f[2] == "cgroup" && strings.Contains(","+f[3]+",", ",memory,")
		if !v1 && f[2] != "cgroup2" {
			continue
		}
		for line := range strings.Lines(string(own)) {
			controller, path, _ := strings.Cut(strings.TrimSpace(line[strings.Index(line, ":")+1:]), ":")
			if v1 != (controller == "memory") || !v1 && controller != "" {
				continue
			}
			for dir := filepath.Join(f[1], path); len(dir) >= len(f[1]); dir = filepath.Dir(dir) {
				children, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
				_, here := os.Stat(dir)
				if v1 && here == nil || err == nil && strings.Contains(string(children), "memory") {
					return dir, !v1, nil
				}
			}
		}
	}
	return "", false, errors.New("none is mounted that has memory for its children")
}

func (p *pod) file(v1, v2 string) string {
	if p.v2 {
		return filepath.Join(p.dir, v2)
	}
	return filepath.Join(p.dir, v1)
}

func (p *pod) number(file string) int64 {
	p.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// used is how many bytes it has now, and peak how many it had at most: those of the kernel and of cached files are
// among them.
func (p *pod) used() int64 { return p.number(p.file("memory.usage_in_bytes", "memory.current")) }
func (p *pod) peak() int64 { return p.number(p.file("memory.max_usage_in_bytes", "memory.peak")) }

// settled is how many bytes it has once that has not grown for half a second.
func (p *pod) settled() (most int64) {
	p.t.Helper()
	for still := 0; still < 10; still++ {
		if now := p.used(); now > most+most/100 {
			most, still = now, 0
		}
		time.Sleep(50 * time.Millisecond)
	}
	return most
}

// killed is how many of its processes were killed for want of memory.
func (p *pod) killed() int {
	p.t.Helper()
	f, err := os.Open(p.file("memory.oom_control", "memory.events"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "oom_kill "); ok {
			n, err := strconv.Atoi(text)
			if err != nil {
				p.t.Fatal(err)
			}
			return n
		}
	}
	p.t.Fatalf("%s does not say how many were killed", f.Name())
	return 0
}

// firn is a program that runs the one of a test in the pod.
func (p *pod) firn() (string, error) {
	path, err := firn()
	if err != nil {
		return "", err
	}
	script := filepath.Join(p.t.TempDir(), "in-pod")
	text := fmt.Sprintf("#!/bin/sh\necho $$ > %s/cgroup.procs && exec %s \"$@\"\n", p.dir, path)
	syscall.ForkLock.RLock() // a process forked meanwhile would have it open for writing, so that it could not be run
	defer syscall.ForkLock.RUnlock()
	return script, os.WriteFile(script, []byte(text), 0o700)
}

// serve is serve in the pod.
func (p *pod) serve(name string, args ...string) *node {
	p.t.Helper()
	return start(p.t, p.firn, name, "", args...)
}

// remove waits for the processes to have left it, which were killed before.
func (p *pod) remove() {
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		err := syscall.Rmdir(p.dir)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			p.t.Errorf("%s can't be removed: %v", p.dir, err)
			return
		}
	}
}
