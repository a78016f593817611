package server

import (
	"fmt"
	"time"
)

// slowSync is how long a disk may take for a small write before that is a problem.
const slowSync = time.Second

// disks finds machines of the quorum whose disks are nearly full, or slow.
func (p *problems) disks() {
	q := p.status.Quorum
	if q == nil {
		return
	}
	hosts := hostsOf(q.Machines)
	for _, m := range q.Machines {
		if m.Err != "" {
			continue
		}
		host := hosts[m.Address]
		if r := m.Disk; r != nil && r.Low() {
			level, left := Warning, fmt.Sprintf("%d MiB (%.0f %%)", r.Free>>20, 100*r.Share)
			if r.VeryLow() {
				level = Failing
			}
			if r.Inodes < 0.2 {
				left += fmt.Sprintf(" and %.0f %% of the inodes", 100*r.Inodes)
			}
			p.addAbout(host, "room "+left, Problem{
				Level: level, Kind: DiskProblem, Effect: "The machine " + host + " of the quorum ends when its disk is full",
				Cause: left + " are left",
			})
		}
		if m.Sync > slowSync {
			p.addAbout(host, "sync "+host, Problem{
				Level: Warning, Kind: DiskProblem, Effect: "The machine " + host + " of the quorum delays writes",
				Cause: "its disk took " + Rough(m.Sync) + " for a small one", Do: "Find out who else uses the disk, and whether it is healthy.",
			})
		}
	}
}
