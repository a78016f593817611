//go:build !race

package testenv

// Race tells that the race detector is on, which makes everything slow.
const Race = false
