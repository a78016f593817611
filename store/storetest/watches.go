package storetest

import (
	"context"
	"fmt"

	"github.com/firn-id/firn/store"
)

// "The channel is closed when the key is absent as the watch begins."
func goneAbsent(s *suite) {
	s.fires("Gone for an absent key", s.gone(s.Store, s.ctx, "absent"))
}

// "... or disappears at any time after that."
func goneDelete(s *suite) {
	s.put("key", "1")
	own, others := s.gone(s.Store, s.ctx, "key"), s.gone(s.open(), s.ctx, "key")
	s.delete("key")
	s.fires("Gone at the client that deleted", own)
	s.fires("Gone at another client", others)
}

// "... even if it is put again at once."
func goneRecreated(s *suite) {
	s.put("key", "1")
	gone := s.gone(s.open(), s.ctx, "key")
	s.delete("key")
	s.put("key", "1")
	s.fires("Gone for a key that was put again", gone)
	s.silent("a watch on the new key fires", s.gone(s.Store, s.ctx, "key"))
}

func goneSession(s *suite) {
	session := s.session(s.Store)
	s.putUnder(session, "key", "1")
	gone := s.gone(s.open(), s.ctx, "key")
	s.must("Close", session.Close(s.ctx))
	s.fires("Gone after the session's end", gone)
}

// A key that its session puts again, alone or among others, has not disappeared.
func goneRewritten(s *suite) {
	session := s.session(s.Store)
	s.putUnder(session, "key", "1")
	own, others := s.gone(s.Store, s.ctx, "key"), s.gone(s.open(), s.ctx, "key")
	for i := range 3 {
		version := s.putUnder(session, "key", fmt.Sprint("alone ", i))
		_, err := s.Commit(s.ctx, store.Txn{
			If: when("key", version),
			Then: []store.Op{
				store.Put("other", nil),
				store.PutEphemeral("key", fmt.Append(nil, "with others ", i), session),
			},
		})
		s.must("Commit", err)
	}
	s.put("marker", "1")
	marker := s.gone(s.Store, s.ctx, "marker")
	s.delete("marker")
	s.fires("Gone for the marker", marker)
	s.silent("a write under the session fires its own watch", own)
	s.silent("a write under the session fires another's watch", others)
	s.must("Close", session.Close(s.ctx))
	s.fires("Gone after the session's end", own)
	s.fires("Gone elsewhere after the session's end", others)
}

// "It never fires because ctx ended, nor because a connection broke."
func goneSilent(s *suite) {
	s.put("key", "1")
	other := s.open()
	ctx, cancel := context.WithCancel(s.ctx)
	plain := s.gone(s.Store, s.ctx, "key")
	ended := s.gone(s.Store, ctx, "key")
	closed := s.gone(other, s.ctx, "key")

	cancel()
	s.must("Close", other.Close())
	s.put("key", "2")
	session := s.session(s.Store)
	s.putUnder(session, "key", "3")
	s.put("key", "4")

	s.put("marker", "1")
	marker := s.gone(s.Store, s.ctx, "marker")
	s.delete("marker")
	s.fires("Gone for the marker", marker)
	s.silent("a write fires the watch", plain)
	s.delete("key")
	s.fires("Gone for the key", plain)
	s.silent("a watch whose context has ended fires", ended)
	s.silent("a watch of a closed store fires", closed)
}

// A watch that was cut off learns afterwards what it has missed.
func goneCutOff(s *suite, victim store.Store) {
	s.put("deleted", "1")
	s.put("recreated", "1")
	s.put("kept", "1")
	deleted := s.gone(victim, s.ctx, "deleted")
	recreated := s.gone(victim, s.ctx, "recreated")
	kept := s.gone(victim, s.ctx, "kept")
	s.CutOff(victim, true)
	s.delete("deleted")
	s.delete("recreated")
	s.put("recreated", "1")
	s.put("kept", "2")
	s.CutOff(victim, false)
	s.fires("Gone for the deleted key", deleted)
	s.fires("Gone for the recreated key", recreated)
	s.silent("the partition fires a watch", kept)
	s.delete("kept")
	s.fires("Gone after the partition", kept)
}

// The same when the service was away, and when a key is deleted as it comes back.
func goneRestart(s *suite) {
	s.needs(s.Stop != nil, "restart the service")
	s.put("key", "1")
	s.put("kept", "1")
	gone := s.gone(s.Store, s.ctx, "key")
	kept := s.gone(s.Store, s.ctx, "kept")
	s.Stop(s.T)
	s.silent("the end of the service fires a watch", gone)
	s.Start(s.T)
	other := s.open()
	s.eventually("a delete after the restart", func() error {
		_, err := other.Commit(s.ctx, store.Txn{Then: []store.Op{store.Delete("key")}})
		return err
	})
	s.fires("Gone after the restart", gone)
	s.silent("the restart fires a watch", kept)
}
