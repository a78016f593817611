//go:build unix

package unixsocket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// backlog is how many connections may wait to be accepted; the system lowers it to its own limit. A caller beyond it is
// refused, as Unix sockets have no SYN queue.
const backlog = 4096

// Listen listens on a path, with the permissions of mode. A socket that a dead process left there is replaced. The
// listener removes the socket when it is closed, unless the file is another one by then.
//
// An error is returned when another process listens there, when the path exists and is no socket, and when the
// directory can't be written. Then nothing has changed.
func Listen(path string, mode fs.FileMode) (net.Listener, error) {
	unlock, err := lock(path)
	if err != nil {
		return nil, err
	}
	defer unlock()
	switch there, err := Living(path); {
	case err != nil:
		return nil, err
	case there:
		return nil, errors.New("another process listens there; end it, or choose another path")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a dead process
		return nil, reason(err)
	}
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close() // the listener has a copy
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		return nil, err
	}
	l, err := listen(fd, file, path, mode)
	if err != nil {
		_ = os.Remove(path) // nobody could connect yet
	}
	return l, err
}

// listen begins to listen on a bound socket. Before it does nobody can connect, whatever the umask has made of the mode
// of the socket's file: so the file gets its mode first.
func listen(fd int, file *os.File, path string, mode fs.FileMode) (net.Listener, error) {
	if err := chmod(path, mode.Perm()); err != nil {
		return nil, reason(err)
	}
	made, err := os.Lstat(path)
	if err != nil {
		return nil, reason(err)
	}
	if err := syscall.Listen(fd, backlog); err != nil {
		return nil, os.NewSyscallError("listen", err)
	}
	inner, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	return &listener{Listener: inner, path: path, made: made}, nil
}

// chmod is another function in tests.
var chmod = os.Chmod

// lockWithin is how long another process that is about to listen on the same path may take; less in tests.
var lockWithin = 5 * time.Second

// lock keeps two processes that start at once from taking each other's new socket for that of a dead process. It locks
// a file of this user alone, which exists for that moment: anybody who can read the directory could keep a lock on
// that.
func lock(path string) (unlock func(), err error) {
	path += ".lock"
	for deadline := time.Now().Add(lockWithin); ; time.Sleep(5 * time.Millisecond) {
		f, err := tryLock(path)
		switch {
		case err != nil:
			return nil, err
		case f != nil:
			return func() {
				_ = os.Remove(path) // what stays is locked again
				_ = f.Close()
			}, nil
		case time.Now().After(deadline):
			return nil, fmt.Errorf("another process has locked %s for %v; end it, or choose another path",
				path, lockWithin)
		}
	}
}

// tryLock makes and locks a file. It returns nil if another process has locked it, or has just removed it.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, reason(err)
	}
	made, err := f.Stat()
	if err == nil {
		if stat, ok := made.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
			err = fmt.Errorf("%s belongs to user %d, who may keep it locked; remove it, or choose another directory",
				path, stat.Uid)
		}
	}
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err == nil {
		if now, err := os.Lstat(path); err == nil && os.SameFile(now, made) {
			return f, nil
		}
	}
	_ = f.Close()
	if number := syscall.Errno(0); errors.As(err, &number) {
		if number == syscall.EWOULDBLOCK || number == syscall.EINTR {
			return nil, nil
		}
		return nil, fmt.Errorf("can't lock %s: %w", path, err)
	}
	return nil, err
}

// Living reports whether a process listens on a path. An error is returned when what is there is no socket, or when it
// can't be found out.
func Living(path string) (bool, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, reason(err)
	case info.Mode().Type() != fs.ModeSocket:
		return false, errors.New("what is there is not a socket; remove it, or choose another path")
	}
	c, err := net.DialTimeout("unix", path, dialWithin)
	switch {
	case err == nil:
		return true, c.Close()
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist): // nobody listens; it is gone
		return false, nil
	case errors.Is(err, syscall.EAGAIN): // more connections wait than may
		return true, nil
	}
	var number syscall.Errno
	if errors.As(err, &number) {
		err = number
	}
	return false, fmt.Errorf("can't find out whether a process listens there: %w", err)
}

// reason returns an error of the file system without its operation.
func reason(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", path.Path, path.Err)
	}
	return err
}

// listener is a listener that owns its socket's file.
type listener struct {
	net.Listener
	path string
	made fs.FileInfo
	once sync.Once
}

// Close removes the socket while it still listens: nobody can take it for that of a dead process and replace it
// meanwhile.
func (l *listener) Close() error {
	l.once.Do(func() {
		if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.made) {
			_ = os.Remove(l.path) // what stays is taken for that of a dead process
		}
	})
	return l.Listener.Close()
}
