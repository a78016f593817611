package overlay

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// SteppableClock is the source of package time, by file name, with a wall clock that is off by what a file says, such
// as -10s or 1h. The variable FAKE_WALL_FILE names that file, which is read every 20 ms; without it the clock is right.
// The monotonic clock stays what it is, as when NTP or an operator steps the clock. The program that ships has no hook
// for this. It panics when this Go's package time has another shape.
func SteppableClock() map[string]string {
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
	edit("func Now() Time {", "mono -= startNano", "sec, nsec = steppedWall(sec, nsec)\n\tmono -= startNano")
	edit("import (", "import (\n", "import (\n\t\"sync/atomic\"\n\t\"syscall\"\n")
	return map[string]string{file: edited + stepping}
}

// The runtime also reads the clock where a program must not do anything else, so the file is read by a goroutine.
const stepping = `
var wallStep int64

func init() {
	name, ok := syscall.Getenv("FAKE_WALL_FILE")
	if !ok {
		return
	}
	read := func() {
		off := Duration(0)
		if text, err := readFile(name); err == nil {
			off, _ = ParseDuration(string(text))
		}
		atomic.StoreInt64(&wallStep, int64(off))
	}
	read()
	go func() {
		for {
			Sleep(20 * Millisecond)
			read()
		}
	}()
}

func steppedWall(sec int64, nsec int32) (int64, int32) {
	total := sec*1e9 + int64(nsec) + atomic.LoadInt64(&wallStep)
	return total / 1e9, int32(total % 1e9)
}
`
