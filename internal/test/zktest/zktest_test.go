//go:build unix

package zktest_test

import (
	"testing"

	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/internal/test/zktest"
)

func wantMode(t *testing.T, s *zktest.Server, after, want string) {
	t.Helper()
	if got := s.Mode(); got != want {
		t.Errorf("%s: the server says that it is %q, want %q", after, got, want)
	}
}

func TestLifeOfAServer(t *testing.T) {
	t.Parallel()
	s := zktest.Start(t)
	address := s.Address()
	wantMode(t, s, "Start", "standalone")
	s.Pause(t)
	wantMode(t, s, "Pause", "")
	s.Resume(t)
	wantMode(t, s, "Resume", "standalone")
	s.Kill(t)
	wantMode(t, s, "Kill", "")
	s.Start(t)
	wantMode(t, s, "Start again", "standalone")
	zktest.Backup(t, s)(t)
	wantMode(t, s, "Backup", "standalone")
	zktest.Wipe(t, s)
	wantMode(t, s, "Wipe", "standalone")
	if s.Address() != address {
		t.Errorf("the server moved from %s to %s", address, s.Address())
	}
}

func TestQuorumHasAnotherLeaderAfterAKill(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	servers := zktest.StartQuorum(t, 3)
	before := zktest.Leader(t, servers)
	servers[before].Kill(t)
	if after := zktest.Leader(t, servers); after == before {
		t.Errorf("server %d leads, and was killed", after)
	}
	servers[before].Start(t)
	wantMode(t, servers[before], "Start", "follower")
}
