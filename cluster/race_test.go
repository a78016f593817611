//go:build race

package cluster

// underRace tells that the race detector makes everything slow.
const underRace = true
