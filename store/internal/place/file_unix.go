//go:build unix && !linux

package place

import (
	"os"
	"syscall"
)

// identify fills in what tells a file from its copies.
func (p *Place) identify(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		p.Device, p.Inode = uint64(s.Dev), uint64(s.Ino) //nolint:unconvert // their types differ from system to system
	}
	return nil
}
