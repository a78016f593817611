//go:build !unix

package etcdserver

import (
	"fmt"
	"runtime"
)

// errSystem is why no server can run on this system. On Windows etcd's lock (TryLockFile, v3.7.3) is granted to a
// second process, and modes do not keep other users from the server's socket. IDs depend on the one, the cluster on the
// other.
var errSystem = fmt.Errorf("a node can't keep data on %s, where nothing keeps other processes and users from it; want "+
	"Linux or macOS, or an etcd cluster elsewhere", runtime.GOOS)
