package space

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
)

func TestLow(t *testing.T) {
	for _, tt := range []struct {
		room         Room
		low, veryLow bool
	}{
		{Room{1 << 29, 0.5, 1}, false, false},
		{Room{1 << 29, 0.19, 1}, true, false},
		{Room{1 << 29, 0.04, 1}, true, true},
		{Room{0, 0, 1}, true, true},
		{Room{2 << 30, 0.04, 1}, true, false},
		{Room{50 << 30, 0.04, 1}, false, false},
		{Room{50 << 30, 0.5, 0.19}, true, false},
		{Room{50 << 30, 0.5, 0.04}, true, true},
	} {
		if low, veryLow := tt.room.Low(), tt.room.VeryLow(); low != tt.low || veryLow != tt.veryLow {
			t.Errorf("%+v: low %v, very low %v", tt.room, low, veryLow)
		}
	}
}

func TestOf(t *testing.T) {
	if r, ok := Of(t.TempDir()); runtime.GOOS == "linux" &&
		(!ok || r.Free <= 0 || r.Share <= 0 || r.Share > 1 || r.Inodes > 1) {
		t.Errorf("a directory has %+v, %v", r, ok)
	}
	if r, ok := Of("/nothing/here"); ok {
		t.Errorf("what is not there has %+v", r)
	}
	if share(0, 0) != 1 || share(0, 7) != 0 {
		t.Error("nothing of nothing is little")
	}
	if !Full(fmt.Errorf("write: %w", syscall.ENOSPC)) || !Full(syscall.EDQUOT) || Full(syscall.EACCES) {
		t.Error("which errors say that a disk is full?")
	}
}
