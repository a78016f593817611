package quorum

import (
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/logtest"
)

// A machine that kept the quorum and says nothing for some seconds is told of once, and once more when it answers
// again. One late answer, and a machine that was never seen to keep it, are not.
func TestLostMachineIsLogged(t *testing.T) {
	voter, learner, silent := answer{}, answer{}, answer{err: errors.New("connection refused")}
	voter.Status.Role, learner.Status.Role = Voter, Learner
	for name, c := range map[string]struct {
		said []answer // three seconds apart
		want []string
	}{
		"one is late": {[]answer{voter, silent, silent, voter, silent, silent, voter}, nil},
		"it is lost":  {[]answer{voter, silent, silent, silent, silent, silent}, []string{"level=WARN"}},
		"it comes back, twice": {
			[]answer{voter, silent, silent, silent, voter, silent, silent, silent, voter, voter},
			[]string{"level=WARN", "level=INFO", "level=WARN", "level=INFO"},
		},
		"never seen": {[]answer{silent, silent, silent, silent, voter}, nil},
		"a learner":  {[]answer{learner, silent, silent, silent, silent, learner}, nil},
	} {
		var text logtest.Journal
		q := &Quorum{log: text.Logger(), said: map[string]answer{}}
		now := time.Now()
		for _, a := range c.said {
			q.remember(map[string]answer{"ids-2:7420": a}, now)
			now = now.Add(3 * time.Second)
		}
		t.Log(name)
		text.Wants(t, c.want...)
	}
}
