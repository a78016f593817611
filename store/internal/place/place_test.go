package place

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJudge has what docs/recover.md says of copies, and what else may come of copies and moves.
func TestJudge(t *testing.T) {
	t.Parallel()
	alone := Place{Path: "/var/lib/firn", Host: "ids-1", Machine: "a1", Device: 2049, Inode: 12, Born: 1000}
	machine := alone.with(func(p *Place) { p.Address = "ids-1:7420" })
	everything := func(p *Place) {
		*p = Place{Address: p.Address, Path: "/other", Host: "other", Machine: "b2", Device: 7, Inode: 8, Born: 9}
	}
	for _, c := range []struct {
		what    string
		was     Place
		changed func(*Place)
		want    Verdict
	}{
		// A machine of a quorum.
		{"nothing", machine, func(*Place) {}, Here},
		{"everything but the address: another host runs the machine", machine, everything, Here},
		{"a restored directory, at its machine", Place{Address: "ids-1:7420"}, everything, Here},
		{"the address", machine, func(p *Place) { p.Address = "ids-2:7420" }, Another},
		{"a restored directory, at another machine", Place{Address: "ids-1:7420"}, func(p *Place) {
			p.Address = "ids-2:7420"
		}, Another},
		{"its port", machine, func(p *Place) { p.Address = "ids-1:7421" }, Another},
		{"a quorum of one becomes the first of several", alone, func(p *Place) { p.Address = "ids-1:7420" }, Here},
		{"a copy of it becomes one, too", alone, func(p *Place) {
			p.Address, p.Inode, p.Born = "ids-2:7420", 13, 2000
		}, Copied},
		{"the last of several becomes a quorum of one", machine, func(p *Place) { p.Address = "" }, Here},
		{"a copy of its directory does", machine, func(p *Place) { p.Address, p.Inode, p.Born = "", 13, 2000 }, Copied},
		{"a restored directory, alone", Place{Address: "ids-1:7420"}, func(p *Place) { *p = alone }, Copied},

		// A quorum of one.
		{"nothing", alone, func(*Place) {}, Here},
		{"the host's name", alone, func(p *Place) { p.Host = "ids-9" }, Here},
		{"the device's number, at a start of the system", alone, func(p *Place) { p.Device = 2065 }, Here},
		{"the device's number and the host's name", alone, func(p *Place) { p.Device, p.Host = 2065, "ids-9" }, Here},
		{"the path: mv, or another bind mount", alone, func(p *Place) { p.Path = "/data" }, Here},
		{"path and host's name", alone, func(p *Place) { p.Path, p.Host = "/data", "ids-9" }, Here},
		{"the machine ID: the system was installed again, or a pod runs elsewhere", alone, func(p *Place) {
			p.Machine = "b2"
		}, Here},
		{"the same, and the device's number", alone, func(p *Place) { p.Machine, p.Device = "b2", 2065 }, Here},
		{"a container without a machine ID gets another name", alone.with(func(p *Place) {
			p.Machine = ""
		}), func(p *Place) { p.Host = "4f1c" }, Here},
		{"and another number of the device", alone.with(func(p *Place) { p.Machine = "" }), func(p *Place) {
			p.Host, p.Device = "4f1c", 2065
		}, Here},
		{"the file system does not tell any more when it was made", alone, func(p *Place) { p.Born = 0 }, Here},
		{"it tells now", alone.with(func(p *Place) { p.Born = 0 }), func(p *Place) { p.Born = 5 }, Here},

		{"cp -r beside the original: another inode", alone, func(p *Place) {
			p.Inode, p.Path, p.Born = 13, "/copy", 2000
		}, Copied},
		{"a file system that gives new inodes when it is mounted", alone, func(p *Place) { p.Inode = 13 }, Here},
		{"the same, and another path", alone, func(p *Place) { p.Inode, p.Path = 13, "/copy" }, Copied},
		{"the same, and another device", alone, func(p *Place) { p.Inode, p.Device = 13, 66 }, Copied},
		{"the same, on another host", alone, func(p *Place) { p.Inode, p.Host = 13, "ids-9" }, Copied},
		{"the same, and nobody knows when the file was made", alone.with(func(p *Place) {
			p.Born = 0
		}), func(p *Place) { p.Inode = 13 }, Copied},
		{"the same, and it is not told any more", alone, func(p *Place) { p.Inode, p.Born = 13, 0 }, Copied},
		{"cp -r in its place", alone, func(p *Place) { p.Inode, p.Born = 13, 2000 }, Copied},
		{"a copy on another file system that has the same inode", alone, func(p *Place) { p.Born = 2000 }, Copied},
		{"a snapshot of the file system beside it", alone, func(p *Place) {
			p.Device, p.Path = 66, "/snapshots/1"
		}, Copied},
		{"the clone of a machine's disk, in a new machine", alone, func(p *Place) {
			p.Host, p.Machine = "ids-2", "b2"
		}, Copied},
		{"everything", alone, everything, Copied},
	} {
		if got := Judge(c.was, c.was.with(c.changed)); got != c.want {
			t.Errorf("%s has changed: %v; want %v", c.what, got, c.want)
		}
	}
}

func (p Place) with(change func(*Place)) Place {
	change(&p)
	return p
}

// A machine's ID is read where there is one, and never written as it is.
func TestMachineID(t *testing.T) {
	t.Parallel()
	const id = "0123456789abcdef0123456789abcdef"
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole := machineID(file("whole", id+"\n"))
	if len(whole) != 16 || strings.Contains(id, whole) {
		t.Errorf("of %s: %q; want 16 other digits", id, whole)
	}
	uuid := fmt.Sprintf("%s-%s-%s-%s-%s", id[:8], id[8:12], id[12:16], id[16:20], id[20:])
	none := []string{
		filepath.Join(dir, "missing"), file("empty", ""), file("image", "uninitialized\n"),
		file("short", "abc"),
	}
	if got := machineID(append(none, file("uuid", uuid))...); got != whole {
		t.Errorf("of %s, after files without one: %q; want %q", uuid, got, whole)
	}
	if got := machineID(none...); got != "" {
		t.Errorf("of none: %q", got)
	}
}
