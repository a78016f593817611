//go:build !linux

package port

import "net"

// setUserTimeout does nothing where there is no such option: keep-alive ends a connection to a machine that is gone.
func setUserTimeout(net.Conn) {}
