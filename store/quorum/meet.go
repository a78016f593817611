package quorum

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/store/internal/etcdserver"
	"github.com/firn-id/firn/store/quorum/internal/plan"
)

// Two machines of one cluster have the same log as far as both have committed it. Where they differ, disks were set back:
// a majority went on without what the third had, and perhaps had confirmed. Nobody could know that while the third was off.
// When it is back, the logs are compared, and the minority does not run.

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
	for len(entries) > 0 && entries[len(entries)-1].Index > index {
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

// meet compares the log here with those of the machines of this cluster that run with a majority. The error is a
// *partedError where they differ, and another one if a machine did not answer.
func (q *Quorum) meet(ctx context.Context, answers map[string]answer) error {
	ctx, cancel := context.WithTimeout(ctx, meetWithin)
	defer cancel()
	mine, err := q.disk.dir.Committed()
	if err != nil || len(mine) == 0 {
		return err
	}
	here := &partedError{self: q.selfAddress(), dir: q.disk.dir.Path, cluster: q.disk.get().Cluster}
	for address, a := range answers {
		if a.err != nil || !a.Running || a.Disk != (plan.Disk{State: plan.Started, Cluster: here.cluster}) {
			continue
		}
		var theirs []etcdserver.Entry
		if err := q.asker.call(ctx, address, http.MethodPost, "/log", upTo{mine[len(mine)-1].Index}, &theirs); err != nil {
			return fmt.Errorf("can't compare the log here with that of %s: %w", address, err)
		}
		if at := parted(mine, theirs); at > 0 {
			here.from = append(here.from, address)
			if here.at == 0 || at < here.at {
				here.at = at
			}
		}
	}
	if len(here.from) == 0 {
		return nil
	}
	slices.Sort(here.from)
	return here
}

// meetAgain is meet for a machine whose server runs. It reports whether that must end: a majority has another log. Where
// that is not known, it only says so.
func (q *Quorum) meetAgain(ctx context.Context, s *server) bool {
	err := q.meet(ctx, q.askAll(ctx, q.others()))
	differs, ok := errors.AsType[*partedError](err)
	switch {
	case !ok:
		return false
	case 2*len(differs.from) > len(s.members()):
		return true
	default:
		q.log.Error("this machine and others have different logs, and a disk was set back: which are the majority shows when all answer", "others", differs.from, "from_entry", differs.at)
		return false
	}
}

// partedError says that others run without what this machine has.
type partedError struct {
	self, dir, cluster string
	from               []string
	at                 uint64
}

func (e *partedError) Error() string {
	return fmt.Sprintf("the log here and that of cluster %s, which runs on %s, differ from entry %d on: disks were set back, and each has what the other lost. "+
		"To go on with what runs, move the directory away (mv %s %s.old) and start again. To go on with the data here, stop all machines and restore it: firn quorum restore %s --as %s --data-dir DIR; see docs/quorum.md",
		e.cluster, strings.Join(e.from, ", "), e.at, e.dir, e.dir, e.dir, e.self)
}
