//go:build !unix

package node

// without is what a node has on Linux and not here; docs/operate.md says what follows.
const without = "data of its own (--etcd is required), permissions of files, a secret for administrators (--tokens " +
	"gives them tokens), Unix sockets, and the size of the memory (GOMEMLIMIT sets it)"
