//go:build !linux

package conns

import (
	"net"
	"time"
)

// limitUnread does nothing: only Linux has such a limit.
func limitUnread(net.Conn, time.Duration) {}

// unread returns 0: only Linux tells.
func unread(net.Conn) int { return 0 }
