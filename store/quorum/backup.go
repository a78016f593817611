package quorum

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/base/clusterid"
	"github.com/firn-id/firn/internal/base/files"
	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/internal/etcdserver"
	"github.com/firn-id/firn/store/internal/place"
	"github.com/firn-id/firn/store/quorum/internal/keyring"
	"github.com/firn-id/firn/store/quorum/internal/plan"
)

// A backup is etcd's database, its SHA-256, authentication codes of the quorum's keys over both, and a line that says
// so.
const (
	trailer    = "\nfirn backup 1\n"
	codesSize  = keyring.MACSize + len(trailer)
	aroundSize = sha256.Size + codesSize
)

// Backup writes a backup of the store for Restore, which knows it by the keys of the quorum. Errors:
// store.ErrUnavailable, or that of w.
func (q *Quorum) Backup(ctx context.Context, w io.Writer) error {
	if err := q.refuseClient("a backup"); err != nil {
		return err
	}
	q.mu.Lock()
	s := q.server
	q.mu.Unlock()
	if s != nil && s.isReady() {
		return s.backup(ctx, w, q.ring.MACs())
	}
	answers := q.askAll(ctx, q.others())
	for _, address := range q.others() {
		if a := answers[address]; a.err == nil && a.Running {
			return q.asker.copy(ctx, address, "/backup", w)
		}
	}
	return fmt.Errorf("%w: no machine of the quorum is ready: %s", store.ErrUnavailable, q.missing())
}

// catchUpWithin is how long a server may take to have all that was confirmed before a backup.
const catchUpWithin = 10 * time.Second

// backup writes what this server has, once that is all that a majority has confirmed before.
func (s *server) backup(ctx context.Context, w io.Writer, codes *keyring.MACs) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpWithin)
	defer cancel()
	if err := s.LinearizableReadNotify(ctx); err != nil {
		return fmt.Errorf("%w: no majority of the machines confirms that the data is the latest: %w",
			store.ErrUnavailable, err)
	}
	database := s.Backend().Snapshot()
	defer database.Close() //nolint:errcheck // it was only read
	sum := sha256.New()
	if _, err := database.WriteTo(io.MultiWriter(w, codes, sum)); err != nil {
		return err
	}
	digest := sum.Sum(nil)
	if _, err := codes.Write(digest); err != nil {
		return err
	}
	_, err := w.Write(slices.Concat(digest, codes.Sum(), []byte(trailer)))
	return err
}

// serveBackup writes a backup. One that fails is cut off.
func (q *Quorum) serveBackup(w http.ResponseWriter, r *http.Request) {
	q.mu.Lock()
	s := q.server
	q.mu.Unlock()
	if s == nil || !s.isReady() {
		reply(w, http.StatusConflict, "it is not ready")
		return
	}
	if err := s.backup(r.Context(), w, q.ring.MACs()); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// copy writes the whole body of an answer, and returns an error if it ends early or its checksum is wrong.
func (a *asker) copy(ctx context.Context, address, path string, w io.Writer) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+path, nil)
	if err != nil {
		return err
	}
	response, err := a.Do(r)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", store.ErrUnavailable, address, shorten(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s answered %s", store.ErrUnavailable, address, response.Status)
	}
	check := &checksum{to: w, hash: sha256.New()}
	if _, err := io.Copy(check, response.Body); err != nil {
		return fmt.Errorf("%w: %s: %w", store.ErrUnavailable, address, err)
	}
	if !check.right() {
		return fmt.Errorf("%w: %s: the backup is damaged: its checksum is wrong", store.ErrUnavailable, address)
	}
	return nil
}

// checksum passes on what is written, and knows whether the end is that of a backup: the SHA-256 of what comes before,
// codes, and the line.
type checksum struct {
	to     io.Writer
	before []byte    // the latest bytes, up to the size of that end
	hash   hash.Hash // of what comes before them
}

func (c *checksum) Write(p []byte) (int, error) {
	c.before = append(c.before, p...)
	if more := len(c.before) - aroundSize; more > 0 {
		_, _ = c.hash.Write(c.before[:more]) // never fails
		c.before = slices.Clone(c.before[more:])
	}
	return c.to.Write(p)
}

func (c *checksum) right() bool {
	return len(c.before) == aroundSize && bytes.HasSuffix(c.before, []byte(trailer)) &&
		bytes.Equal(c.hash.Sum(nil), c.before[:sha256.Size])
}

// unpack copies a backup without what comes after its SHA-256, and returns an error if it is incomplete, or if none of
// the keys has signed it unless it is trusted. What was copied is what was examined, whatever becomes of the backup
// meanwhile.
func unpack(backup, to string, codes *keyring.MACs, trusted bool) error {
	from, err := os.Open(backup)
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	size := info.Size() - int64(codesSize)
	end := make([]byte, codesSize)
	if !info.Mode().IsRegular() || size <= sha256.Size {
		return fmt.Errorf("%s: it has %d bytes, which is too little for a backup; want what firn quorum backup wrote",
			backup, info.Size())
	}
	if _, err := from.ReadAt(end, size); err != nil {
		return err
	}
	if signed, ok := bytes.CutSuffix(end, []byte(trailer)); ok {
		end = signed
	} else if trusted { // of etcd's own tools, or of a machine's disk
		size, end = info.Size(), nil
	} else {
		return fmt.Errorf("%s: its end is not that of a backup: want all of what firn quorum backup wrote; "+
			"if nobody else could write it, --trust takes a snapshot of etcd's own tools", backup)
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.MultiWriter(f, codes), io.NewSectionReader(from, 0, size))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if !trusted && !codes.Know(end) {
		return fmt.Errorf("%s: none of the keys of --quorum-key-file has signed it: want the key of the quorum that "+
			"it is from, as it was "+
			"then; without that, and if nobody else could write it, --trust takes it as it is", backup)
	}
	return nil
}

