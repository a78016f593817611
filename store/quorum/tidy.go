package quorum

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// maxUnused is how many bytes of a database may be unused before it is rewritten.
const maxUnused = 16 << 20

// Of the revisions of all keys, keepRevisions are kept once there are maxRevisions, for clients that lag behind. etcd
// itself looks every five minutes: as fast as it writes, its database would grow to 200 MB until then.
const (
	keepRevisions = 10_000
	maxRevisions  = 2 * keepRevisions
)

// tidy keeps the databases small: former revisions are dropped, and databases with much unused room are rewritten, one
// at a time, and none while a machine is missing. The alarm that a database is full, which stops all writes, is taken
// back once those that answer are small again.
func (q *Quorum) tidy(ctx context.Context, s *server, answers map[string]answer) error {
	ctx, cancel := context.WithTimeout(ctx, 10*doWithin)
	defer cancel()
	if last := s.KV().Rev(); last-s.KV().FirstRev() > maxRevisions {
		if _, err := s.Compact(ctx, &etcdserverpb.CompactionRequest{Revision: last - keepRevisions}); err != nil &&
			!errors.Is(err, mvcc.ErrCompacted) {
			return fmt.Errorf("dropping former revisions: %w", err)
		}
	}
	full := slices.DeleteFunc(s.Alarms(), func(a *etcdserverpb.AlarmMember) bool {
		return a.Alarm != etcdserverpb.AlarmType_NOSPACE
	})
	missing, large := "", ""
	for _, address := range s.record().Machines {
		switch a, ok := answers[address]; {
		case !ok || a.err != nil || !a.Running:
			missing = address
		case a.Status.Size-a.Status.InUse > maxUnused:
			large = address
		}
	}
	switch {
	case large != "" && (missing == "" || len(full) > 0):
		status := answers[large].Status
		q.log.Info("the quorum: rewriting a database", "machine", large, "bytes", status.Size, "in_use", status.InUse)
		if large == q.selfAddress() {
			_, err := q.defragment()
			return err
		}
		return q.asker.call(ctx, large, http.MethodPost, "/defragment", struct{}{}, nil)
	case large != "":
		return nil
	}
	for _, alarm := range full {
		q.log.Warn("the quorum: taking back the alarm that a database is full", "member",
			fmt.Sprintf("%x", alarm.MemberID))
		_, err := s.Alarm(ctx, &etcdserverpb.AlarmRequest{
			Action:   etcdserverpb.AlarmRequest_DEACTIVATE,
			MemberID: alarm.MemberID, Alarm: alarm.Alarm,
		})
		if err != nil {
			return fmt.Errorf("taking back the alarm %v: %w", alarm.Alarm, err)
		}
	}
	return nil
}

// defragment rewrites the database of the server in this process, which stops it for a moment.
func (q *Quorum) defragment() (bool, error) {
	q.mu.Lock()
	s := q.server
	q.mu.Unlock()
	if s == nil {
		return false, nil
	}
	return true, s.Backend().Defrag()
}
