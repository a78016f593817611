package client

import (
	"math/bits"
	"time"
)

// How long a call waits for a node before it asks another one too.
const (
	firstPatience    = 100 * time.Millisecond // while nothing is known, plus
	patiencePerID    = 5 * time.Microsecond   // that is asked for
	shortestPatience = 10 * time.Millisecond
	longestPatience  = time.Second
)

// paces is the number of classes of requests, by their number of IDs: 1, 2, up to 4, up to 8 and so on.
const paces = 18

func class(n int) int { return bits.Len(uint(n - 1)) }

// pace is how long recent answers took: a moving average, and the average deviation from it, as TCP computes them to
// detect lost packets (RFC 6298). The zero value has seen no answer.
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

// patience is the time within which nearly every answer with n IDs comes.
func (p *pace) patience(n int) time.Duration {
	if *p == (pace{}) {
		return firstPatience + time.Duration(n)*patiencePerID
	}
	return min(max(p.mean+4*p.deviation, shortestPatience), longestPatience)
}
