// Package limits says how much one process takes on at a time, so that callers who mean no good can't have it killed
// for want of memory. It finds how much memory there is (Find), and derives all limits from that (For), by what each
// connection, call and answer was measured to cost at most.
//
// It enforces nothing: connections are counted by package conns, calls by packages server and grpcapi, answers by package
// server. A budget of something else that takes memory belongs here, too.
package limits

import "math"

// What one of each costs at most, in bytes, with what the garbage collector leaves meanwhile and the kernel needs. BenchmarkMemory
// of internal/e2e measures it.
const (
	connectionCost    = 32 << 10 // HTTP that asked: 21 KiB; 40 after a batch, or with half a header; Redis 22; gRPC 31
	tlsConnectionCost = 64 << 10 // HTTP/1.1 58 KiB, HTTP/2 57
	callCost          = 12 << 10 // over gRPC: a health watch 9 KiB; one whose request never comes 8
)

// base is what a node needs with an etcd inside while nobody asks, and for the files that both have mapped.
const base = 64 << 20

// At most, however much memory there is.
const (
	MaxConnections = 16_384
	MaxCalls       = 10_000
	MaxAnswers     = 512 << 20
)

// spareFiles are open files that are no callers': etcd's, the store's connections, the log.
const spareFiles = 256

// Limits are how much a process takes on at a time. All are greater than zero.
type Limits struct {
	Heap        int64 // bytes that the Go runtime aims for: debug.SetMemoryLimit
	Connections int   // of callers, over all addresses
	Calls       int   // that are answered, or wait
	Answers     int64 // bytes that answers with several IDs take until they are delivered, streams among them
}

// For returns the limits of a process with so many bytes of memory and so many open files, of which callers speak TLS
// or not. Zero or less: as much as wanted.
//
// A part of the memory is for what nobody counts: an eighth, and base. Of the rest, half is for connections, three
// eighths for answers, and an eighth for calls.
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
