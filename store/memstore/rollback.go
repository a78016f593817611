package memstore

import (
	"maps"
	"slices"

	"github.com/firn-id/firn/store"
)

// Backup is what a Service held at one moment, but for its sessions. The zero value is that of a new one.
type Backup struct {
	revision store.Version
	keys     map[string]entry
	log      logbook
}

// Backup returns what the service holds, without the keys that are under sessions.
func (s *Service) Backup() Backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := Backup{s.revision, maps.Clone(s.keys), s.log}
	maps.DeleteFunc(b.keys, func(_ string, e entry) bool { return e.session != nil })
	b.log.entries, b.log.positions = slices.Clone(s.log.entries), maps.Clone(s.log.positions)
	return b
}

// RollBack has the service forget all that it committed since a backup, as one that was wiped or restored does. All
// sessions end. Clients learn of that as of any other news. New versions and positions go on from those of the backup, or
// from as much above as ahead says.
func (s *Service) RollBack(b Backup, ahead store.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sessions := map[*Session]bool{}
	for _, e := range s.keys {
		if e.session != nil {
			sessions[e.session] = true
		}
	}
	for session := range sessions {
		s.endLocked(session)
	}
	following := s.log.following
	s.revision, s.keys, s.log = b.revision+ahead, maps.Clone(b.keys), b.log
	if s.keys == nil {
		s.keys = make(map[string]entry)
	}
	s.log.entries, s.log.positions, s.log.following = slices.Clone(b.log.entries), maps.Clone(b.log.positions), following
	if s.log.positions == nil {
		s.log.positions = make(map[string]store.Position)
	}
	for client := range following {
		client.tellLocked(client.wakeLocked)
	}
}
