package quorum

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store"
)

const databaseFile = "member/snap/db"

// writtenDir is a data directory with some entries that a server has closed.
func writtenDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	e := openOne(t, Config{Dir: dir})
	for i := range 40 {
		op := store.Put(fmt.Sprintf("key/%d", i), bytes.Repeat([]byte("x"), 1000))
		if _, err := e.Commit(t.Context(), store.Txn{Then: []store.Op{op}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// copyOf is a copy of a data directory, and the path of its log from there.
func copyOf(t *testing.T, dir string) (copied, log string) {
	t.Helper()
	copied = filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(filepath.Join(copied, "member"), os.DirFS(filepath.Join(dir, "member"))); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(copied, "member", "wal", "*.wal"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("the log is %v, %v; want one file", logs, err)
	}
	return copied, filepath.Join("member", "wal", filepath.Base(logs[0]))
}

// overwrite writes to the middle of a file.
func overwrite(t *testing.T, file string, at int64, what []byte) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt(what, at)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// usedSize is the part of a database that its pages are in; what follows is allocated only.
func usedSize(t *testing.T, dir string) (size int64) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, databaseFile), 0, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.View(func(tx *bolt.Tx) error { size = tx.Size(); return nil }); err != nil {
		t.Fatal(err)
	}
	return size
}

// Damaged data is refused before etcd sees it, with the file, what is wrong with it, and what to do.
func TestDamagedDataIsRefused(t *testing.T) {
	t.Parallel()
	good := writtenDir(t)
	used := usedSize(t, good)
	_, log := copyOf(t, good)
	garbage := func(n int64) []byte { return bytes.Repeat([]byte{0xA5}, int(n)) }
	for _, tt := range []struct {
		name   string
		damage func(file func(string) string) error
		file   string
		want   string
	}{
		{"a short database", func(file func(string) string) error {
			return os.Truncate(file(databaseFile), 1000)
		}, databaseFile, "can't be opened"},
		{"half a database", func(file func(string) string) error {
			return os.Truncate(file(databaseFile), used/2)
		}, databaseFile, "cut to"},
		{"an empty database", func(file func(string) string) error {
			return os.Truncate(file(databaseFile), 0)
		}, databaseFile, "can't be opened"},
		{"a database whose end is something else", func(file func(string) string) error {
			overwrite(t, file(databaseFile), used/2, garbage(used/2))
			return nil
		}, databaseFile, "is damaged"},
		{"no database", func(file func(string) string) error {
			return os.Remove(file(databaseFile))
		}, databaseFile, "missing"},
		{"an empty log", func(file func(string) string) error { return os.Truncate(file(log), 0) }, log, "it is empty"},
		{"a short log", func(file func(string) string) error {
			return os.Truncate(file(log), 1001)
		}, log, "cut to 1001 bytes"},
		{"a log that ends early", func(file func(string) string) error {
			overwrite(t, file(log), 4096, make([]byte, 1<<20))
			return nil
		}, log, "the log ends with entry "},
		{"a log with something else in it", func(file func(string) string) error {
			overwrite(t, file(log), 4096, garbage(100))
			return nil
		}, log, "checksum"},
		{"no log", func(file func(string) string) error {
			return os.Remove(file(log))
		}, "member/wal", "it holds no log"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, _ := copyOf(t, good)
			if err := tt.damage(func(name string) string { return filepath.Join(dir, name) }); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the first one left nothing behind, and holds nothing
				_, err := tryOne(Config{Dir: dir})
				data, ok := errors.AsType[*DataError](err)
				if !ok || data.Dir != dir || data.File != tt.file || !strings.Contains(data.Err.Error(), tt.want) ||
					!strings.Contains(data.Do, "backup") {
					t.Errorf("Open: %v\nwant a DataError about %s: %s", err, tt.file, tt.want)
				}
				if err != nil && strings.Contains(err.Error(), "\n") {
					t.Errorf("the error has several lines:\n%v", err)
				}
			}
		})
	}
	whole, _ := copyOf(t, good)
	if err := openOne(t, Config{Dir: whole}).Close(); err != nil {
		t.Errorf("Close of one that is not damaged: %v", err)
	}
}

// spoiledDir asks TestWhatOnlyEtcdFinds to be the process that opens it.
const spoiledDir = "FIRN_TEST_SPOILED_DIR"

// Damage that only etcd finds, since only etcd knows what its values mean, is an error of Open as well, and no end of
// the process.
func TestWhatOnlyEtcdFinds(t *testing.T) {
	if dir := os.Getenv(spoiledDir); dir != "" { // in a process of its own: what etcd holds is not given back
		_, err := tryOne(Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(os.Stdout, nil))})
		data, ok := errors.AsType[*DataError](err)
		fmt.Printf("\n%v %v\n", ok, data)
		os.Exit(0)
	}
	t.Parallel()
	dir := writtenDir(t)
	db, err := bolt.Open(filepath.Join(dir, databaseFile), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		values := tx.Bucket([]byte("key"))
		key, _ := values.Cursor().First()
		return values.Put(key, []byte("no value"))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestWhatOnlyEtcdFinds$")
	child.Env = append(os.Environ(), spoiledDir+"="+dir)
	said, err := child.CombinedOutput()
	want := fmt.Sprintf("\ntrue data directory %q: etcd can't go on: failed to unmarshal mvccpb.KeyValue: ", dir)
	if err != nil || !strings.HasPrefix(string(said), want) || !strings.Contains(string(said), "; restore a backup") ||
		bytes.Count(said, []byte("\n")) != 2 {
		t.Errorf("the process ended with %v and said\n%s\nwant%s", err, said, want)
	}
}

