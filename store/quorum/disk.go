package quorum

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/firn-id/firn/store/internal/etcdserver"
	"github.com/firn-id/firn/store/internal/place"
	"github.com/firn-id/firn/store/quorum/internal/plan"
)

// diskFile is the file in the data directory that says what the directory is to which cluster.
const diskFile = "quorum.json"

// written is what the file holds.
type written struct {
	plan.Disk
	Founded  bool     `json:"founded,omitempty"`  // formed by all machines together, with an empty store
	Restored bool     `json:"restored,omitempty"` // the data is from a backup
	Known    []string `json:"known,omitempty"`    // addresses of the machines, as last heard
	// how much of its log each other machine has kept, as last heard
	Saw    map[string]uint64 `json:"saw,omitempty"`
	Leases []int64           `json:"leases,omitempty"` // of sessions that this machine's process has begun
}

// disk is the data directory of one machine. It is safe for concurrent use.
type disk struct {
	dir *etcdserver.Dir
	mu  sync.Mutex
	now written // what the file holds
}

// openDisk reads a data directory that this process has locked.
func openDisk(dir *etcdserver.Dir) (*disk, error) {
	now, err := readWritten(dir.Path)
	if err != nil {
		return nil, err
	}
	d := &disk{dir: dir, now: now}
	d.now.weigh(dir.HasLog())
	return d, nil
}

// readWritten reads the file in a data directory. If there is none, it is zero.
func readWritten(dir string) (w written, err error) {
	path := filepath.Join(dir, diskFile)
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &w)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return w, fmt.Errorf("the file %s says what cluster the data belongs to, and can't be read: %w; restore it, "+
			"or start over without the directory, as one whose disk was emptied", path, err)
	}
	return w, nil
}

// weigh has what the file says of a log count only as far as the log is there.
func (w *written) weigh(log bool) {
	switch {
	case log && w.State == plan.Empty:
		w.State = plan.Alone
	case log && (w.State == plan.Formed || w.State == plan.Lost):
		w.State = plan.Started
	case !log && w.State == plan.Started:
		w.State = plan.Lost
	}
}

// CheckOne returns nil if a quorum of one may use a data directory: no quorum of several has used it, or this machine
// is the only one left. Otherwise it would wait for a majority that never comes, or begin a second cluster; the error
// says to what the directory belongs, and what to do. It may be called while a process uses the directory.
func CheckOne(dir string) error {
	w, err := readWritten(dir)
	if err != nil {
		return err
	}
	of := "a quorum"
	if len(w.Known) > 0 {
		of = "the quorum of " + strings.Join(w.Known, ", ")
	}
	switch {
	case w.State == plan.Empty, w.State == plan.Started && len(w.Known) == 1:
		return nil
	case w.State == plan.Removed:
		return fmt.Errorf("the directory %s was part of %s, from which its machine was removed; give another "+
			"directory, or start it with --quorum", dir, of)
	default:
		return fmt.Errorf("the directory %s belongs to %s; start it with --quorum, or take the other machines out "+
			"with firn quorum remove first", dir, of)
	}
}

// InUse tells whether a process uses a data directory now. A process that tries to use it at that very moment may be
// told that it is in use.
func InUse(dir string) bool { return etcdserver.InUse(dir) }

// CheckSystem returns why no process can keep data on this system, such as Windows, or nil.
func CheckSystem() error { return etcdserver.CheckSystem() }

// DirError is returned when a data directory can't be opened, or nothing can be served from it.
type DirError struct{ Err error }

func (e *DirError) Error() string { return e.Err.Error() }
func (e *DirError) Unwrap() error { return e.Err }

// DataError says why the server can't use its data directory, and what to do.
type DataError = etcdserver.DataError

// PlaceError is returned for a data directory that is a copy, was moved, or is that of another machine.
type PlaceError = place.Error

// CheckPlace returns why a data directory is not used: it is a copy, was moved and moved, as in Config, does not say
// so, or belongs to another machine. address is that of this machine; empty: a quorum of one. It may be called while a
// process uses the directory.
func CheckPlace(dir, address string, moved bool) error { return place.Check(dir, address, moved) }

func (d *disk) path() string { return filepath.Join(d.dir.Path, diskFile) }

// get returns a copy.
func (d *disk) get() written {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.now
	w.Saw = maps.Clone(w.Saw)
	return w
}

// change has f change what the file holds, and returns when that is on the disk. If f returns false or the file can't
// be written, nothing has changed.
func (d *disk) change(f func(*written) bool) (changed bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := d.now
	next.Saw = maps.Clone(next.Saw)
	if !f(&next) {
		return false, nil
	}
	text, err := json.MarshalIndent(next, "", "  ")
	if err == nil {
		err = replaceFile(d.path(), append(text, '\n'))
	}
	if err != nil {
		return false, fmt.Errorf("can't write %s: %w", d.path(), err)
	}
	d.now = next
	return true, nil
}

// errChanged is returned when a disk does not say any more what a decision was made from.
var errChanged = errors.New("what this machine has promised has changed meanwhile")

// set writes what the disk says from now on, if it still says was.
func (d *disk) set(was, says plan.Disk) error {
	changed, err := d.change(func(w *written) bool {
		if w.Disk != was {
			return false
		}
		if w.Cluster != says.Cluster {
			w.Saw, w.Known, w.Founded = nil, nil, false
		}
		w.Disk = says
		return true
	})
	if err == nil && !changed {
		err = errChanged
	}
	return err
}

// lose sets the data aside, because it can't be used, or is not this machine's any more.
func (d *disk) lose(was, says plan.Disk) error {
	if err := d.set(was, says); err != nil {
		return err
	}
	if !d.dir.HasLog() {
		return nil
	}
	return d.dir.SetAside()
}

// replaceFile writes a file for its owner only, so that after a crash it is there as before or as it should be.
func replaceFile(path string, text []byte) error {
	temporary := path + ".new"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
