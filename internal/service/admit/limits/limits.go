// Package limits bounds the connections, calls and answers of one process, so that hostile callers can't exhaust
// its memory. Find finds how much memory there is, and For derives all limits from that and the measured maximum
// cost of a connection, a call and an answer.
//
// Packages conns (connections), server and grpcapi (calls), and server (answers) enforce them.
package limits

import "math"

// The maximum cost of each in bytes, with uncollected garbage and memory of the kernel, as BenchmarkMemory of
// internal/test/e2e measures it.
const (
	// HTTP after a call: 21 KiB; 40 after a batch, or with half a header; Redis 22; gRPC 31
	connectionCost    = 32 << 10
	tlsConnectionCost = 64 << 10 // HTTP/1.1 58 KiB, HTTP/2 57
	callCost          = 12 << 10 // gRPC: a health watch 9 KiB; a call whose request never comes 8
)

// base is the memory of an idle node that is a quorum of one, and of the files that both map.
const base = 64 << 20

// Limits for any amount of memory.
const (
	MaxConnections = 16_384
	MaxCalls       = 10_000
	MaxAnswers     = 512 << 20
)

// spareFiles is for open files other than callers' connections: etcd's, the store's connections, the log.
const spareFiles = 256

// Limits bound what a process takes on at a time. All are greater than zero.
type Limits struct {
	Heap        int64 // bytes that the Go runtime aims for: debug.SetMemoryLimit
	Connections int   // of callers, on all addresses
	Calls       int   // served or waiting
	Answers     int64 // bytes of undelivered answers with several IDs, including streams
}

// For returns the limits of a process with this memory in bytes and this many open files; zero or less:
// unlimited. TLS: callers use TLS.
//
// An eighth of the memory, and base, is for everything else. Of the rest, connections get half, answers three
// eighths, and calls an eighth.
func For(memory, files int64, tls bool) Limits {
	if memory <= 0 {
		memory = math.MaxInt64
	}
	if files <= 0 {
		files = math.MaxInt64
	}
	connection := int64(connectionCost)
	if tls {
		connection = tlsConnectionCost
	}
	rest := max(memory-memory/8-base, memory/8)
	return Limits{
		Heap:        memory / 4 * 3,
		Connections: within(min(rest/2/connection, max(files-spareFiles, files/2)), MaxConnections),
		Calls:       within(rest/8/callCost, MaxCalls),
		Answers:     int64(within(rest/8*3, MaxAnswers)),
	}
}

func within(n, most int64) int { return int(max(1, min(n, most))) }