// Whichever page of the database is overwritten, nothing panics, and a server that starts all the same has everything.
func TestEachPageOfTheDatabase(t *testing.T) {
	t.Parallel()
	good := writtenDir(t)
	page, refused := int64(os.Getpagesize()), 0
	for at := int64(0); at < usedSize(t, good); at += page {
		dir, _ := copyOf(t, good)
		overwrite(t, filepath.Join(dir, databaseFile), at, bytes.Repeat([]byte{0xFF}, int(page)))
		e, err := tryOne(Config{Dir: dir})
		if _, ok := errors.AsType[*DataError](err); ok {
			refused++
			continue
		}
		if err != nil {
			t.Fatalf("page %d: %v", at/page, err)
		}
		if kvs, err := e.List(t.Context(), "key/"); err != nil || len(kvs) != 40 {
			t.Errorf("without page %d: %d keys, %v; want 40", at/page, len(kvs), err)
		}
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if refused < 10 {
		t.Errorf("%d pages are needed; want those of 40 kB at least", refused)
	}
}

// A last record that was not written in full, as by a machine that lost its power, is taken away; the directory is as
// good as before.
//
// It runs alone: to take the record away etcd opens the log twice, and a process that another test starts between has
// copies of all open files until it runs, and with them their locks.
func TestARecordThatWasNotWrittenInFull(t *testing.T) {
	dir, log := copyOf(t, writtenDir(t))
	record := append(binary.LittleEndian.AppendUint64(nil, 2000), bytes.Repeat([]byte("x"), 100)...)
	overwrite(t, filepath.Join(dir, log), endOf(t, filepath.Join(dir, log)), record)
	for range 2 {
		e := openOne(t, Config{Dir: dir})
		if kvs, err := e.List(t.Context(), "key/"); err != nil || len(kvs) != 40 {
			t.Errorf("%d keys, %v; want 40", len(kvs), err)
		}
		if _, err := e.Commit(t.Context(), putting("more")); err != nil {
			t.Errorf("Commit: %v", err)
		}
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, log+".broken")); err != nil {
		t.Errorf("no record was taken away: %v", err)
	}
}

// A server that is killed as it opens the log may leave it without the room that was allocated at its end.
func TestALogWithoutRoomAtItsEnd(t *testing.T) {
	t.Parallel()
	dir, log := copyOf(t, writtenDir(t))
	log = filepath.Join(dir, log)
	if err := os.Truncate(log, endOf(t, log)); err != nil {
		t.Fatal(err)
	}
	e := openOne(t, Config{Dir: dir})
	if kvs, err := e.List(t.Context(), "key/"); err != nil || len(kvs) != 40 {
		t.Errorf("%d keys, %v; want 40", len(kvs), err)
	}
	if info, err := os.Stat(log); err != nil || info.Size() != 4<<20 {
		t.Errorf("the log has %d bytes, %v; want 4 MiB again", info.Size(), err)
	}
}

// endOf is where the last record of a log ends.
func endOf(t *testing.T, log string) int64 {
	t.Helper()
	written, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return int64(len(bytes.TrimRight(written, "\x00"))+7) / 8 * 8
}

// loadedDir asks TestKilledUnderLoad to be the process that is killed.
const loadedDir = "FIRN_TEST_LOADED_DIR"

// What a process leaves that is killed while many write is never taken for damage, and everything is there that was
// confirmed.
func TestKilledUnderLoad(t *testing.T) {
	testenv.Slow(t)
	if dir := os.Getenv(loadedDir); dir != "" {
		e := openOne(t, Config{Dir: dir})
		had, err := e.List(t.Context(), "key/")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("\nfound %d\n", len(had))
		var writers sync.WaitGroup
		for w := range 8 {
			writers.Go(func() {
				for i := 0; ; i++ {
					op := store.Put(fmt.Sprintf("key/%d-%d-%d", os.Getpid(), w, i), bytes.Repeat([]byte("x"), 1000*w))
					if _, err := e.Commit(t.Context(), store.Txn{Then: []store.Op{op}}); err != nil {
						t.Error(err)
						return
					}
					fmt.Printf("\ncommitted %d\n", i)
				}
			})
		}
		writers.Wait()
		return
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	confirmed := 0
	for kill := range 20 {
		child := exec.Command(os.Args[0], "-test.run=^TestKilledUnderLoad$")
		child.Env = append(os.Environ(), loadedDir+"="+dir)
		out := output{until: fmt.Appendf(nil, "committed %d\n", 3+7*kill%20), seen: make(chan struct{})}
		child.Stdout, child.Stderr = &out, &out
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-out.seen:
		case <-time.After(patience):
			t.Errorf("start %d: the child does not write", kill)
		}
		_ = child.Process.Kill()
		_ = child.Wait()
		found := -1
		_, after, _ := bytes.Cut(out.all, []byte("\nfound "))
		_, _ = fmt.Sscanf(string(after), "%d", &found)
		if found < confirmed {
			t.Fatalf("start %d found %d of %d keys:\n%s", kill, found, confirmed, out.all)
		}
		confirmed = found + bytes.Count(out.all, []byte("\ncommitted "))
	}
}
