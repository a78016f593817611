//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// steppableClock is package time with a wall clock that is off by what a file says, such as -10s or 1h. It is read
// anew every 50 ms; the monotonic clock stays what it is, as when NTP or an operator steps the clock. It is built
// into the node from an overlay of Go's own source, so the program that ships has no hook for it.
func steppableClock() map[string]string {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		panic(err)
	}
	file := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	edited := string(text)
	edit := func(after, old, change string) {
		from := strings.Index(edited, after)
		if at := strings.Index(edited[max(from, 0):], old); from >= 0 && at >= 0 {
			edited = edited[:from+at] + change + edited[from+at+len(old):]
			return
		}
		panic("this Go's package time has another shape: no " + old)
	}
	edit("func Now() Time {", "mono -= startNano", "sec, nsec = steppedWall(sec, nsec, mono)\n\tmono -= startNano")
	edit("import (", "import (\n", "import (\n\t\"sync/atomic\"\n\t\"syscall\"\n")
	return map[string]string{file: edited + stepping}
}

const stepping = `
var wallStep struct{ busy, readAt, off int64 }

func steppedWall(sec int64, nsec int32, mono int64) (int64, int32) {
	if mono-atomic.LoadInt64(&wallStep.readAt) > 50e6 && atomic.CompareAndSwapInt64(&wallStep.busy, 0, 1) {
		off := int64(0)
		if name, ok := syscall.Getenv("FAKE_WALL_FILE"); ok {
			if text, err := readFile(name); err == nil {
				if d, err := ParseDuration(string(text)); err == nil {
					off = int64(d)
				}
			}
		}
		atomic.StoreInt64(&wallStep.off, off)
		atomic.StoreInt64(&wallStep.readAt, mono)
		atomic.StoreInt64(&wallStep.busy, 0)
	}
	total := sec*1e9 + int64(nsec) + atomic.LoadInt64(&wallStep.off)
	return total / 1e9, int32(total % 1e9)
}
`
