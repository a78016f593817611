// Package storetest is the contract that every store must pass: one suite, in
// which each case quotes the sentence of the port that it proves. It is for tests of
// stores only.
package storetest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store"
)

// Harness is what a store brings to the contract. Each case makes its own, which
// cleans up after itself through the test's Cleanup.
type Harness struct {
	// Open makes a new client of the case's one service, which is empty at first. The
	// suite closes it.
	Open func(t *testing.T) store.Store

	// TTL is that of sessions: the shortest that the store renews reliably.
	TTL time.Duration

	// Patience is how long to wait for something that must happen: several TTLs.
	Patience time.Duration

	// The hooks below are optional; a case is skipped when it needs one that is nil.

	// CutOff begins or ends a partition between this client and the service.
	CutOff func(client store.Store, cut bool)

	// Disturb begins or ends that calls of this client are slow, fail or lose their answers, at
	// random.
	Disturb func(client store.Store, disturbed bool)

	// Expire ends a session at the service, behind its client's back.
	Expire func(t *testing.T, session store.Session)

	// Stop ends the service, without warning if possible; Start starts it with its data.
	Stop, Start func(t *testing.T)

	// Backup copies all data of the service, and returns a function that restores them.
	Backup func(t *testing.T) (restore func(t *testing.T))
}

// Run proves the contract case by case. It calls harness at the start of each case;
// harness may make it parallel.
func Run(t *testing.T, harness func(t *testing.T) Harness) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(newSuite(t, harness(t))) })
	}
}

// RunInBubble is Run with each case in a bubble of testing/synctest, for stores
// that wait only by package time, channels and the like. harness must not make
// a case parallel.
func RunInBubble(t *testing.T, harness func(t *testing.T) Harness) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.run(newSuite(t, harness(t))) })
		})
	}
}

// cases is the contract: each name is a sentence of the port, or close to one.
var cases = []struct {
	name string
	run  func(*suite)
}{
	{"an absent key has version zero", absentKey},
	{"commit returns the version of every key it put", commitVersion},
	{"later writes have greater versions", ascendingVersions},
	{"a version never returns after a delete", versionAfterDelete},
	{"values come back as they were written", values},
	{"keys that share a beginning are apart", neighbours},
	{"list is in ascending order", listOrder},
	{"list reads one moment", listMoment},
	{"a conflict applies nothing", conflict},
	{"version zero holds for an absent key only", createIfAbsent},
	{"all operations apply at one moment", allOrNothing},
	{"deleting an absent key is no error", deleteAbsent},
	{"two operations on one key are refused", duplicateKey},
	{"a transaction has up to MaxOps conditions and operations", largest},
	{"a transaction has up to MaxBytes bytes", largestBytes},
	{"keys that are no text are refused", invalidKeys},
	{"of many under one condition one applies", contention},
	{"a call ends with its context", endedContext},

	{"a session lives while its store renews it", sessionLives},
	{"ephemeral keys disappear when their session is closed", sessionClose},
	{"closing a session twice is safe", sessionCloseTwice},
	{"a key belongs to the session that put it last", sessionTakeOver},
	{"a transaction has one session", sessionOne},
	{"nothing is put under a closed session", sessionClosedPut},
	{"nothing is put under an expired session", sessionExpiredPut},
	{"a session whose Close failed is over, and ends within its TTL", sessionCloseFails},
	{"an abandoned session ends by itself", sessionAbandoned},
	{"a client learns that its session expired", sessionExpiredDone},
	{"a client that can't renew is told within a TTL", cuttingOff(sessionCutOff)},
	{"closing the store ends its sessions", storeClose},
	{"a closed store refuses", storeClosed},
	{"traits never change", traits},

	{"gone fires at once for an absent key", goneAbsent},
	{"gone fires when the key is deleted", goneDelete},
	{"gone fires when the key is put again at once", goneRecreated},
	{"gone fires when the session ends", goneSession},
	{"gone never fires for a key that its session puts again", goneRewritten},
	{"gone never fires for a write, its context or its store's end", goneSilent},
	{"gone survives a partition", cuttingOff(goneCutOff)},
	{"gone survives a restart", goneRestart},

	{"a call without an answer is unavailable or ambiguous", cuttingOff(unanswered)},
	{"a store forgets nothing that it committed", restart},
	{"an ambiguous commit is settled by writing", cuttingOff(settle)},

	{"an append is in the log once", appendOnce},
	{"an append by many at once is in the log once", appendOnceAtOnce},
	{"positions ascend", positionsAscend},
	{"entries come back as they were appended", entryData},
	{"read gives one moment", readMoment},
	{"read from before the checkpoint begins with it", readCheckpoint},
	{"a position of another log is refused", readElsewhere},
	{"checkpoints only move forward", checkpointForward},
	{"checkpoints written at once only move forward", checkpointForwardAtOnce},
	{"trim drops what the checkpoint stands for", trimDrops},
	{"several checkpoint and trim at once", trimAtOnce},
	{"limits are refused", logLimits},

	{"follow goes on from where it begins", followGoesOn},
	{"follow has no gap, no repeat, no reordering", followOrder},
	{"follow survives a partition", cuttingOff(followCutOff)},
	{"follow survives a restart", followRestart},
	{"a follower behind the trim goes on from the checkpoint", followCheckpoint},
	{"a follower parted from a log that is cut misses nothing", cuttingOff(followCutOffCheckpoint)},
	{"a follower of a store that was wiped is told", followWiped},
	{"a follower of a store that was set back is told", followSetBack},
	{"a follower that was away while a store was set back and grew is told", followSetBackAndGrown},
	{
		"a follower that was away while a store was set back, grew and got a checkpoint mixes no logs",
		followSetBackAndCheckpoint,
	},
	{"an append to a store that was set back is told, once", appendSetBack},
	{"follow ends with its context", followContext},
	{"follow ends with its store", followClosed},

	{"an append in doubt is there once or not at all", cuttingOff(appendDoubt)},
	{"an append in doubt is not repeated over a trim", cuttingOff(appendDoubtTrim)},
	{"an append in doubt goes on when no doubtful entry was trimmed", cuttingOff(appendDoubtThere)},

	{"what clients saw has one order", oneOrder},
}

// suite is one running case.
type suite struct {
	*testing.T
	Harness
	store.Store // the client that most cases need
	ctx         context.Context
}

func newSuite(t *testing.T, h Harness) *suite {
	s := &suite{T: t, Harness: h, ctx: t.Context()}
	s.Store = s.open()
	return s
}

// cuttingOff is a case that cuts a client off.
func cuttingOff(run func(s *suite, victim store.Store)) func(*suite) {
	return func(s *suite) {
		s.needs(s.CutOff != nil, "cut a client off")
		run(s, s.open())
	}
}

// needs skips a case that the harness has no hook for.
func (s *suite) needs(has bool, what string) {
	if !has {
		s.Skip("the harness can't " + what)
	}
}

// open makes another client, which is closed when the case ends.
func (s *suite) open() store.Store {
	s.Helper()
	client := s.Open(s.T)
	s.Cleanup(func() {
		if err := client.Close(); err != nil {
			s.Errorf("Close: %v", err)
		}
	})
	return client
}
