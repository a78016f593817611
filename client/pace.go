package client

import (
	"math/bits"
	"time"
)

// How long a node is waited for before another one is asked too.
const (
	firstPatience    = 100 * time.Millisecond // while nothing is known, and
	patiencePerID    = 5 * time.Microsecond   // in addition
	shortestPatience = 10 * time.Millisecond
	longestPatience  = time.Second
)

// paces is how many classes of requests there are, by how many IDs they are for: 1, 2, up to 4, up to 8 and so on.
const paces = 18

func class(n int) int { return bits.Len(uint(n - 1)) }

// pace is how long answers take of late: their mean, and how far they are from it, both fading. It is what TCP reckons
// to tell when a packet is lost (RFC 6298). The zero value knows nothing.
type pace struct {
	mean, deviation time.Duration
}

func (p *pace) add(took time.Duration) {
	if *p == (pace{}) {
		p.mean, p.deviation = took, took/2
		return
	}
	p.deviation += ((took - p.mean).Abs() - p.deviation) / 4
	p.mean += (took - p.mean) / 8
}

// patience is how long nearly every answer with n IDs takes at most.
func (p *pace) patience(n int) time.Duration {
	if *p == (pace{}) {
		return firstPatience + time.Duration(n)*patiencePerID
	}
	return min(max(p.mean+4*p.deviation, shortestPatience), longestPatience)
}
