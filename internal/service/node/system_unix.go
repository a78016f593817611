//go:build unix && !linux

package node

// without is what a node has on Linux and not here; docs/operate.md says what follows.
const without = "the size of the memory (GOMEMLIMIT sets it), the names of callers on Unix sockets, and early notice " +
	"of a machine of the quorum that lost its power"
