package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Resumes returns a channel for Options.Resumed that tells whenever the virtual machine resumes from a snapshot, until
// ctx ends. The hypervisor gives the machine another generation ID then (VMGenID), and Linux 6.8 and later report that
// as a uevent. A container gets it too, unless it has a user namespace of its own. An error is returned where the
// system has no such reports, or does not allow this process to read them.
func Resumes(ctx context.Context) (<-chan struct{}, error) {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK,
		syscall.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, fmt.Errorf("can't open a socket for the kernel's uevents: %w", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK, Groups: fromKernel}); err != nil {
		return nil, errors.Join(fmt.Errorf("can't listen to the kernel's uevents: %w", err), syscall.Close(fd))
	}
	socket := os.NewFile(uintptr(fd), "uevents")
	context.AfterFunc(ctx, func() { _ = socket.Close() })
	resumed := make(chan struct{}, 1)
	go func() {
		message := make([]byte, 1<<16)
		for ctx.Err() == nil {
			n, err := socket.Read(message)
			// then some are lost; a renewal tells of a copy in any case
			if err != nil && !errors.Is(err, syscall.ENOBUFS) {
				_ = socket.Close()
				return
			}
			if isResume(message[:n]) {
				select {
				case resumed <- struct{}{}:
				default: // it is told already
				}
			}
		}
	}()
	return resumed, nil
}

// fromKernel is the group of the messages that come from the kernel itself.
const fromKernel = 1

// isResume reports whether a uevent, lines that end in zero bytes, says that the generation ID has changed.
func isResume(message []byte) bool {
	for line := range bytes.SplitSeq(message, []byte{0}) {
		if string(line) == "NEW_VMGENID=1" {
			return true
		}
	}
	return false
}
