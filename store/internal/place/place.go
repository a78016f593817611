// Package place tells a data directory from a copy of it. A directory has a file that says where it belongs; two that
// say the same would make the same IDs. Judge decides as a pure function; Enter reads and writes the file.
package place

import (
	"fmt"
)

// Place says where a data directory belongs. In each field, zero means unknown.
type Place struct {
	// of the machine of a quorum, host:port as others reach it; empty: of a quorum of one
	Address string `json:"address,omitempty"`
	Path    string `json:"path,omitempty"`    // of the directory, without symbolic links
	Host    string `json:"host,omitempty"`    // the host's name
	Machine string `json:"machine,omitempty"` // made from the system's machine ID, which many containers lack
	// of the file with the place: a number that may change when the system starts
	Device uint64 `json:"device,omitempty"`
	Inode  uint64 `json:"inode,omitempty"` // of that file: copies are other files
	// when that file was made, in nanoseconds since 1970, if the file system tells
	Born int64 `json:"born,omitempty"`
}

// Verdict is what Judge says of a directory. The zero value is Here.
type Verdict uint8

// The verdicts.
const (
	Here    Verdict = iota // it belongs here
	Copied                 // it is a copy, or was moved: only its user knows which
	Another                // it belongs to another machine of a quorum
)

func (v Verdict) String() string { return [...]string{"here", "copied", "another machine's"}[v] }

// Judge compares the place that a directory names with the one where it is. A machine of a quorum is known by its
// address, wherever it runs. Otherwise a directory is in its place while the file is the same, a path or a device as it
// was, and a host's name or its machine ID: a volume that a scheduler moved, a container that was made again, a host
// with a new name and a device with a new number are no copies.
func Judge(was, is Place) Verdict {
	switch {
	case was.Address != "" && is.Address == was.Address:
		return Here
	case was.Address != "" && is.Address != "":
		return Another
	case was.Inode != is.Inode && !was.remounted(is) || was.Born != 0 && is.Born != 0 && was.Born != is.Born:
		return Copied // a file keeps both when it is renamed, and its copy has neither
	case was.Device != is.Device && was.Path != is.Path:
		return Copied // such as a snapshot of the file system, mounted beside it
	case was.Host != is.Host && was.Machine != "" && is.Machine != "" && was.Machine != is.Machine:
		return Copied // such as the copy of a whole disk in another machine
	}
	return Here
}

// remounted reports whether a file with another inode is the same: some file systems, such as vfat and many in user
// space, give new numbers when they are mounted. Whoever copies a file into its place makes one that is born later.
func (p Place) remounted(is Place) bool {
	p.Inode, p.Machine = is.Inode, is.Machine
	return p.Born != 0 && p.Path != "" && p.Host != "" && p == is
}

// words says where a place is, for an operator.
func (p Place) words() string {
	switch {
	case p.Path == "":
		return "the machine " + p.Address + " of a quorum" // it was restored for that, and has not been used yet
	case p.Address != "":
		return fmt.Sprintf("the machine %s of a quorum, as %s on host %q", p.Address, p.Path, p.Host)
	}
	return fmt.Sprintf("%s on host %q", p.Path, p.Host)
}
