package quorum

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/store/quorum/internal/keyring"
)

// signed is a backup of this database by these keys.
func signed(database []byte, keys keyring.Keys) []byte {
	sum := sha256.Sum256(database)
	all := append(bytes.Clone(database), sum[:]...)
	codes := keys.MACs()
	_, _ = codes.Write(all)
	return append(append(all, codes.Sum()...), trailer...)
}

func newKeys(t testing.TB, many int) keyring.Keys {
	t.Helper()
	var keys keyring.Keys
	for range many {
		k, err := keyring.Parse(NewKey())
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	return keys
}

// keyFile is a file of keys.
func keyFile(t testing.TB, keys keyring.Keys) string {
	t.Helper()
	var text strings.Builder
	for _, k := range keys {
		text.WriteString(k.String() + "\n")
	}
	name := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// database is that of a quorum of one.
func database(t testing.TB) []byte {
	t.Helper()
	dir := t.TempDir()
	s, err := tryOne(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Commit(t.Context(), put("key", "1"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile(filepath.Join(dir, "member/snap/db"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A backup is taken if one of the keys has signed all of it. Others are refused before they are opened, and nothing is
// left; with trust they are examined page by page.
func TestWhoseBackup(t *testing.T) {
	whole, keys := database(t), newKeys(t, 3)
	good := signed(whole, keys[:2])
	changed := bytes.Clone(good)
	changed[5000] ^= 1
	plain := good[:len(whole)+sha256.Size]
	damaged := bytes.Clone(whole)
	copy(damaged[2*4096:], bytes.Repeat([]byte{255}, len(damaged)-2*4096))
	for name, c := range map[string]struct {
		backup []byte
		keys   keyring.Keys
		trust  bool
		want   string
	}{
		"by the first key":            {good, keys[:1], false, ""},
		"by the second of two":        {good, keys[1:], false, ""},
		"by another key":              {good, keys[2:], false, "none of the keys of --quorum-key-file has signed it"},
		"with a key for clients":      {good, keyring.Keys{keys[0].ForClients()}, false, "none of the keys"},
		"without a key":               {good, nil, false, "--trust takes it"},
		"one byte is another":         {changed, keys, false, "none of the keys"},
		"by nobody":                   {signed(whole, nil), keys, false, "none of the keys"},
		"of etcd's tools":             {plain, keys, false, "its end is not that of a backup"},
		"its end is missing":          {good[:len(good)-1], keys, false, "its end is not that of a backup"},
		"empty":                       {nil, keys, true, "too little for a backup"},
		"trusted, without a key":      {good, nil, true, ""},
		"trusted, of etcd's tools":    {plain, nil, true, ""},
		"trusted, one byte is other":  {changed, nil, true, "backup"},
		"trusted, no backup":          {bytes.Repeat([]byte("firn"), 5000), nil, true, "database is damaged"},
		"trusted, all pages damaged":  {signed(damaged, nil), nil, true, "database is damaged"},
		"signed, all pages damaged":   {signed(damaged, keys), keys, false, "database is damaged"},
		"trusted, two pages of it":    {whole[:8192], nil, true, "database is damaged"},
		"trusted, without a checksum": {whole, nil, true, "there is no checksum"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			restore := RestoreConfig{
				Backup: filepath.Join(dir, "backup"), As: "127.0.0.1:1",
				Dir: filepath.Join(dir, "data"), Trust: c.trust,
			}
			if err := os.WriteFile(restore.Backup, c.backup, 0o600); err != nil {
				t.Fatal(err)
			}
			if c.keys != nil {
				restore.KeyFile = keyFile(t, c.keys)
			}
			_, err := Restore(t.Context(), restore)
			if err == nil && c.want != "" || err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("Restore = %v; want %q", err, c.want)
			}
			want := []string{"backup"}
			if err == nil {
				want = append(want, "data")
			}
			left, _ := os.ReadDir(dir)
			if len(left) != len(want) {
				t.Errorf("it leaves %v; want %v", left, want)
			}
		})
	}
}

// A directory that others can write is not taken.
func TestDirectoryOfOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "from")
	if err := os.MkdirAll(filepath.Join(dir, "member/snap"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "member"), 0o777); err != nil { //nolint:gosec // others can write it
		t.Fatal(err)
	}
	_, err := Restore(t.Context(),
		RestoreConfig{Backup: dir, As: "127.0.0.1:1", Dir: filepath.Join(t.TempDir(), "data")})
	if err == nil || !strings.Contains(err.Error(), "member") {
		t.Errorf("Restore = %v; want that others can write it", err)
	}
}