// RestoreConfig says what to restore, and where to.
type RestoreConfig struct {
	Backup string // a file written by Backup, or the data directory of a machine on which nothing runs
	Dir    string // the data directory to make; it must be empty or not exist
	As     string // the machine that it is for, host:port as in Config.Machines; required
	// see Config; with it, Restore knows the backup, and asks the machines in it whether they are alive
	KeyFile string
	// take a backup file that no key of KeyFile has signed; of a directory the owner is checked instead
	Trust  bool
	Logger *slog.Logger // nil: no log
}

// Restored says what Restore found and did.
type Restored struct {
	Former   string   // identity of the cluster that the backup is from; empty: it was a quorum of one
	Machines []string // those that the backup knows
	Silent   []string // those of them that could not be asked whether they are alive
}

// Restore makes a data directory from a backup, for the first machine of a new cluster. Only that machine can use it,
// and copies of it begin no second cluster: it is like that of a quorum of one, which begins a cluster once all other
// machines answer and none has data. An error is returned when As is no address, when a machine of the former cluster
// is alive, when Dir is not empty, when the backup is damaged or no key of KeyFile has signed it, or when others could
// write the directory that it is; Dir is then as before.
func Restore(ctx context.Context, c RestoreConfig) (r Restored, err error) {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if err := checkAddress(c.As); err != nil {
		return r, err
	}
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return r, err
	}
	if found, err := os.ReadDir(c.Dir); err == nil && len(found) > 0 {
		return r, fmt.Errorf("%s is not empty: it holds %s; name a new directory", c.Dir, found[0].Name())
	}
	making := c.Dir + ".restoring"
	if err := os.RemoveAll(making); err != nil {
		return r, err
	}
	defer func() { _ = os.RemoveAll(making) }()
	var keys keyring.Keys
	if c.KeyFile != "" {
		if keys, err = keyring.ReadFile(c.KeyFile); err != nil {
			return r, err
		}
	}
	if err := os.MkdirAll(making, 0o700); err != nil {
		return r, err
	}
	from, err := c.examined(filepath.Join(making, "backup"), keys)
	if err != nil {
		return r, err
	}
	data := filepath.Join(making, "data")
	if err := etcdserver.Restore(from, data); err != nil {
		return r, fmt.Errorf("backup %s: %w", c.Backup, err)
	}
	if err := r.fill(ctx, c, data, keys); err != nil {
		return r, err
	}
	if err := os.Remove(c.Dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return r, err
	}
	return r, os.Rename(data, c.Dir)
}

// examined is what to restore from: a copy of the backup's file that is what a machine wrote, or its directory that
// nobody else could write.
func (c RestoreConfig) examined(copied string, keys keyring.Keys) (string, error) {
	info, err := os.Stat(c.Backup)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		return c.Backup, files.CheckTree(c.Backup)
	}
	return copied, unpack(c.Backup, copied, keys.MACs(), c.Trust)
}

// fill makes the data in a directory those of a new cluster.
func (r *Restored) fill(ctx context.Context, c RestoreConfig, path string, keys keyring.Keys) error {
	dir, err := etcdserver.OpenDir(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	server, err := dir.Start(etcdserver.Config{Logger: c.Logger})
	if err != nil {
		return err
	}
	defer server.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := server.Wait(ctx); err != nil {
		return err
	}
	s, err := etcdstore.Open(etcdstore.Config{Endpoints: []string{server.Endpoint()}})
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // it has no sessions
	former, at, err := readRecordAt(ctx, s)
	if err != nil {
		return err
	}
	r.Former, r.Machines = former.Cluster, former.Machines
	if err := r.askFormer(ctx, keys); err != nil {
		return err
	}
	if err := endLeases(ctx, server); err != nil {
		return err
	}
	kv, err := s.Get(ctx, floor.Key)
	if err != nil {
		return err
	}
	open, err := floor.Open(kv.Value, "firn quorum restore",
		"the store was restored from a backup, which does not know what happened after it was made")
	if err != nil {
		return err
	}
	// it gets its identity when it begins
	then := []store.Op{store.Delete(recordKey), store.Delete(clusterid.Key), open, floor.NewEra()}
	if _, err := s.Commit(ctx, store.Txn{If: []store.Condition{at}, Then: then}); err != nil {
		return err
	}
	d, err := openDisk(dir)
	if err != nil {
		return err
	}
	if _, err := d.change(func(w *written) bool { w.Restored = true; return true }); err != nil {
		return err
	}
	return place.Assign(dir.Path, c.As)
}

// askFormer asks the machines of the former cluster whether they are alive.
func (r *Restored) askFormer(ctx context.Context, keys keyring.Keys) error {
	if len(keys) == 0 {
		r.Silent = r.Machines
		return nil
	}
	ring, err := keyring.FromKeys(keys)
	if err != nil {
		return err
	}
	q := &Quorum{asker: newAsker(ring.Dial), ring: ring}
	defer q.asker.CloseIdleConnections()
	answers := q.askAll(ctx, r.Machines)
	for _, address := range r.Machines {
		switch a := answers[address]; {
		case a.err != nil:
			r.Silent = append(r.Silent, address)
		case a.Disk.Cluster == r.Former && (a.Disk.State == plan.Started || a.Disk.State == plan.Formed):
			return fmt.Errorf("%s is alive and has data of cluster %s, which the backup is from: two clusters would "+
				"make the same IDs; stop firn on %s first, or have it take part instead of restoring", address,
				r.Former, address)
		}
	}
	return nil
}
