package etcdtest

import "syscall"

// attributes has the server die with the test process, should that be killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
