package plan

import (
	"fmt"
	"slices"
)

// twin decides for a machine that exists twice: another process answers at its address, or another machine has a copy
// of its data. Two machines of one cluster are never the same member of it. own is what answered at its address.
//
// Both of two copies are refused. No fact says which is the original: the file in the directory that did is gone, or
// the copy had not started; and the address that the store has for the member is that of whichever ran last. One that
// runs goes on: only those that start decide, and once the other has ended, the next start finds no copy.
func (v *view) twin(own Machine) (d Decision, found bool) {
	me := v.me
	if own.Life != "" && own.Life != me.Life {
		return Decision{For: []string{me.Address}, Why: fmt.Sprintf(
			"another process answers at %s, the address of this machine: waiting until it ends", me.Address)}, true
	}
	i := slices.IndexFunc(v.others, func(m Machine) bool {
		return me.Member != 0 && m.Member == me.Member && m.Disk.Cluster == me.Disk.Cluster && m.Disk.State == Started
	})
	if i < 0 || me.Disk.State != Started {
		return d, false
	}
	return refuse("this machine and %s are the same member %x of cluster %s: the directory of one is a copy of the "+
		"other's; give the copy's machine an empty directory",
		v.others[i].Address, me.Member, me.Disk.Cluster), true
}
