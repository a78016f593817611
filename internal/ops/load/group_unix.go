//go:build unix

package load

import (
	"os/exec"
	"syscall"
)

// inGroup has a command end with those that it has started.
func inGroup(process *exec.Cmd) {
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	process.Cancel = func() error { return syscall.Kill(-process.Process.Pid, syscall.SIGKILL) }
}
