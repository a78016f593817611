package auth

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Those who come while one reads the files get what was there before, at once.
func TestReadersAreNotHeldUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, []byte("one"))
	var c clock
	var log journal
	reading, goOn := make(chan struct{}), make(chan struct{})
	k := &kept[string]{what: "words", paths: []string{path}, log: log.logger(), now: c.now}
	k.parse = func(contents [][]byte, last string) (string, error) {
		if last != "" {
			close(reading)
			<-goOn
		}
		return last + string(contents[0]), nil
	}
	if err := k.open(); err != nil {
		t.Fatal(err)
	}
	write(t, path, []byte("two"))
	c.pass(time.Second)
	first := make(chan string)
	go func() { first <- k.get() }()
	<-reading
	for range 3 {
		if got := k.get(); got != "one" {
			t.Errorf("%q, want the value before", got)
		}
		c.pass(time.Second)
	}
	close(goOn)
	if got := <-first; got != "onetwo" {
		t.Errorf("who read the file gets %q", got)
	}
	if got := k.get(); got != "onetwo" {
		t.Errorf("%q, want what was read", got)
	}
	log.wants(t, `msg="the words were read again" files=`+path)
}

// Two files are one value. A change of one that does not go with the other is no end of it.
func TestFilesThatChangeOneAfterTheOther(t *testing.T) {
	directory := t.TempDir()
	one, two := filepath.Join(directory, "one"), filepath.Join(directory, "two")
	write(t, one, []byte("A"))
	write(t, two, []byte("A"))
	var c clock
	var log journal
	k := &kept[string]{what: "words", paths: []string{one, two}, log: log.logger(), now: c.now}
	k.parse = func(contents [][]byte, _ string) (string, error) {
		if string(contents[0]) != string(contents[1]) {
			return "", errors.New("they differ")
		}
		return string(contents[0]), nil
	}
	if err := k.open(); err != nil {
		t.Fatal(err)
	}
	is := func(want string) {
		t.Helper()
		c.pass(time.Second)
		if got := k.get(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	same := time.Unix(1_700_000_000, 0)
	for _, path := range []string{one, two} { // in place: their sizes, times and inodes stay
		if err := errors.Join(os.WriteFile(path, []byte("B"), 0o600), os.Chtimes(path, same, same)); err != nil {
			t.Fatal(err)
		}
		if path == one {
			is("A")
			is("A")
			log.wants(t, "they differ")
		}
	}
	is("B")
	log.wants(t, "were read again")
}

func TestFilesHaveALimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large")
	write(t, path, nil)
	if err := os.Truncate(path, maxFile); err != nil {
		t.Fatal(err)
	}
	if _, err := readFiles([]string{path}); err != nil {
		t.Error(err)
	}
	if err := os.Truncate(path, maxFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := readFiles([]string{path}); text(err) != path+": it has more than 16 MiB; want less" {
		t.Error(err)
	}
}
