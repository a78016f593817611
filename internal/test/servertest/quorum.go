package servertest

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/store/quorum"
)

// Quorum is a [calls.Quorum] of which a test says what it knows. It remembers what it was asked. The zero value has no
// machines. Its fields are set before it is used.
type Quorum struct {
	State quorum.Status
	Data  string // the backup
	Err   error  // of changes, and of a backup once Data is written

	mu    sync.Mutex // guards asked
	asked []string
}

// ThreeMachines is a quorum that lacks its third machine.
func ThreeMachines() *Quorum {
	return &Quorum{Data: "everything", State: quorum.Status{
		Cluster: "5f0c3a9be1d24c77", Self: "ids-1:7420", Majority: true,
		Record: []string{"ids-1:7420", "ids-2:7420", "ids-3:7420"},
		Machines: []quorum.Machine{
			{
				Address: "ids-1:7420", Role: quorum.Voter, Leader: true, Index: 120345, Size: 2 << 20, InUse: 1 << 20,
				LogSize: 8 << 20,
				Version: "v1.4.0", Etcd: "3.7.3", Sync: 1200 * time.Microsecond,
			},
			{
				Address: "ids-2:7420", Role: quorum.Learner, Index: 120000, Behind: 345, Size: 2 << 20, InUse: 1 << 20,
				LogSize: 4 << 20,
				Version: "v1.4.0", Etcd: "3.7.3", Clock: -250 * time.Millisecond, RoundTrip: 2 * time.Millisecond,
				Sync:  210 * time.Millisecond,
				Doing: "catches up",
			},
			{Address: "ids-3:7420", Role: quorum.Voter, Index: 119000, Behind: 1345, Err: "connection refused"},
		},
	}}
}

// Asked returns the changes that were asked for, in order.
func (q *Quorum) Asked() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.asked
}

func (q *Quorum) ask(words ...string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked = append(q.asked, strings.Join(words, " "))
	return q.Err
}

// Status returns State.
func (q *Quorum) Status(context.Context) quorum.Status { return q.State }

// Replace returns Err.
func (q *Quorum) Replace(_ context.Context, lost, instead string) error {
	return q.ask("replace", lost, instead)
}

// Remove returns Err.
func (q *Quorum) Remove(_ context.Context, machines ...string) error {
	return q.ask(append([]string{"remove"}, machines...)...)
}

// Backup writes Data, if there is any, and returns Err.
func (q *Quorum) Backup(_ context.Context, w io.Writer) error {
	if q.Data != "" {
		if _, err := io.WriteString(w, q.Data); err != nil {
			return err
		}
	}
	return q.Err
}

var _ calls.Quorum = (*Quorum)(nil)
