package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/test/logtest"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// While one caller reads the files, the others get the last value, at once.
func TestReadersDoNotWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "one")
	synctest.Test(t, func(t *testing.T) {
		var log logtest.Journal
		reading, goOn := make(chan struct{}), make(chan struct{})
		v, err := Open("words", log.Logger(), func(contents [][]byte, last string) (string, error) {
			if last != "" {
				close(reading)
				<-goOn
			}
			return last + string(contents[0]), nil
		}, path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, "two")
		time.Sleep(time.Second)
		first := make(chan string)
		go func() { first <- v.Get() }()
		<-reading
		for range 3 {
			if got := v.Get(); got != "one" {
				t.Errorf("%q, want the last value", got)
			}
			time.Sleep(time.Second)
		}
		close(goOn)
		if got := <-first; got != "onetwo" {
			t.Errorf("the caller that read the file gets %q", got)
		}
		if got := v.Get(); got != "onetwo" {
			t.Errorf("%q, want what was read", got)
		}
		log.Wants(t, `msg="the words were read again" files=`+path)
	})
}

// Two files make one value. While they do not match, the last value stays.
func TestFilesThatChangeOneAfterTheOther(t *testing.T) {
	directory := t.TempDir()
	one, two := filepath.Join(directory, "one"), filepath.Join(directory, "two")
	write(t, one, "A")
	write(t, two, "A")
	synctest.Test(t, func(t *testing.T) {
		var log logtest.Journal
		v, err := Open("words", log.Logger(), func(contents [][]byte, _ string) (string, error) {
			if string(contents[0]) != string(contents[1]) {
				return "", errors.New("they differ")
			}
			return string(contents[0]), nil
		}, one, two)
		if err != nil {
			t.Fatal(err)
		}
		is := func(want string) {
			t.Helper()
			time.Sleep(time.Second)
			if got := v.Get(); got != want {
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
				log.Wants(t, "they differ")
			}
		}
		is("B")
		log.Wants(t, "were read again")
	})
}

func TestFilesHaveALimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large")
	write(t, path, "")
	for size, want := range map[int64]string{
		maxSize:     "",
		maxSize + 1: path + ": the file has more than 16 MiB; want at most that",
	} {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		if _, err := readAll([]string{path}); text(err) != want {
			t.Errorf("%d bytes: %v, want %q", size, err, want)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
