package quorum

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/version"

	"github.com/firn-id/firn/internal/base/space"
	"github.com/firn-id/firn/store/quorum/internal/plan"
)

// Status is what a process knows of the quorum at one moment.
type Status struct {
	// identity of the cluster; empty: none is formed, as far as this process knows
	Cluster string `json:"cluster"`
	Self    string `json:"self"` // address of this machine; empty: it is a client, or a quorum of one
	// what this process waits for before it can use the store; empty: nothing
	Waiting  string `json:"waiting,omitempty"`
	Majority bool   `json:"majority"` // a majority of the voters can be reached, and works
	// addresses of the machines that should be the voters, ordered; empty: unknown
	Record   []string  `json:"record"`
	Machines []Machine `json:"machines"` // ordered by address, which that of a quorum of one lacks
}

// Machine is one machine of the quorum, as the process that was asked sees it.
type Machine struct {
	Address string `json:"address"`
	Node    string `json:"node,omitempty"` // the name of the node in its process; empty: unknown
	// why it can't be reached; the other fields are then what was known last
	Err     string `json:"error,omitempty"`
	Role    Role   `json:"role"`
	Leader  bool   `json:"leader"`
	Index   uint64 `json:"index"`    // the last entry of etcd's log that it has applied
	Behind  uint64 `json:"behind"`   // how many entries fewer than the leader
	Size    int64  `json:"size"`     // bytes of its database
	InUse   int64  `json:"in_use"`   // bytes of it that hold data
	LogSize int64  `json:"log_size"` // bytes of its log
	Version string `json:"version"`  // of the program
	Etcd    string `json:"etcd"`     // version of the etcd server in it
	// how far its clock is ahead of this machine's, give or take half of RoundTrip
	Clock     time.Duration `json:"clock_ns"`
	RoundTrip time.Duration `json:"rtt_ns"`          // how long it took to answer
	Sync      time.Duration `json:"fsync_ns"`        // how long its disk took to sync the latest small write
	Disk      *space.Room   `json:"disk,omitempty"`  // where its data is; nil: unknown
	Doing     string        `json:"doing,omitempty"` // what it waits for or is at, in words; empty: nothing
}

// Role is what a machine is to the quorum.
type Role string

// The roles of a machine.
const (
	Voter   Role = "voter"
	Learner Role = "learner" // catches up, and becomes a voter by itself
	Empty   Role = "empty"   // keeps no data yet
	Removed Role = "removed" // was one of the quorum, and is not any more
)

// report returns what this machine says of itself.
func (q *Quorum) report() report {
	r := report{Machine: q.machine(), Now: time.Now()}
	q.mu.Lock()
	s, data := q.server, q.disk
	r.Status = Machine{
		Address: q.self, Role: Empty, Version: q.config.Version, Etcd: version.Version, Sync: q.synced,
		Doing: q.doing,
	}
	q.mu.Unlock()
	if q.config.Node != nil {
		r.Status.Node = q.config.Node()
	}
	if data == nil { // of a quorum of one that does not run
		return r
	}
	if room, ok := space.Of(data.dir.Path); ok {
		r.Status.Disk = &room
	}
	if r.Disk.State == plan.Removed {
		r.Status.Role = Removed
	}
	if s == nil {
		return r
	}
	r.Members = s.members()
	r.Status.Role = Voter
	if !s.votes() {
		r.Status.Role = Learner
	}
	r.Status.Leader = s.Leader() == s.MemberID()
	r.Status.Index = s.AppliedIndex()
	r.Status.Size, r.Status.InUse = s.Backend().Size(), s.Backend().SizeInUse()
	r.Status.LogSize = sizeOf(filepath.Join(data.dir.Path, "member", "wal"))
	return r
}

// sizeOf returns how many bytes the files in a directory have.
func sizeOf(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error { // what can't be read counts nothing
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil
	})
	return bytes
}

// Status asks every machine, for up to a second. It needs no majority.
func (q *Quorum) Status(ctx context.Context) Status {
	if q.isOne() {
		return q.statusOfOne()
	}
	machines := q.others()
	self := q.selfAddress()
	if self != "" {
		machines = append(machines, self)
	}
	answers := q.askAll(ctx, machines)
	for _, a := range answers { // there may be some that this process did not know
		for _, address := range append(addresses(a.Members), a.Record...) {
			if !slices.Contains(machines, address) {
				machines = append(machines, address)
			}
		}
	}
	if len(machines) > len(answers) {
		answers = q.askAll(ctx, machines)
	}
	q.remember(answers, time.Now())
	q.mu.Lock()
	defer q.mu.Unlock()
	status := Status{Cluster: q.cluster, Self: self, Waiting: q.doing}
	if q.failed != nil {
		status.Waiting = q.failed.Error()
	}
	members, record := membersOf(answers)
	status.Record = record
	for _, address := range machines {
		a := q.said[address]
		if a.Disk.Cluster != "" && a.err == nil && status.Cluster == "" && a.Disk.State != plan.Promised {
			status.Cluster = a.Disk.Cluster
		}
		m := a.Status
		m.Address = address
		if a.err != nil {
			m.Err, m.Leader = a.err.Error(), false
			if len(members) > 0 && !slices.ContainsFunc(members, func(one plan.Member) bool {
				return one.Address == address
			}) && (m.Role == Voter || m.Role == Learner) {
				m.Role = Removed // since it was last asked
			}
		} else {
			m.RoundTrip = a.took
			m.Clock = a.Now.Sub(a.at.Add(-a.took / 2)).Round(time.Millisecond)
		}
		status.Machines = append(status.Machines, m)
	}
	slices.SortFunc(status.Machines, func(a, b Machine) int { return strings.Compare(a.Address, b.Address) })
	status.compare()
	status.Majority = majorityRuns(members, answers)
	return status
}

// compare says of each machine how far behind the furthest one it is.
func (s *Status) compare() {
	var most uint64
	for _, m := range s.Machines {
		if m.Err == "" {
			most = max(most, m.Index)
		}
	}
	for i, m := range s.Machines {
		if m.Index > 0 && m.Index < most {
			s.Machines[i].Behind = most - m.Index
		}
	}
}

// majorityRuns reports whether a majority of the voters answers that it runs.
func majorityRuns(members []plan.Member, answers map[string]answer) bool {
	voters, live := 0, 0
	for _, m := range members {
		if !m.Learner {
			voters++
			if a, ok := answers[m.Address]; ok && a.Running {
				live++
			}
		}
	}
	return 2*live > voters
}

// membersOf returns the members, and the record, as that machine knows them that knows most.
func membersOf(answers map[string]answer) (members []plan.Member, record []string) {
	var most uint64
	for _, a := range answers {
		if a.Running && a.Status.Index >= most {
			most, members, record = a.Status.Index, a.Members, a.Record
		}
	}
	return members, record
}
