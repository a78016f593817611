package place

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// identify fills in what tells a file from its copies.
func (p *Place) identify(file string) error {
	var s unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, file, 0, unix.STATX_INO|unix.STATX_BTIME, &s); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	p.Device, p.Inode = unix.Mkdev(s.Dev_major, s.Dev_minor), s.Ino
	if s.Mask&unix.STATX_BTIME != 0 {
		p.Born = s.Btime.Sec*1e9 + int64(s.Btime.Nsec)
	}
	return nil
}
