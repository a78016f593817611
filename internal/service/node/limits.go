package node

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/firn-id/firn/internal/service/admit/limits"
)

// fit returns the limits that the machine allows, without those of the configuration, and the memory they derive
// from.
func (c Config) fit() (limits.Limits, limits.Memory) {
	m := limits.Find()
	files, _ := limits.OpenFiles() // zero: unknown
	l := limits.For(m.Bytes, int64(min(files, math.MaxInt64)), c.TLS.Cert != "")
	if m.Heap != 0 {
		l.Heap = m.Heap
	}
	return l, m
}

// chosen returns the limits with those of the configuration.
func (c Config) chosen(l limits.Limits) limits.Limits {
	if c.MaxConnections != 0 {
		l.Connections = c.MaxConnections
	}
	if c.MaxCalls != 0 {
		l.Calls = c.MaxCalls
	}
	return l
}

// limitMemory limits the Go runtime to its share of the memory, and logs all limits.
func (n *Node) limitMemory() {
	l := n.limits
	fit, m := n.config.fit()
	if m.Heap == 0 && m.Bytes != 0 {
		debug.SetMemoryLimit(l.Heap + ballast) // which the runtime counts, though it takes no memory
	}
	if m.Bytes == 0 {
		n.log.Warn("can't find the amount of memory, so the limits are those of a large machine; set GOMEMLIMIT")
	} else {
		n.log.Info("limits", "memory", mib(m.Bytes), "from", m.Source, "heap", mib(l.Heap),
			"connections", l.Connections,
			"calls", l.Calls, "answers", mib(l.Answers))
	}
	warn := func(setting string, asked, fits, most int) {
		if asked > fits && fits < most {
			n.log.Warn("the limit is higher than memory and open files allow: the process may be killed", "setting",
				setting, "asked", asked, "fits", fits)
		}
	}
	warn("max-connections", l.Connections, fit.Connections, limits.MaxConnections)
	warn("max-calls", l.Calls, fit.Calls, limits.MaxCalls)
}

// lookAtMemory is how often shed checks the memory.
const lookAtMemory = 100 * time.Millisecond

// shed closes connections while memory runs out, until ctx ends: when the memory in use reaches two
// thirds of the Go runtime's limit, beyond which it would do little but collect garbage; and when the cgroup,
// which counts the kernel's memory too, has hardly any left. The derived limits prevent this, but the
// configuration may raise them, and they do not count everything.
func (n *Node) shed(ctx context.Context) {
	m := limits.Find()
	if m.Bytes == 0 {
		return
	}
	mostInUse, mostUsed, again := n.limits.Heap/3*2, m.Bytes-m.Bytes/8, uint64(0)
	s := shedding{callers: n.callers, admins: n.admins}
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
			again = cycle + 2 // when the memory in use is known without the connections closed now
		case used < mostUsed:
			continue
		default:
			if debug.FreeOSMemory(); m.Used() < mostUsed { // it was garbage
				continue
			}
		}
		callers, admins := s.shed(time.Now())
		n.log.Warn("memory runs out: closing connections", "in_use", mib(inUse), "memory", mib(m.Bytes), "callers",
			callers, "administrators", admins)
	}
}

// shedding closes connections: of callers first, then also of administrators and what reads metrics.
type shedding struct {
	callers, admins interface{ Shed() int }
	last            time.Time
}

// shedAgain is the time within which a second shed shows that the first was not enough.
const shedAgain = time.Second

// shed closes an eighth of the callers' connections, and returns how many it closed. It closes an eighth of the
// administrators' connections, too, if there are no callers or it has shed a moment ago.
func (s *shedding) shed(now time.Time) (callers, admins int) {
	callers = s.callers.Shed()
	if callers == 0 || now.Sub(s.last) <= shedAgain {
		admins = s.admins.Shed()
	}
	s.last = now
	return callers, admins
}

// memoryInUse returns how many bytes were in use after the last garbage collection, and its cycle.
func memoryInUse() (bytes int64, cycle uint64) {
	all := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(all)
	return int64(all[0].Value.Uint64()+all[1].Value.Uint64()) - ballast, all[2].Value.Uint64()
}

func mib(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }
