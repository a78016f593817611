//go:build firn_portable

package spread

import "unsafe"

// processor returns a number that follows from where the caller's stack lies: goroutines that run at the same time have
// different stacks.
func processor() int {
	var here byte
	const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio, for Fibonacci hashing
	return int(uint64(uintptr(unsafe.Pointer(&here))>>11) * golden >> 56)
}
