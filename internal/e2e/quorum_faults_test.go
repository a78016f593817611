//go:build unix

package e2e

import (
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testenv"
)

// The leader is killed ten times. No caller notices, and horizons are soon written again.
func TestTheLeaderIsKilled(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	q := newKeepers(t, 3, "--window=6s")
	q.start()
	c := q.callers()
	for range 10 {
		leads := q.leader()
		c.served(10)
		leads.crash()
		begun := time.Now()
		q.extendAgain(q.others(leads)...)
		q.lasted("horizons are written again after the leader was killed", begun, 5*time.Second)
		begun = time.Now()
		leads.start()
		leads.ready()
		q.lasted("a killed machine is ready again", begun, 5*time.Second)
		q.whole()
	}
	q.unnoticed(c)
	q.ledger.unique(t, 1000)
}
