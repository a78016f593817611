package calls

import (
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/base/space"
)

// slowSync is how long a disk may take for a small write before that is a problem.
const slowSync = time.Second

// disks finds disks that are nearly full, and those that are slow: of the machines of the quorum, or of a quorum of
// one.
func (p *problems) disks() {
	p.room("", "This node", p.status.Disk)
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
		p.room(host, "The machine "+host+" of the quorum", m.Disk)
		if m.Sync > slowSync {
			p.addAbout(host, "sync "+host, Problem{
				Level: Warning, Kind: DiskProblem, Effect: "The machine " + host + " of the quorum delays writes",
				Cause: "its disk took " + Rough(m.Sync) + " for a small one",
				Do:    "Find out who else uses the disk, and whether it is healthy.",
			})
		}
	}
}

// room finds a disk that is nearly full, on which something keeps data; nil: unknown.
func (p *problems) room(about, what string, r *space.Room) {
	if r == nil || !r.Low() {
		return
	}
	level, left := Warning, fmt.Sprintf("%d MiB (%.0f %%)", r.Free>>20, 100*r.Share)
	if r.VeryLow() {
		level = Failing
	}
	if r.Inodes < 0.2 {
		left += fmt.Sprintf(" and %.0f %% of the inodes", 100*r.Inodes)
	}
	p.addAbout(about, "room "+left, Problem{
		Level: level, Kind: DiskProblem, Effect: what + " ends when its disk is full", Cause: left + " are left",
	})
}
