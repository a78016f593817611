package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	first, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), path) {
		t.Errorf("the second one gets %v, want ErrInUse with the path", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "text" {
		t.Errorf("a reader gets %q, %v", text, err)
	}
	first.Close()
	second, err := Open(path)
	if err != nil {
		t.Fatalf("after it was closed: %v", err)
	}
	defer second.Close()
	if info, err := second.Stat(); err != nil || info.Size() != 4 {
		t.Errorf("the file is not as it was: %v, %v", info, err)
	}
	if _, err := Open(t.TempDir()); err == nil || errors.Is(err, ErrInUse) {
		t.Errorf("of a folder: %v", err)
	}
}
