package quorum

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A directory of several machines is used by no quorum of one, unless its machine is the only one left.
func TestCheckOne(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ file, want string }{
		{"", ""},
		{`{"state":"started","cluster":"x","known":["a:1"]}`, ""},
		{
			`{"state":"started","cluster":"x","known":["a:1","b:1","c:1"]}`,
			" belongs to the quorum of a:1, b:1, c:1; start it with --quorum",
		},
		{`{"state":"started","cluster":"x"}`, " belongs to a quorum; "},
		{`{"state":"promised","cluster":"x"}`, " belongs to a quorum; "}, // another machine may have formed it
		{`{"state":"formed","cluster":"x","known":["a:1"]}`, " belongs to the quorum of a:1; "},
		// the log is not to begin again
		{`{"state":"lost","cluster":"x","known":["a:1"]}`, " belongs to the quorum of a:1; "},
		{
			`{"state":"removed","cluster":"x","known":["a:1","b:1","c:1"]}`,
			" was part of the quorum of a:1, b:1, c:1, from which its machine was removed; give another directory",
		},
		{`{"state":`, " can't be read: "},
	} {
		dir := t.TempDir()
		if tt.file != "" {
			if err := os.WriteFile(filepath.Join(dir, diskFile), []byte(tt.file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		switch err := CheckOne(dir); {
		case tt.want == "" && err != nil, tt.want != "" &&
			(err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.file, err, tt.want)
		}
	}
	if err := CheckOne(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Errorf("a directory that is not there: %v", err)
	}
}
