package etcdserver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

// database returns a small database with what etcd's have: branches, leaves, small buckets, long values, free pages.
func database(t testing.TB, options bbolt.Options) []byte {
	t.Helper()
	options.PageSize = 1024
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, &options)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		err := db.Update(func(tx *bbolt.Tx) error {
			for _, name := range []string{"key", "meta", "members", "empty"} {
				if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
					return err
				}
			}
			for i := range 60 {
				key := binary.BigEndian.AppendUint64(nil, uint64(i*3+round))
				key = append(append(key, '_'), make([]byte, 8)...)
				if err := tx.Bucket([]byte("key")).Put(key, []byte{10, 1, 'k'}); err != nil {
					return err
				}
			}
			_ = tx.Bucket([]byte("members")).Put([]byte("1"), bytes.Repeat([]byte{1}, 3000*(3-round)))
			return tx.Bucket([]byte("meta")).Put([]byte("consistent_index"), make([]byte, 8))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func check(all []byte) error {
	return checkPages(bytes.NewReader(all), int64(len(all)), checkEntry)
}

// sign makes the checksum of a page with metadata right.
func sign(all []byte, page int) {
	meta := all[page*1024+pageHeader:]
	sum := fnv.New64a()
	_, _ = sum.Write(meta[:56])
	binary.LittleEndian.PutUint64(meta[56:], sum.Sum64())
}

func TestCheckPages(t *testing.T) {
	for _, options := range []bbolt.Options{{}, {NoFreelistSync: true}} {
		all := database(t, options)
		if err := check(all); err != nil {
			t.Fatalf("%+v: %v", options, err)
		}
		first := bytes.Clone(all)
		first[pageHeader]++ // a crash while a page was written
		if err := check(first); err != nil {
			t.Errorf("without the first page: %v", err)
		}
	}
	whole := database(t, bbolt.Options{})
	latest := 0
	if binary.LittleEndian.Uint64(whole[1024+pageHeader+48:]) > binary.LittleEndian.Uint64(whole[pageHeader+48:]) {
		latest = 1
	}
	root := int(binary.LittleEndian.Uint64(whole[latest*1024+pageHeader+16:]))
	put := func(offset int, value uint64) func([]byte) {
		return func(b []byte) { binary.LittleEndian.PutUint64(b[offset:], value) }
	}
	for name, c := range map[string]struct {
		change func([]byte)
		want   string
	}{
		"no metadata":            {func(b []byte) { clear(b[:2048]) }, "neither of its first two pages"},
		"a root beyond the end":  {put(latest*1024+pageHeader+16, 1<<40), "refers to page 1099511627776"},
		"a root that is no tree": {put(latest*1024+pageHeader+16, 0), "refers to page 0"},
		"more pages than there":  {put(latest*1024+pageHeader+40, 1<<40), "pages; want at least 2, and 1099511627776"},
		"another page":           {put(root*1024, 99), "says that it is 99"},
		"another kind":           {func(b []byte) { b[root*1024+8] = 4 }, "is of kind 0x4"},
		"many elements": {func(b []byte) {
			b[root*1024+10], b[root*1024+11] = 255, 255
		}, "65535 elements in 1024 bytes"},
		"a key far away":     {func(b []byte) { b[root*1024+pageHeader+6] = 255 }, "the key of element 0 is at"},
		"a long value":       {func(b []byte) { b[root*1024+pageHeader+14] = 255 }, "a value has"},
		"a long run":         {func(b []byte) { b[root*1024+14] = 255 }, "with 16711681 pages"},
		"a free list in use": {put(latest*1024+pageHeader+32, uint64(root)), "is used twice"},
	} {
		b := bytes.Clone(whole)
		c.change(b)
		if c.want[0] != 'n' {
			sign(b, latest)
		}
		if err := check(b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

// Whatever is changed in a database, it is refused or bbolt can read all of it, in order and without a panic.
func FuzzCheckPages(f *testing.F) {
	whole := [][]byte{database(f, bbolt.Options{}), database(f, bbolt.Options{NoFreelistSync: true})}
	for page := range len(whole[0]) / 1024 {
		for _, at := range []int{0, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48} {
			f.Add(false, binary.BigEndian.AppendUint16(nil, uint16(page*1024+at)), byte(255))
			f.Add(true, binary.BigEndian.AppendUint16(nil, uint16(page*1024+at)), byte(1))
		}
	}
	path := filepath.Join(f.TempDir(), "db")
	f.Fuzz(func(t *testing.T, which bool, places []byte, with byte) {
		b := bytes.Clone(whole[0])
		if which {
			b = bytes.Clone(whole[1])
		}
		for ; len(places) >= 2; places = places[2:] {
			b[int(binary.BigEndian.Uint16(places))%len(b)] ^= with
		}
		sign(b, 0)
		sign(b, 1)
		if check(b) != nil {
			return
		}
		path := fmt.Sprint(path, os.Getpid())
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
		if err != nil {
			t.Fatalf("it can't be opened: %v", err)
		}
		defer db.Close()
		if err := db.View(readBuckets); err != nil {
			t.Errorf("it can't be read: %v", err)
		}
	})
}
