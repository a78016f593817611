package node

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/firn-id/firn/internal/server/limits"
)

// fit are the limits of a process that this configuration is for, whatever it says of them, and the memory that they follow
// from.
func (c Config) fit() (limits.Limits, limits.Memory) {
	m := limits.Find()
	files, _ := limits.OpenFiles() // zero where nobody knows
	l := limits.For(m.Bytes, int64(min(files, math.MaxInt64)), c.TLS.Cert != "")
	if m.Heap != 0 {
		l.Heap = m.Heap
	}
	return l, m
}

// chosen are the limits with those that the configuration says.
func (c Config) chosen(l limits.Limits) limits.Limits {
	if c.MaxConnections != 0 {
		l.Connections = c.MaxConnections
	}
	if c.MaxCalls != 0 {
		l.Calls = c.MaxCalls
	}
	return l
}

// limitMemory has the Go runtime keep to its share of the memory, and says in the log what all limits are.
func (n *Node) limitMemory() {
	l := n.limits
	fit, m := n.config.fit()
	if m.Heap == 0 && m.Bytes != 0 {
		debug.SetMemoryLimit(l.Heap + ballast) // which the runtime counts, though it is never there
	}
	if m.Bytes == 0 {
		n.log.Warn("can't find the amount of memory, so the limits are those of a large machine; set GOMEMLIMIT")
	} else {
		n.log.Info("limits", "memory", mib(m.Bytes), "from", m.Source, "heap", mib(l.Heap), "connections", l.Connections,
			"calls", l.Calls, "answers", mib(l.Answers))
	}
	warn := func(setting string, asked, fits, most int) {
		if asked > fits && fits < most {
			n.log.Warn("the limit is higher than memory and open files allow: the process may be killed", "setting", setting, "asked", asked, "fits", fits)
		}
	}
	warn("max-connections", l.Connections, fit.Connections, limits.MaxConnections)
	warn("max-calls", l.Calls, fit.Calls, limits.MaxCalls)
}

// lookAtMemory is how often the memory is looked at.
const lookAtMemory = 100 * time.Millisecond

// shed closes connections of callers while memory runs out, until ctx ends: when what is in use comes to two thirds of
// what the Go runtime aims for, since with more it would do little but collect garbage; and when the cgroup, in which the
// kernel's memory counts, has hardly any left. The limits are made so that this does not happen, but the configuration may say
// otherwise, and not everything is counted.
func (n *Node) shed(ctx context.Context) {
	m := limits.Find()
	if m.Bytes == 0 {
		return
	}
	mostInUse, mostUsed, again := n.limits.Heap/3*2, m.Bytes-m.Bytes/8, uint64(0)
	for look := time.NewTicker(lookAtMemory); ; {
		select {
		case <-look.C:
		case <-ctx.Done():
			look.Stop()
			return
		}
		inUse, cycle := memoryInUse()
		switch used := m.Used(); {
		case inUse >= mostInUse && cycle >= again:
			again = cycle + 2 // when it is known what is in use without those that are closed now
		case used < mostUsed:
			continue
		default:
			if debug.FreeOSMemory(); m.Used() < mostUsed { // it was garbage
				continue
			}
		}
		n.log.Warn("memory runs out: closing connections of callers", "in_use", mib(inUse), "memory", mib(m.Bytes), "closed", n.callers.Shed())
	}
}

// memoryInUse is how many bytes were in use when garbage was last collected, and in which cycle that was.
func memoryInUse() (bytes int64, cycle uint64) {
	all := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(all)
	return int64(all[0].Value.Uint64()+all[1].Value.Uint64()) - ballast, all[2].Value.Uint64()
}

func mib(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }
