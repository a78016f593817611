package main

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"github.com/firn-id/firn/server/limits"
)

// fit are the limits of a process that these settings are for, whatever flags say of them, and the memory that they
// follow from.
func (s *settings) fit() (limits.Limits, limits.Memory) {
	m := limits.Find()
	files, _ := openFiles() // zero where nobody knows
	l := limits.For(m.Bytes, int64(min(files, math.MaxInt64)), s.certificates.Cert != "")
	if m.Heap != 0 {
		l.Heap = m.Heap
	}
	return l, m
}

// chosen are the limits with those that flags say.
func (s *settings) chosen(l limits.Limits) limits.Limits {
	if s.maxConnections != 0 {
		l.Connections = int(s.maxConnections)
	}
	if s.maxCalls != 0 {
		l.Calls = int(s.maxCalls)
	}
	return l
}

// limitMemory has the Go runtime keep to its share of the memory, and says in the log what all limits are.
func (n *node) limitMemory() {
	l := n.limits
	fit, m := n.fit()
	if m.Heap == 0 && m.Bytes != 0 {
		debug.SetMemoryLimit(l.Heap + ballast) // which the runtime counts, though it is never there
	}
	if m.Bytes == 0 {
		n.log.Warn("can't find how much memory there is: the limits are those for a large machine; set GOMEMLIMIT")
	} else {
		n.log.Info("limits", "memory", mib(m.Bytes), "from", m.Source, "heap", mib(l.Heap), "connections", l.Connections,
			"calls", l.Calls, "answers", mib(l.Answers))
	}
	warn := func(flag string, asked, fits, most int) {
		if asked > fits && fits < most {
			n.log.Warn("more is allowed than there is memory and open files for: the process may be killed", "flag", "--"+flag, "asked", asked, "fits", fits)
		}
	}
	warn("max-connections", l.Connections, fit.Connections, limits.MaxConnections)
	warn("max-calls", l.Calls, fit.Calls, limits.MaxCalls)
}

// lookAtMemory is how often the memory is looked at.
const lookAtMemory = 100 * time.Millisecond

// shed closes connections of callers while there is hardly memory left, until ctx ends: the limits are made so that there
// always is, but flags may say otherwise, and not everything is counted. It does nothing where no cgroup has a limit.
func (n *node) shed(ctx context.Context) {
	m := limits.Find()
	most := m.Bytes - m.Bytes/8
	if m.Used() == 0 {
		return
	}
	for look := time.NewTicker(lookAtMemory); ; {
		select {
		case <-look.C:
		case <-ctx.Done():
			look.Stop()
			return
		}
		if m.Used() < most {
			continue
		}
		if debug.FreeOSMemory(); m.Used() >= most { // and not because of garbage
			n.log.Warn("memory runs out: connections of callers are closed", "used", mib(m.Used()), "memory", mib(m.Bytes), "closed", n.callers.Shed())
		}
	}
}

func mib(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }
