package etcdserver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"google.golang.org/protobuf/proto"

	"github.com/firn-id/firn/internal/base/space"
)

// roomForDatabase is how many bytes the database may need at once beside the log.
const roomForDatabase = 1 << 20

// What to do about data that can't be used.
const (
	makeRoom = "free some space on its file system, and start again"
	replace  = `restore a backup of the directory, or start over without it; docs/recover.md says how, under ` +
		`"Damaged data"`
	meetThem = "start again: it compares its log with those of the others, and says what to do"
)

// CopyIt is the Do of a DataError about data that is older than what was confirmed to other servers.
const CopyIt = "give it a copy of the other machines' data"

// What raft says when the log here is not what this server told others of it.
const (
	setBack = "Was the raft log corrupted, truncated, or lost?" // it had confirmed entries that it does not have
	parted  = "conflict with committed entry"                   // others have committed other entries
)

// DataError says why the server can't use its data directory, and what to do.
type DataError struct {
	Dir  string // the data directory
	File string // the file in it; empty: no single file is at fault
	Err  error  // what is wrong
	Do   string // what to do about it
}

func (e *DataError) Error() string {
	file := ""
	if e.File != "" {
		file = "file " + e.File + ": "
	}
	return fmt.Sprintf("data directory %q: %s%v; %s", e.Dir, file, e.Err, e.Do)
}

func (e *DataError) Unwrap() error { return e.Err }

// Damaged reports whether the data is lost, unless there is a copy: more room does not help.
func (e *DataError) Damaged() bool { return e.Do == replace }

// SetBack reports whether the data is older than what this server has confirmed to others.
func (e *DataError) SetBack() bool { return e.Do == CopyIt }

// dataError says what the server could not do because of its data directory.
func dataError(dir, what string, cause error) *DataError {
	e := &DataError{Dir: dir, Err: errors.New(what), Do: replace}
	switch {
	case strings.Contains(what, setBack):
		e.Err, e.Do = fmt.Errorf("the data is older than what this machine had confirmed to the others: its disk was "+
			"set back, or did not keep what was synced (%s)", what), CopyIt
	case strings.Contains(what, parted):
		e.Err, e.Do = fmt.Errorf("the other machines have committed other entries than this one: disks were set "+
			"back (%s)", what), meetThem
	}
	if path, ok := errors.AsType[*fs.PathError](cause); ok {
		e.File, cause = inDir(dir, path.Path), path.Err
	}
	if cause != nil {
		e.Err = fmt.Errorf("%s: %w", what, cause)
	}
	if space.Full(cause) { // no file is at fault
		e.File, e.Do = "", makeRoom
	}
	return e
}

func damaged(dir, file, format string, args ...any) error {
	return &DataError{Dir: dir, File: inDir(dir, file), Err: fmt.Errorf(format, args...), Do: replace}
}

// inDir is the name of a file as seen from the directory, if it is in there.
func inDir(dir, file string) string {
	if name, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(name) {
		return name
	}
	return file
}

// checkData examines a data directory before a server uses it: a server that finds
// damage ends the process, or continues with the rest. What a killed process leaves
// behind is no damage. It returns the index of the log's last entry. Nobody may use the
// directory meanwhile.
func checkData(dir string) (last uint64, err error) {
	log, database := datadir.ToWALDir(dir), datadir.ToBackendFileName(dir)
	names, err := fileutil.ReadDir(log)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	segments := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return filepath.Ext(name) != ".wal" })
	last, err = checkLog(dir, segments)
	if err != nil {
		return 0, err
	}
	applied, err := checkDatabase(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(segments) == 0: // a new one
	case errors.Is(err, fs.ErrNotExist):
		return 0, damaged(dir, database, "it is missing, though there is a log")
	case err != nil:
		return 0, err
	case applied > 0 && len(segments) == 0:
		return 0, damaged(dir, log, "it holds no log, and the database is made from %d entries", applied)
	case applied > last:
		return 0, damaged(dir, filepath.Join(log, segments[len(segments)-1]),
			"the log ends with entry %d, and the database is made from %d: the end of the log is lost, and what was "+
				"written later may be", last, applied)
	}
	return last, checkRoom(dir, names, len(segments) == 0)
}

// checkLog reads the log and returns the index of its last entry.
func checkLog(dir string, segments []string) (last uint64, err error) {
	crc := uint32(0)
	for i, name := range segments {
		path := filepath.Join(datadir.ToWALDir(dir), name)
		file, err := os.Open(path)
		if err != nil {
			return 0, err
		}
		decoder := wal.NewDecoder(fileutil.NewFileReader(file))
		decoder.UpdateCRC(crc)
		last, err = readSegment(decoder, last, func(*walpb.Record) error { return nil })
		file.Close()
		if i == len(segments)-1 {
			err = checkEnd(dir, path, err)
		}
		data, known := errors.AsType[*DataError](err)
		switch {
		case err == nil:
		case known:
			return 0, data
		case errors.Is(err, wal.ErrCRCMismatch):
			return 0, damaged(dir, path, "the checksum of the record at byte %d is wrong", decoder.LastOffset())
		default:
			return 0, damaged(dir, path, "the record at byte %d is damaged: %w", decoder.LastOffset(), err)
		}
		crc = decoder.LastCRC()
	}
	return last, nil
}

