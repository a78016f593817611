package quorum

import (
	"context"
	"fmt"
	"net/http"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// maxUnused is how many bytes of a database may be unused before it is rewritten.
const maxUnused = 16 << 20

// tidy keeps the databases small: those with much unused room are rewritten, one at a time, and none while a machine is
// missing. An alarm that a database is full, which stops all writes, is taken back once it is small again.
func (q *Quorum) tidy(ctx context.Context, s *server, answers map[string]answer) error {
	full := len(s.Alarms()) > 0
	for _, address := range s.record().Machines {
		a, ok := answers[address]
		if !ok || a.err != nil || !a.Running {
			return nil
		}
		if a.Status.Size-a.Status.InUse <= maxUnused {
			continue
		}
		q.log.Info("the quorum: rewriting a database", "machine", address, "bytes", a.Status.Size, "in_use", a.Status.InUse)
		if address == q.selfAddress() {
			_, err := q.defragment()
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, 10*doWithin)
		defer cancel()
		return q.asker.call(ctx, address, http.MethodPost, "/defragment", struct{}{}, nil)
	}
	if !full {
		return nil
	}
	for _, alarm := range s.Alarms() {
		_, err := s.Alarm(ctx, &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_DEACTIVATE, MemberID: alarm.MemberID, Alarm: alarm.Alarm})
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
