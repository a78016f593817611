// Package overlay lets the go command build with some source files replaced by others, without
// touching them: for mutants, for pauses in the hot path, for a clock that tests can step.
package overlay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Write writes an overlay into dir that replaces the files named by the keys with the texts, and returns the
// argument for the go command that applies it.
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

// Edit returns the text of a file with one place of it changed. An error is returned when old does not stand
// there exactly once.
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
