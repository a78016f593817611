package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// self is how to call this program in a shell that is where this one is: by its name if that finds it, as go run did, or by its
// path.
func (p *program) self() string {
	path, err := os.Executable()
	if err != nil {
		return "firn"
	}
	if found, err := exec.LookPath("firn"); err == nil && sameFile(found, path) {
		return "firn"
	}
	const source = "cmd/firn/main.go"
	if _, err := os.Stat(source); err == nil && builtByGoRun(path) {
		return "go run ./" + filepath.Dir(source)
	}
	return quoted(path)
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// builtByGoRun tells whether a program is one that go run has built, and will remove.
func builtByGoRun(path string) bool {
	return strings.Contains(path, string(filepath.Separator)+"go-build") && filepath.Base(filepath.Dir(path)) == "exe"
}

// quoted is a word for a shell.
func quoted(word string) string {
	const harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:@%,"
	if word != "" && strings.Trim(word, harmless) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
