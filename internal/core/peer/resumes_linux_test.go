package peer

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// A uevent, as the kernel sends it when the generation ID of the machine has changed. Here root sends it in its place.
func TestTheSystemTellsOfAResume(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can send uevents")
	}
	// In a network of its own, whose uevents no other process hears. The thread ends with the test.
	runtime.LockOSThread()
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		t.Skipf("no network of its own: %v", err)
	}
	resumed, err := Resumes(t.Context())
	if err != nil {
		t.Skipf("no uevents here: %v", err)
	}
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_DGRAM, syscall.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	send := func(message string) {
		t.Helper()
		if err := syscall.Sendto(fd, []byte(message), 0,
			&syscall.SockaddrNetlink{Family: syscall.AF_NETLINK, Groups: fromKernel}); err != nil {
			t.Skipf("can't send a uevent: %v", err)
		}
	}
	send("add@/devices/virtual/x\x00ACTION=add\x00DEVPATH=/devices/virtual/x\x00NEW_VMGENID=10\x00")
	send("change@/devices/x\x00ACTION=change\x00DEVPATH=/devices/x\x00SUBSYSTEM=acpi\x00NEW_VMGENID=1\x00SEQNUM=7\x00")
	select {
	case <-resumed:
	case <-time.After(time.Minute):
		t.Error("nothing after a minute")
	}
}

func TestOnlyANewGenerationIsAResume(t *testing.T) {
	for message, want := range map[string]bool{
		"": false, "NEW_VMGENID=1": true, "change@/x\x00ACTION=change\x00NEW_VMGENID=1\x00SEQNUM=4812\x00": true,
		"change@/x\x00NEW_VMGENID=12\x00": false, "change@/NEW_VMGENID=1\x00ACTION=change\x00": false,
	} {
		if got := isResume([]byte(message)); got != want {
			t.Errorf("isResume(%q) = %v", message, got)
		}
	}
}
