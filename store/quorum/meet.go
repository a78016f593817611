package quorum

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/store/internal/etcdserver"
	"github.com/firn-id/firn/store/quorum/internal/plan"
)

// Two machines of one cluster have the same log as far as both have committed it. Where they differ, disks were set
// back: a majority went on without what the third had, and perhaps had confirmed. Nobody could know that while the
// third was off. When it is back, the logs are compared, and the minority does not run.

const (
	meetEvery = time.Minute // how often a machine whose server runs compares its log with the others'
	compared  = 64          // entries, at most

	meetWithin = 10 * time.Second // how long another machine may take to read its log
)

// upTo is the body of POST /log.
type upTo struct {
	Index uint64 `json:"index"`
}

// serveLog answers with the latest of this machine's committed entries up to an index.
func (q *Quorum) serveLog(w http.ResponseWriter, r *http.Request) {
	var asked upTo
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&asked); err != nil {
		reply(w, http.StatusBadRequest, err.Error())
		return
	}
	q.mu.Lock()
	disk := q.disk
	q.mu.Unlock()
	if disk == nil {
		reply(w, http.StatusConflict, "it keeps no log")
		return
	}
	entries, err := disk.dir.Committed()
	if err != nil {
		reply(w, http.StatusInternalServerError, err.Error())
		return
	}
	reply(w, http.StatusOK, latest(entries, asked.Index))
}

// latest returns the last few entries up to an index.
func latest(entries []etcdserver.Entry, index uint64) []etcdserver.Entry {
	for lastOf(entries) > index {
		entries = entries[:len(entries)-1]
	}
	return entries[max(0, len(entries)-compared):]
}

// parted returns the first index at which two logs differ, as far as these entries of them tell; 0: nowhere.
func parted(mine, theirs []etcdserver.Entry) uint64 {
	at := map[uint64]etcdserver.Entry{}
	for _, e := range mine {
		at[e.Index] = e
	}
	for _, e := range theirs {
		if same, ok := at[e.Index]; ok && same != e {
			return e.Index
		}
	}
	return 0
}

// meet compares the log here with those of the voters of this cluster that run with a majority. An error is returned
// when one of them did not answer.
func (q *Quorum) meet(ctx context.Context, members []plan.Member, answers map[string]answer) (m meeting, err error) {
	ctx, cancel := context.WithTimeout(ctx, meetWithin)
	defer cancel()
	mine, err := q.disk.dir.Committed()
	if err != nil || len(mine) == 0 {
		return m, err
	}
	cluster := q.disk.get().Cluster
	for _, voter := range members {
		if voter.Learner { // it has a copy of what another has
			continue
		}
		m.voters++
		a, ok := answers[voter.Address]
		if !ok || a.err != nil || !a.Running || a.Disk != (plan.Disk{State: plan.Started, Cluster: cluster}) {
			if voter.Address != q.selfAddress() {
				m.silent = append(m.silent, withReason(voter.Address, a.err))
			}
			continue
		}
		var theirs []etcdserver.Entry
		if err := q.asker.call(ctx, voter.Address, http.MethodPost, "/log", upTo{lastOf(mine)}, &theirs); err != nil {
			return m, fmt.Errorf("can't compare the log here with that of %s: %w", voter.Address, err)
		}
		m.hear(voter.Address, mine, theirs)
	}
	slices.Sort(m.differ)
	slices.Sort(m.silent)
	return m, nil
}

// meeting is what came of comparing the log here with those of the other voters.
type meeting struct {
	voters         int      // of the cluster, this machine included
	agree          int      // of the others, how many have the same entries
	differ, silent []string // the others that have other entries; those that do not run or answer, and why
	at             uint64   // the first entry that differs; 0: none
}

// hear notes what another voter's log has. One without an entry in common says nothing.
func (m *meeting) hear(address string, mine, theirs []etcdserver.Entry) {
	switch at := parted(mine, theirs); {
	case at > 0:
		m.differ = append(m.differ, address)
		if m.at == 0 || at < m.at {
			m.at = at
		}
	case len(mine) > 0 && len(theirs) > 0 && theirs[0].Index <= lastOf(mine) && mine[0].Index <= lastOf(theirs):
		m.agree++
	}
}

// lastOf returns the index of the last entry; 0: there are none.
func lastOf(entries []etcdserver.Entry) uint64 {
	if len(entries) == 0 {
		return 0
	}
	return entries[len(entries)-1].Index
}

// side is where a machine stands whose log differs from others'.
type side uint8

const (
	unknown  side = iota // neither is known to be the majority's
	majority             // no majority can have another log: none differs, or a majority has the log of this machine
	minority             // a majority of the voters has another log
)

// side decides by majorities: a single machine may itself be the one whose disk was set back.
func (m *meeting) side() side {
	switch {
	case len(m.differ) == 0, 2*(m.agree+1) > m.voters:
		return majority
	case 2*len(m.differ) > m.voters:
		return minority
	}
	return unknown
}

// mayRun returns nil if this machine may use its log. A *partedError is returned when a majority has another log.
// Another error is returned while logs differ and no majority is known to have one: it says for whom this machine
// waits.
func (q *Quorum) mayRun(ctx context.Context, answers map[string]answer) error {
	members, _ := membersOf(answers)
	m, err := q.meet(ctx, members, answers)
	if err != nil {
		return err
	}
	switch m.side() {
	case minority:
		return &partedError{
			self: q.selfAddress(), dir: q.disk.dir.Path, cluster: q.disk.get().Cluster,
			from: m.differ, at: m.at,
		}
	case unknown:
		return fmt.Errorf("the log here and that of %s differ from entry %d on: disks were set back, and a majority "+
			"of the machines must say whose; waiting for %s",
			strings.Join(m.differ, ", "), m.at, strings.Join(m.silent, ", "))
	}
	return nil
}

// meetAgain is mayRun for a machine whose server runs. It reports whether that must end: a majority has another log.
// Where that is not known, it only says so.
func (q *Quorum) meetAgain(ctx context.Context, s *server) bool {
	m, err := q.meet(ctx, s.members(), q.askAll(ctx, q.others()))
	if err != nil || len(m.differ) == 0 {
		return false
	}
	if m.side() == minority {
		return true
	}
	q.log.Error("this machine and others have different logs, and a disk was set back: which are the majority shows "+
		"when all answer", "others", m.differ, "from_entry", m.at)
	return false
}

// partedError says that others run without what this machine has.
type partedError struct {
	self, dir, cluster string
	from               []string
	at                 uint64
}

func (e *partedError) Error() string {
	return fmt.Sprintf("the log here and that of cluster %s, which runs on %s, differ from entry %d on: disks were "+
		"set back, and each has what the other lost. "+
		"To go on with what runs, move the directory away (mv %s %s.old) and start again. To go on with the data "+
		"here, stop all machines and restore it: firn quorum restore %s --as %s --data-dir DIR; see docs/quorum.md",
		e.cluster, strings.Join(e.from, ", "), e.at, e.dir, e.dir, e.dir, e.self)
}
