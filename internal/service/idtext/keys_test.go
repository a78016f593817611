package idtext

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/test/logtest"
)

func TestKeysThatAreWrong(t *testing.T) {
	const good = "AAAAAAAAAAAAAAAAAAAAAA=="
	for file, want := range map[string]string{
		"":                                     "no keys; want at least one, as firn seal-key prints it",
		"# only a comment\n\n":                 "no keys",
		"1":                                    "line 1: it has 1 words; want a version from 1 to 65535",
		"# one\n1 " + good + " 2":              "line 2: it has 3 words",
		"0 " + good:                            "line 1: it does not begin with a version",
		"65536 " + good:                        "line 1: it does not begin with a version",
		good + " 1":                            "line 1: it does not begin with a version",
		"1 " + good + "\n1 " + good:            "line 2: there is another key of version 1",
		"1 secret-secret-secret":               "line 1: the key is not base64",
		"1 c2VjcmV0":                           "line 1: the key of a sealer has 6 bytes; want 16, 24 or 32",
		"1 AAAAAAAAAAAAAAAAAAAAAB==":           "line 1: the key is not base64", // bits that mean nothing
		" 65535 " + good + " \r\n#\n2 " + good: "",
	} {
		_, err := ParseKeys([]byte(file))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", file, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "AAAA") || strings.Contains(err.Error(), "secret-") ||
			strings.Contains(err.Error(), "c2V")) {
			t.Errorf("%v shows a key", err)
		}
	}
}

func TestNewKeys(t *testing.T) {
	first, err := NewKey(nil)
	if err != nil || !strings.HasPrefix(first, "1 ") {
		t.Fatal(first, err)
	}
	keys, err := ParseKeys([]byte(first))
	if err != nil {
		t.Fatal(err)
	}
	second, err := NewKey(keys)
	if err != nil || !strings.HasPrefix(second, "2 ") || second[2:] == first[2:] {
		t.Errorf("%q after %q, %v", second, first, err)
	}
	if keys, err = ParseKeys([]byte("65535 AAAAAAAAAAAAAAAAAAAAAA==")); err != nil {
		t.Fatal(err)
	}
	if line, err := NewKey(keys); err == nil {
		t.Errorf("%q after the last version", line)
	}
}

// A changed file is read again. One that can't be read changes nothing, and is logged once.
func TestKeysAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "seal.keys")
		is := func(content string) {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		is("1 AAAAAAAAAAAAAAAAAAAAAA==")
		var log logtest.Journal
		keys, err := OpenKeys(path, log.Logger())
		if err != nil {
			t.Fatal(err)
		}
		q := orders(t)
		q.Keys = keys()
		old := text(t, q, Sealed, 7)
		is("2 BAAAAAAAAAAAAAAAAAAAAA==\n1 AAAAAAAAAAAAAAAAAAAAAA==\n")
		q.Keys = keys()
		if now := text(t, q, Sealed, 7); !strings.HasPrefix(now, "2-") {
			t.Errorf("%s becomes %s", old, now)
		}
		log.Wants(t, `level=INFO msg="the keys that seal IDs were read again"`)
		is("2 half a li")
		for range 3 {
			q.Keys = keys()
			if id, _, err := q.Read(old, today); id != 7 || err != nil {
				t.Errorf("%s opens to %d, %v", old, id, err)
			}
			time.Sleep(time.Second)
		}
		log.Wants(t, `level=ERROR msg="the keys that seal IDs can't be used; those read before stay in use"`)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if keys() != q.Keys {
			t.Error("the keys are gone with the file")
		}
		log.Wants(t, "no such file")
	})
	if _, err := OpenKeys(filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("a missing file is read")
	}
}
