//go:build unix

package etcdserver

// errSystem is why no server can run on this system.
var errSystem error
