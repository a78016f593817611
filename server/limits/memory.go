package limits

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// Memory is how much of it a process may use.
type Memory struct {
	Bytes  int64  // zero: it can't be told
	Source string // what says so, for people: a cgroup's path, "machine" or "GOMEMLIMIT"; empty with zero bytes

	// Heap is what the user wants the Go runtime to aim for, as GOMEMLIMIT; zero: nothing in particular.
	Heap int64
}

// Find finds how much memory there is: that of the machine, or less if a cgroup that this process is in has a limit,
// or if GOMEMLIMIT wants less.
func Find() Memory { return find(os.DirFS("/"), debug.SetMemoryLimit(-1)) }

// find is Find for a root directory, and for a limit of the Go runtime.
func find(root fs.FS, goLimit int64) (m Memory) {
	m.atMost(machine(root), "machine")
	for _, g := range cgroups(root) {
		m.atMost(g.limit(root), g.path)
	}
	if goLimit != math.MaxInt64 {
		m.Heap = goLimit
		m.atMost(goLimit/3*4, "GOMEMLIMIT") // see Limits.Heap
	}
	return m
}

func (m *Memory) atMost(bytes int64, source string) {
	if bytes > 0 && (m.Bytes == 0 || bytes < m.Bytes) {
		m.Bytes, m.Source = bytes, source
	}
}

// machine is how much memory the machine has; zero: it does not tell.
func machine(root fs.FS) int64 {
	for line := range lines(root, "proc/meminfo") {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemTotal:" {
			return number(f[1]) << 10
		}
	}
	return 0
}

// cgroup is a directory of one, below the root.
type cgroup struct {
	path string
	file string // that has its limit
}

func (g cgroup) limit(root fs.FS) int64 {
	text, err := fs.ReadFile(root, path.Join(g.path[1:], g.file))
	if err != nil {
		return 0 // a root has none, and a hierarchy without memory neither
	}
	return number(strings.TrimSpace(string(text)))
}

// number reads a number; zero: it is none, such as max.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// cgroups are those that limit the memory of this process, in either version, as far up as they can be seen from here.
func cgroups(root fs.FS) (all []cgroup) {
	for mount := range lines(root, "proc/self/mountinfo") {
		// 36 25 0:31 /of/the/hierarchy /where options - cgroup source rw,memory
		before, after, _ := strings.Cut(mount, " - ")
		f, kind := strings.Fields(before), strings.Fields(after)
		if len(f) < 5 || len(kind) < 3 {
			continue
		}
		file, controller := "memory.max", ""
		switch {
		case kind[0] == "cgroup" && strings.Contains(","+kind[2]+",", ",memory,"):
			file, controller = "memory.limit_in_bytes", "memory"
		case kind[0] != "cgroup2":
			continue
		}
		for dir := path.Join(f[4], below(f[3], own(root, controller))); ; dir = path.Dir(dir) {
			all = append(all, cgroup{dir, file})
			if len(dir) <= len(f[4]) {
				break
			}
		}
	}
	return all
}

// own is the path of this process's cgroup in the hierarchy of a controller; empty: version 2.
func own(root fs.FS, controller string) string {
	for line := range lines(root, "proc/self/cgroup") {
		f := strings.SplitN(line, ":", 3) // 4:memory:/path
		if len(f) == 3 && (f[1] == controller || controller != "" && strings.Contains(","+f[1]+",", ","+controller+",")) {
			return f[2]
		}
	}
	return "/"
}

// below is what a path has below another, of which a mount shows no more than that. A container may see the path that
// its cgroup has on the host, and the cgroup itself as the root.
func below(top, p string) string {
	rest, ok := strings.CutPrefix(p, strings.TrimSuffix(top, "/"))
	if !ok || rest != "" && rest[0] != '/' {
		return "/"
	}
	return path.Clean("/" + rest)
}

// lines are those of a file; there are none when it can't be read.
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