// checkEnd distinguishes damage from what a killed process leaves at the end of the log.
// etcd allocates each file in full before it uses it, so that an incomplete last record
// ends in zeros: the server removes it, keeps a copy of the file, and leaves the file
// shorter. A server that is killed while it opens the log may leave it shorter, too,
// ending with a record: checkEnd allocates the rest again.
func checkEnd(dir, path string, err error) error {
	info, failed := os.Stat(path)
	if failed != nil {
		return failed
	}
	torn, short := errors.Is(err, io.ErrUnexpectedEOF), info.Size() < segment
	switch {
	case info.Size() == 0:
		return damaged(dir, path, "it is empty, and was made with %d bytes", segment)
	case torn && short && !fileutil.Exist(path+".broken"):
		return damaged(dir, path, "it was cut to %d bytes, and was made with %d", info.Size(), segment)
	case torn:
		return nil
	case err != nil || !short:
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	return fileutil.Preallocate(file, segment, true)
}

// readSegment reads one file of the log and returns the index of its last entry, or the
// given one without any. visit gets each record that is an entry, a state or a snapshot.
func readSegment(decoder wal.Decoder, last uint64, visit func(*walpb.Record) error) (uint64, error) {
	for record := new(walpb.Record); ; {
		err := decoder.Decode(record)
		switch {
		case errors.Is(err, io.EOF):
			return last, nil
		case err != nil:
			return last, err
		}
		switch record.GetType() {
		case wal.CrcType:
			if before := decoder.LastCRC(); before != 0 && record.GetCrc() != before {
				return last, wal.ErrCRCMismatch
			}
			decoder.UpdateCRC(record.GetCrc())
		case wal.EntryType:
			index := wal.MustUnmarshalEntry(record.Data).GetIndex()
			if last > 0 && index > last+1 {
				return last, fmt.Errorf("entry %d follows entry %d", index, last)
			}
			last = index
			if err := visit(record); err != nil {
				return last, err
			}
		case wal.StateType:
			if err := visit(record); err != nil {
				return last, err
			}
		case wal.SnapshotType: // of a server that was sent one instead of the entries before
			var snapshot walpb.Snapshot
			if err := proto.Unmarshal(record.Data, &snapshot); err != nil {
				return last, err
			}
			last = max(last, snapshot.GetIndex())
			if err := visit(record); err != nil {
				return last, err
			}
		}
	}
}

// checkDatabase reads the whole database and returns the index of the last entry that it
// is made from.
func checkDatabase(dir string) (applied uint64, err error) {
	path := datadir.ToBackendFileName(dir)
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 && !wal.Exist(datadir.ToWALDir(dir)) { // killed when it was made
		return 0, err
	}
	// Where a page is damaged, bbolt panics or reads unmapped memory.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var file *os.File
	defer func() {
		found := recover()
		if _, ok := found.(runtime.Error); ok {
			found = "it refers to a page that it does not have"
		}
		if found != nil {
			err = damaged(dir, path, "the database is damaged: %v", found)
		}
		file.Close() // releases its lock; for a second time when all is well
	}()
	db, err := bolt.Open(path, 0, &bolt.Options{
		ReadOnly: true, Timeout: time.Second,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			file, err = os.OpenFile(name, flag, mode)
			return file, err
		},
	})
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, bolterrors.ErrTimeout): // another process has the lock
		return 0, fmt.Errorf("opening %s: %w", path, err)
	case err != nil:
		return 0, damaged(dir, path, "the database can't be opened: %w", err)
	}
	defer db.Close() //nolint:errcheck // nothing was written
	err = db.View(func(tx *bolt.Tx) error {
		if info.Size() < tx.Size() {
			return fmt.Errorf("it was cut to %d bytes, and has at least %d", info.Size(), tx.Size())
		}
		if meta := tx.Bucket(schema.Meta.Name()); meta != nil {
			if index := meta.Get(schema.MetaConsistentIndexKeyName); len(index) == 8 {
				applied = binary.BigEndian.Uint64(index)
			}
		}
		return readBuckets(tx)
	})
	if err != nil {
		return 0, damaged(dir, path, "the database is damaged: %w", err)
	}
	return applied, nil
}

// readBuckets reads every page in use and looks up every key. It does so in this
// goroutine: bbolt's own check panics in another.
func readBuckets(tx *bolt.Tx) error {
	return tx.ForEach(func(name []byte, bucket *bolt.Bucket) error {
		var before []byte
		return bucket.ForEach(func(key, value []byte) error {
			if before != nil && bytes.Compare(before, key) >= 0 || value != nil && bucket.Get(key) == nil {
				return fmt.Errorf("the keys of its bucket %q are out of order", name)
			}
			before = key
			return nil
		})
	})
}

// checkRoom checks that the file system has room for what a server allocates when it
// starts: the missing segments.
func checkRoom(dir string, log []string, isNew bool) error {
	need := int64(segment + roomForDatabase)
	if isNew {
		need += segment
	}
	for _, name := range log {
		if info, err := os.Stat(filepath.Join(datadir.ToWALDir(dir), name)); err == nil &&
			filepath.Ext(name) == ".tmp" {
			need -= info.Size() // etcd uses it again
		}
	}
	if need <= 0 {
		return nil
	}
	room, err := os.OpenFile(filepath.Join(dir, ".room"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		_ = room.Close()
		_ = os.Remove(room.Name())
	}()
	if err := fileutil.Preallocate(room, need, true); err != nil {
		return &DataError{
			Dir: dir, Err: fmt.Errorf("etcd needs %d bytes more for its log and database: %w", need, err),
			Do: makeRoom,
		}
	}
	return nil
}
