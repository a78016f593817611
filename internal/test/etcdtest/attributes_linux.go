package etcdtest

import "syscall"

// attributes makes the system kill the server when the test process dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
