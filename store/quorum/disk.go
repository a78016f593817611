package quorum

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/firn-id/firn/store/internal/etcdserver"
	"github.com/firn-id/firn/store/quorum/internal/plan"
)

// diskFile is the file in the data directory that says what the directory is to which cluster.
const diskFile = "quorum.json"

// written is what the file holds.
type written struct {
	plan.Disk
	Founded bool              `json:"founded,omitempty"` // formed by all machines together, with an empty store
	Known   []string          `json:"known,omitempty"`   // addresses of the machines, as last heard
	Saw     map[string]uint64 `json:"saw,omitempty"`     // how much of its log each other machine has kept, as last heard
	Leases  []int64           `json:"leases,omitempty"`  // of sessions that this machine's process has begun
}

// disk is the data directory of one machine. It is safe for concurrent use.
type disk struct {
	dir *etcdserver.Dir
	mu  sync.Mutex
	now written // what the file holds
}

// openDisk reads a data directory that this process has locked. What the file says of a log counts only as far as the
// log is there.
func openDisk(dir *etcdserver.Dir) (*disk, error) {
	d := &disk{dir: dir}
	text, err := os.ReadFile(d.path())
	if err == nil {
		err = json.Unmarshal(text, &d.now)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the file %s says what cluster the data belongs to, and can't be read: %w; restore it, or start over without the directory, as one whose disk was emptied", d.path(), err)
	}
	switch state, log := d.now.State, dir.HasLog(); {
	case log && state == plan.Empty:
		d.now.State = plan.Alone
	case log && (state == plan.Formed || state == plan.Lost):
		d.now.State = plan.Started
	case !log && state == plan.Started:
		d.now.State = plan.Lost
	}
	return d, nil
}

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

// set writes what the disk says from now on.
func (d *disk) set(says plan.Disk) error {
	_, err := d.change(func(w *written) bool {
		if w.Cluster != says.Cluster {
			w.Saw, w.Known, w.Founded = nil, nil, false
		}
		w.Disk = says
		return true
	})
	return err
}

// lose sets the data aside, because it can't be used, or is not this machine's any more.
func (d *disk) lose(says plan.Disk) error {
	if err := d.set(says); err != nil {
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
