package demo

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/firn-id/firn/internal/deploy"
)

// self returns how to call this program in a shell in the same directory: by its name if the shell finds it, as go run did, or
// by its path.
func self() string {
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
	return deploy.Quote(path)
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// keptByGo is the directory in which the go command keeps a program that it has run before.
var keptByGo = regexp.MustCompile(`^[0-9a-f]{64}-d$`)

// builtByGoRun tells whether a program is one that go run has built: it is removed at the end, or kept where nobody would look.
func builtByGoRun(path string) bool {
	dir := filepath.Base(filepath.Dir(path))
	return strings.Contains(path, string(filepath.Separator)+"go-build") && dir == "exe" || keptByGo.MatchString(dir)
}
