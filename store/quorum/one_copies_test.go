package quorum

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
)

// A copy of a data directory is refused, beside the original and in its place, until somebody says that it was moved.
func TestACopyIsRefused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "original")
	opens := func(c Config) {
		t.Helper()
		s, err := tryOne(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("key", []byte("1"))}}); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	opens(Config{Dir: dir})
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	original, err := tryOne(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer original.Close() //nolint:errcheck // a test
	if s, err := tryOne(Config{Dir: copied}); err == nil ||
		!strings.Contains(err.Error(), "it is a copy, or was moved: it belongs to "+dir) {
		t.Errorf("the copy: %v, %v", s, err)
	}
	if s, err := tryOne(Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("the original, a second time: %v, %v", s, err)
	}
	opens(Config{Dir: copied, Moved: true})
	opens(Config{Dir: copied})
	renamed := copied + "-renamed"
	if err := os.Rename(copied, renamed); err != nil {
		t.Fatal(err)
	}
	opens(Config{Dir: renamed})
}
