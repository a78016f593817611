package etcdembed

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// maxSocketPath is what every system allows for the path of a unix socket.
const maxSocketPath = 100

// plainPath is a path that means the same in a URL.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9/._-]+$`)

// socket is where clients of an embedded server connect: a unix socket in a
// directory of its own that only the owner can enter.
type socket struct {
	path      string
	temporary bool // the directory is not in the data directory, and is removed
}

// newSocket finds room for the socket: in the data directory, or in the system's
// directory for temporary files when the path would be too long or too strange.
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
	s = socket{path: filepath.Join(dir, "etcd.sock"), temporary: true}
	if len(s.path) > maxSocketPath || !plainPath.MatchString(s.path) {
		s.remove()
		return socket{}, fmt.Errorf("no unix socket can be made at %q either: want a path of at most %d plain characters", s.path, maxSocketPath)
	}
	return s, nil
}

func (s socket) endpoint() string { return "unix://" + s.path }

// protect lets only the owner connect, whoever may enter the directory.
func (s socket) protect() error { return os.Chmod(s.path, 0o600) }

// remove takes back what newSocket made outside the data directory. The socket
// itself was removed by the server.
func (s socket) remove() {
	if s.temporary {
		_ = os.RemoveAll(filepath.Dir(s.path))
	}
}
