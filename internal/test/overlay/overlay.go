// Package overlay has the go command build with changed source files, without touching the files: for mutants, for
// pauses in the hot path, and for a clock that tests can step, of which it has the source.
package overlay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Write writes an overlay into dir that replaces the files, by name, with other texts. It returns the argument that has
// the go command use it.
func Write(dir string, files map[string]string) (argument string, err error) {
	replace := map[string]string{}
	for name, text := range files {
		if name, err = filepath.Abs(name); err != nil {
			return "", err
		}
		with := filepath.Join(dir, fmt.Sprintf("%d-%s", len(replace), filepath.Base(name)))
		if err := os.WriteFile(with, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[name] = with
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return "-overlay=" + file, os.WriteFile(file, text, 0o600)
}

// Edit returns the text of a file with old replaced by change. It returns an error unless old is in the file exactly
// once.
func Edit(file, old, change string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), old); n != 1 {
		return "", fmt.Errorf("overlay: %s has %d places that read %q; want 1", file, n, old)
	}
	return strings.Replace(string(text), old, change, 1), nil
}
