//go:build unix

package files

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// modesTell says whether the mode of a file tells who can get at it.
const modesTell = true

// stranger names the owner of a file who is neither this process's user nor root; empty: it is one of these.
func stranger(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid == 0 || int(stat.Uid) == user() || stat.Uid == rootOwner() {
		return ""
	}
	return userName(stat.Uid)
}

// rootOwner returns who owns the root directory, and so everything below it: root, whom a user namespace that does not
// know root shows as another user. It is another function in tests.
var rootOwner = func() uint32 {
	if info, err := os.Stat("/"); err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			return stat.Uid
		}
	}
	return 0
}

// user is another function in tests.
var user = os.Geteuid

// self names this process's user.
func self() string { return userName(uint32(user())) }

// userName returns a user's name, or the number where it has none.
func userName(uid uint32) string {
	passwd, _ := os.ReadFile("/etc/passwd")
	number := strconv.FormatUint(uint64(uid), 10)
	for line := range strings.Lines(string(passwd)) { // name:x:uid:gid:...
		if f := strings.Split(line, ":"); len(f) > 2 && f[2] == number {
			return f[0]
		}
	}
	return number
}

// shared names the group of a file if it has members besides the file's owner, this process's user and root; empty: it
// has none, as many systems make a group for each user.
func shared(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	passwd, _ := os.ReadFile("/etc/passwd") // where there is none, nobody has a name
	groups, _ := os.ReadFile("/etc/group")
	return sharedGroup(string(passwd), string(groups), stat.Gid, []uint32{stat.Uid, uint32(user()), 0})
}

// sharedGroup is shared for the contents of /etc/passwd and /etc/group.
func sharedGroup(passwd, groups string, gid uint32, own []uint32) string {
	group, ours, others := strconv.FormatUint(uint64(gid), 10), map[string]bool{}, false
	for line := range strings.Lines(passwd) { // name:x:uid:gid:...
		f := strings.Split(line, ":")
		if len(f) < 4 {
			continue
		}
		mine := false
		for _, uid := range own {
			mine = mine || f[2] == strconv.FormatUint(uint64(uid), 10)
		}
		ours[f[0]] = ours[f[0]] || mine
		others = others || f[3] == group && !mine
	}
	name := group
	for line := range strings.Lines(groups) { // name:x:gid:member,member
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 4 || f[2] != group {
			continue
		}
		name = f[0]
		for member := range strings.SplitSeq(f[3], ",") {
			others = others || member != "" && !ours[member]
		}
	}
	if !others {
		return ""
	}
	return fmt.Sprintf("the group %s", name)
}
