package auth

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	lookEvery = time.Second // how often files are looked at, at most
	maxFile   = 16 << 20    // bytes of a file
)

// kept is what some files say. They are read again when it is used, at most once a second. What can't be read, or is
// wrong, is logged once, and the last good value goes on.
//
// The files are compared by what is in them, which is never mistaken: not by links that are turned over, as Kubernetes
// does it, and not by two changes at one time. It is also why a key that is written after its certificate is never
// missed: what did not match has other contents than what does.
type kept[T any] struct {
	what  string // the files, in the log: "tokens"
	paths []string
	log   *slog.Logger
	now   func() time.Time

	// parse makes a value of the files' contents, in the order of the paths, and of the last good value, zero at first.
	// Equal contents give an equal value, or an equal error.
	parse func(contents [][]byte, last T) (T, error)

	value  atomic.Pointer[T]
	looked atomic.Pointer[time.Time] // when the files were last read

	reading sync.Mutex // held by the one who reads the files; guards the rest
	seen    snapshot   // what was there when they were last read
}

// snapshot is what is in files, or why they can't be read.
type snapshot struct {
	contents [][]byte
	failure  string
}

func (s snapshot) equal(other snapshot) bool {
	return s.failure == other.failure && slices.EqualFunc(s.contents, other.contents, bytes.Equal)
}

// open reads the files for the first time.
func (k *kept[T]) open() error {
	k.reading.Lock()
	defer k.reading.Unlock()
	return k.readLocked()
}

// get returns the value. It is safe for concurrent use; who comes while another reads the files gets the value before.
func (k *kept[T]) get() T {
	if k.due() && k.reading.TryLock() {
		k.again()
		k.reading.Unlock()
	}
	return *k.value.Load()
}

func (k *kept[T]) due() bool { return k.now().Sub(*k.looked.Load()) >= lookEvery }

func (k *kept[T]) again() {
	if !k.due() { // another was faster
		return
	}
	before := k.seen
	err := k.readLocked()
	switch {
	case k.seen.equal(before):
	case err != nil:
		k.log.Error("the "+k.what+" can't be used; what was read before goes on", "err", err)
	default:
		k.log.Info("the "+k.what+" were read again", "files", strings.Join(k.paths, ", "))
	}
}

// readLocked reads the files, and takes over what they say if they are not as seen. k.reading is held.
func (k *kept[T]) readLocked() error {
	now := k.now()
	k.looked.Store(&now)
	contents, err := readFiles(k.paths)
	is := snapshot{contents: contents}
	if err != nil {
		is.failure = err.Error()
	}
	if is.equal(k.seen) {
		return err
	}
	k.seen = is
	if err != nil {
		return err
	}
	var last T
	if p := k.value.Load(); p != nil {
		last = *p
	}
	value, err := k.parse(contents, last)
	if err != nil {
		return err
	}
	k.value.Store(&value)
	return nil
}

func readFiles(paths []string) (contents [][]byte, _ error) {
	for _, path := range paths {
		if err := CheckWriters(path); err != nil {
			return nil, err
		}
		data, err := readFile(path)
		if err != nil {
			var known *fs.PathError
			if errors.As(err, &known) {
				err = known.Err
			}
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		contents = append(contents, data)
	}
	return contents, nil
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe may never end
		return nil, errors.New("it is no regular file; want one")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if len(data) > maxFile {
		return nil, fmt.Errorf("it has more than %d MiB; want less", maxFile>>20)
	}
	return data, err
}
