package etcdserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/firn-id/firn/internal/base/files"
)

// maxSocketPath is how many bytes every system allows for the path of a unix socket.
const maxSocketPath = 100

// plainPath matches paths that need no escaping in a URL.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9/._-]+$`)

// socket is the unix socket that clients connect to, in a directory of its own that
// only the owner can enter.
type socket struct {
	path      string
	temporary bool // the directory is not in the data directory, and is removed
}

// newSocket makes the socket's directory: in the data directory, or in the system's
// directory for temporary files when the path would be too long or need escaping.
func newSocket(dataDir string) (socket, error) {
	dir := filepath.Join(dataDir, "run")
	s := socket{path: filepath.Join(dir, "etcd.sock")}
	if len(s.path) <= maxSocketPath && plainPath.MatchString(s.path) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return socket{}, err
		}
		return s, os.Chmod(dir, 0o700)
	}
	dir, err := os.MkdirTemp("", "firn-")
	if err != nil {
		return socket{}, err
	}
	if err := files.CheckWriters(dir); err != nil {
		return socket{}, errors.Join(err, os.Remove(dir))
	}
	s = socket{path: filepath.Join(dir, "etcd.sock"), temporary: true}
	if len(s.path) > maxSocketPath || !plainPath.MatchString(s.path) {
		s.remove()
		return socket{},
			fmt.Errorf("the path %q does not suit a unix socket either; want at most %d characters of A-Z, a-z, 0-9 "+
				"and /._-", s.path, maxSocketPath)
	}
	return s, nil
}

// peers is the path of the socket for other servers.
func (s socket) peers() string { return filepath.Join(filepath.Dir(s.path), "peer.sock") }

// limited is the path of the socket for those who may not do everything.
func (s socket) limited() string { return filepath.Join(filepath.Dir(s.path), "few.sock") }

// protect lets only the owner connect, even if others can enter the directory.
func (s socket) protect() error { return os.Chmod(s.path, 0o600) }

// remove removes what newSocket made outside the data directory. The server has removed
// the socket itself.
func (s socket) remove() {
	if s.temporary {
		_ = os.RemoveAll(filepath.Dir(s.path))
	}
}
