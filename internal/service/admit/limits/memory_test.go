package limits

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestFind(t *testing.T) {
	const (
		unlimited = "9223372036854771712\n" // as version 1 writes it
		machine   = "MemTotal:        8388608 kB\nMemFree: 1 kB\n"
		v1        = "35 24 0:30 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
		v2        = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	)
	for _, c := range []struct {
		name  string
		files map[string]string
		limit int64
		want  Memory
	}{
		{"nothing is known", nil, math.MaxInt64, Memory{}},
		{
			"a machine",
			map[string]string{"proc/meminfo": machine},
			math.MaxInt64,
			Memory{Bytes: 8 << 30, Source: "machine"},
		},
		{
			"a pod of version 2, in a namespace of its own", map[string]string{
				"proc/meminfo": machine, "proc/self/cgroup": "0::/\n", "proc/self/mountinfo": v2,
				"sys/fs/cgroup/memory.max": "268435456\n",
			}, math.MaxInt64, Memory{Bytes: 256 << 20, Source: "/sys/fs/cgroup"},
		},
		{
			"a unit of version 2, whose slice has less", map[string]string{
				"proc/meminfo": machine, "proc/self/cgroup": "0::/system.slice/firn.service\n",
				"proc/self/mountinfo":                                v2,
				"sys/fs/cgroup/system.slice/firn.service/memory.max": "2147483648\n",
				"sys/fs/cgroup/system.slice/memory.max":              "1073741824\n",
			}, math.MaxInt64, Memory{Bytes: 1 << 30, Source: "/sys/fs/cgroup/system.slice"},
		},
		{
			"no limit in either version", map[string]string{
				"proc/meminfo": machine, "proc/self/cgroup": "4:memory:/a\n0::/\n", "proc/self/mountinfo": v1 + v2,
				"sys/fs/cgroup/memory/a/memory.limit_in_bytes": unlimited, "sys/fs/cgroup/memory.max": "max\n",
			}, math.MaxInt64, Memory{Bytes: 8 << 30, Source: "machine"},
		},
		{
			"version 1, with the container's path of the host", map[string]string{
				"proc/self/cgroup": "5:cpu:/docker/b\n4:hugetlb,memory:/docker/a\n0::/docker/a\n",
				"proc/self/mountinfo": "35 24 0:30 /docker/a /sys/fs/cgroup/memory ro - cgroup " +
					"cgroup rw,hugetlb,memory\n",
				"sys/fs/cgroup/memory/memory.limit_in_bytes": "536870912\n",
			}, math.MaxInt64, Memory{Bytes: 512 << 20, Source: "/sys/fs/cgroup/memory"},
		},
		{
			"version 1, with a mount of another container's", map[string]string{
				"proc/self/cgroup":    "4:memory:/docker/ab/c\n",
				"proc/self/mountinfo": "35 24 0:30 /docker/a /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",

				"sys/fs/cgroup/memory/memory.limit_in_bytes": "536870912\n",
			}, math.MaxInt64, Memory{Bytes: 512 << 20, Source: "/sys/fs/cgroup/memory"},
		},
		{
			"GOMEMLIMIT is less",
			map[string]string{"proc/meminfo": machine},
			3 << 30,
			Memory{Bytes: 4 << 30, Source: "GOMEMLIMIT", Heap: 3 << 30},
		},
		{
			"GOMEMLIMIT is more",
			map[string]string{"proc/meminfo": machine},
			30 << 30,
			Memory{Bytes: 8 << 30, Source: "machine", Heap: 30 << 30},
		},
		{
			"what can't be understood", map[string]string{
				"proc/meminfo": "MemTotal:\nMemTotal: many kB\n", "proc/self/cgroup": "\n::\n0\n",
				"proc/self/mountinfo":      "\n - \n1 2 - cgroup2\n" + v2,
				"sys/fs/cgroup/memory.max": "-1\n",
			}, math.MaxInt64, Memory{},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := fstest.MapFS{}
			for name, text := range c.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			got := find(root, c.limit)
			if c.want.in = got.in; got != c.want || got.in.path != "" && got.Source != got.in.path {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// Used is the use of the cgroup with the limit, without cached files.
func TestUsed(t *testing.T) {
	for _, c := range []struct {
		in    cgroup
		files map[string]string
		want  int64
	}{
		{cgroup{"/a", false}, map[string]string{
			"a/memory.current": "1000\n",
			"a/memory.stat":    "anon 1\ninactive_file 100\nactive_file 20\n",
		}, 880},
		{cgroup{"/a", true}, map[string]string{
			"a/memory.usage_in_bytes": "1000\n",
			"a/memory.stat":           "active_file 5\ntotal_inactive_file 100\ntotal_active_file 20\n",
		}, 880},
		{cgroup{"/a", true}, nil, 0},
		{cgroup{}, map[string]string{"memory.current": "1000\n"}, 0},
	} {
		root := fstest.MapFS{}
		for name, text := range c.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := (Memory{in: c.in}).used(root); got != c.want {
			t.Errorf("%+v: %d, want %d", c, got, c.want)
		}
	}
}
