package demo

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/firn-id/firn/internal/ops/deploy"
)

// self returns the command that calls this program in a shell in the same directory: its name if the shell finds
// it, go run if that built it, or its path.
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

// keptByGo matches the directory in which the go command caches programs.
var keptByGo = regexp.MustCompile(`^[0-9a-f]{64}-d$`)

// builtByGoRun reports whether go run built a program, which go run removes or hides in its cache.
func builtByGoRun(path string) bool {
	dir := filepath.Base(filepath.Dir(path))
	return strings.Contains(path, string(filepath.Separator)+"go-build") && dir == "exe" || keptByGo.MatchString(dir)
}
