package limits

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// Memory is how much memory a process may use.
type Memory struct {
	Bytes  int64  // zero: unknown
	Source string // of Bytes, for people: a cgroup's path, "machine" or "GOMEMLIMIT"; empty with zero bytes

	// Heap is GOMEMLIMIT, in bytes; zero: not set.
	Heap int64

	in cgroup // the cgroup with the smallest limit; zero: no cgroup has a limit
}

// Used returns how many bytes all processes that share the memory use, without cached files. Zero: unknown, as
// for a whole machine.
func (m Memory) Used() int64 { return m.used(os.DirFS("/")) }

func (m Memory) used(root fs.FS) int64 {
	if m.in.path == "" {
		return 0
	}
	usage, cached := "memory.current", []string{"active_file", "inactive_file"}
	if m.in.v1 {
		usage, cached = "memory.usage_in_bytes", []string{"total_active_file", "total_inactive_file"}
	}
	used := m.in.read(root, usage)
	for line := range lines(root, path.Join(m.in.path[1:], "memory.stat")) {
		if name, bytes, _ := strings.Cut(line, " "); slices.Contains(cached, name) {
			used -= number(bytes)
		}
	}
	return max(0, used)
}

// Find returns how much memory there is: that of the machine, or less if a cgroup of this process or GOMEMLIMIT
// sets a lower limit.
func Find() Memory { return find(os.DirFS("/"), debug.SetMemoryLimit(-1)) }

// find is Find with a root directory and the Go runtime's memory limit.
func find(root fs.FS, goLimit int64) (m Memory) {
	m.atMost(machine(root), "machine")
	for _, g := range cgroups(root) {
		if m.atMost(g.limit(root), g.path) {
			m.in = g
		}
	}
	if goLimit != math.MaxInt64 {
		m.Heap = goLimit
		m.atMost(goLimit/3*4, "GOMEMLIMIT") // see Limits.Heap
	}
	return m
}

// atMost applies a limit, and reports whether it is the lowest so far.
func (m *Memory) atMost(bytes int64, source string) bool {
	less := bytes > 0 && (m.Bytes == 0 || bytes < m.Bytes)
	if less {
		m.Bytes, m.Source = bytes, source
	}
	return less
}

// machine returns the memory of the machine in bytes; zero: unknown.
func machine(root fs.FS) int64 {
	for line := range lines(root, "proc/meminfo") {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemTotal:" {
			return number(f[1]) << 10
		}
	}
	return 0
}

// cgroup is the directory of a cgroup.
type cgroup struct {
	path string
	v1   bool
}

func (g cgroup) limit(root fs.FS) int64 {
	if g.v1 {
		return g.read(root, "memory.limit_in_bytes")
	}
	return g.read(root, "memory.max")
}

// read reads a number; zero: no such file, as in a root cgroup or a hierarchy without memory.
func (g cgroup) read(root fs.FS, name string) int64 {
	text, _ := fs.ReadFile(root, path.Join(g.path[1:], name))
	return number(strings.TrimSpace(string(text)))
}

// number parses a number; zero: not a number, such as max.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// cgroups returns the cgroups that limit the memory of this process, of either version, up to the topmost visible
// one.
func cgroups(root fs.FS) (all []cgroup) {
	for mount := range lines(root, "proc/self/mountinfo") {
		// 36 25 0:31 /of/the/hierarchy /where options - cgroup source rw,memory
		before, after, _ := strings.Cut(mount, " - ")
		f, kind := strings.Fields(before), strings.Fields(after)
		if len(f) < 5 || len(kind) < 3 {
			continue
		}
		v1, controller := kind[0] == "cgroup" && strings.Contains(","+kind[2]+",", ",memory,"), ""
		switch {
		case v1:
			controller = "memory"
		case kind[0] != "cgroup2":
			continue
		}
		for dir := path.Join(f[4], below(f[3], own(root, controller))); ; dir = path.Dir(dir) {
			all = append(all, cgroup{dir, v1})
			if len(dir) <= len(f[4]) {
				break
			}
		}
	}
	return all
}

// own returns the path of this process's cgroup in the hierarchy of a controller; an empty controller means
// version 2.
func own(root fs.FS, controller string) string {
	for line := range lines(root, "proc/self/cgroup") {
		f := strings.SplitN(line, ":", 3) // 4:memory:/path
		if len(f) == 3 &&
			(f[1] == controller || controller != "" && strings.Contains(","+f[1]+",", ","+controller+",")) {
			return f[2]
		}
	}
	return "/"
}

// below returns the part of a path below top, which is all that a mount shows. A container may see the host's
// path of its cgroup, but the cgroup itself as the root.
func below(top, p string) string {
	rest, ok := strings.CutPrefix(p, strings.TrimSuffix(top, "/"))
	if !ok || rest != "" && rest[0] != '/' {
		return "/"
	}
	return path.Clean("/" + rest)
}

// lines returns the lines of a file; none if it can't be read.
func lines(root fs.FS, name string) func(func(string) bool) {
	text, _ := fs.ReadFile(root, name)
	return func(yield func(string) bool) {
		for line := range strings.Lines(string(text)) {
			if !yield(strings.TrimSuffix(line, "\n")) {
				return
			}
		}
	}
}
