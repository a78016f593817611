// Package files reads the files that a node is configured with, such as tokens and certificates: again when they
// change, and not at all when others than their owner can write them. It is not for large files, nor for data.
package files

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
	checkEvery = time.Second
	maxSize    = 16 << 20 // bytes
)

// Value is made from the contents of some files, and follows their changes. Get checks the files at most once a second.
// If they can't be read, or parse returns an error, that is logged once, and the value stays as it was.
//
// The contents are compared, not the files' times and sizes: these stay the same when links are switched, as Kubernetes
// does it, and may after two changes in quick succession.
//
// Make it with Open.
type Value[T any] struct {
	what  string
	paths []string
	log   *slog.Logger
	parse func(contents [][]byte, last T) (T, error)

	value   atomic.Pointer[T]
	checked atomic.Pointer[time.Time]

	reading sync.Mutex // held while the files are read; guards seen
	seen    snapshot   // what was read last
}

// snapshot is what is in files, or why they can't be read.
type snapshot struct {
	contents [][]byte
	failure  string
}

func (s snapshot) equal(other snapshot) bool {
	return s.failure == other.failure && slices.EqualFunc(s.contents, other.contents, bytes.Equal)
}

// Open reads files for the first time. In the log they are called what, for example "tokens".
//
// Parse makes a value from the files' contents, in the order of the paths, and the last good value, which is zero at
// first. It must return equal values, or equal errors, for equal contents.
func Open[T any](what string, log *slog.Logger, parse func(contents [][]byte, last T) (T, error),
	paths ...string,
) (*Value[T], error) {
	v := &Value[T]{what: what, paths: paths, log: log, parse: parse}
	v.reading.Lock()
	defer v.reading.Unlock()
	if err := v.readLocked(); err != nil {
		return nil, err
	}
	return v, nil
}

// Get returns the value. It is safe for concurrent use: while one caller reads the files again, others get the last
// value.
func (v *Value[T]) Get() T {
	if v.due() && v.reading.TryLock() {
		v.readAgainLocked()
		v.reading.Unlock()
	}
	return *v.value.Load()
}

func (v *Value[T]) due() bool { return time.Since(*v.checked.Load()) >= checkEvery }

func (v *Value[T]) readAgainLocked() {
	if !v.due() { // another caller was faster
		return
	}
	before := v.seen
	err := v.readLocked()
	switch {
	case v.seen.equal(before):
	case err != nil:
		v.log.Error("the "+v.what+" can't be used; those read before stay in use", "err", err)
	default:
		v.log.Info("the "+v.what+" were read again", "files", strings.Join(v.paths, ", "))
	}
}

// readLocked reads the files, and parses them if they differ from what was seen.
func (v *Value[T]) readLocked() error {
	now := time.Now()
	v.checked.Store(&now)
	contents, err := readAll(v.paths)
	is := snapshot{contents: contents}
	if err != nil {
		is.failure = err.Error()
	}
	if is.equal(v.seen) {
		return err
	}
	v.seen = is
	if err != nil {
		return err
	}
	var last T
	if p := v.value.Load(); p != nil {
		last = *p
	}
	value, err := v.parse(contents, last)
	if err != nil {
		return err
	}
	v.value.Store(&value)
	return nil
}

func readAll(paths []string) (contents [][]byte, _ error) {
	for _, path := range paths {
		data, err := Read(path)
		if err != nil {
			return nil, err
		}
		contents = append(contents, data)
	}
	return contents, nil
}

// Read reads a file once. An error is returned when it can't be read, is not a regular file or has more than 16 MiB,
// and when others than its owner can write it. Errors name the path.
func Read(path string) ([]byte, error) {
	if err := CheckWriters(path); err != nil {
		return nil, err
	}
	data, err := read(path)
	if err != nil {
		if known, ok := errors.AsType[*fs.PathError](err); ok {
			err = known.Err
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}

func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe may never end
		return nil, errors.New("not a regular file; want one")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if len(data) > maxSize {
		return nil, fmt.Errorf("the file has more than %d MiB; want at most that", maxSize>>20)
	}
	return data, err
}
