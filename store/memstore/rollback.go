package memstore

import (
	"maps"
	"slices"

	"github.com/firn-id/firn/store"
)

// Backup is the data of a Service at one moment, without its sessions. The zero value is
// that of a new service.
type Backup struct {
	revision store.Version
	keys     map[string]entry
	log      logbook
}

// Backup returns the data of the service, without the keys under sessions.
func (s *Service) Backup() Backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := Backup{s.revision, maps.Clone(s.keys), s.log}
	maps.DeleteFunc(b.keys, func(_ string, e entry) bool { return e.session != nil })
	b.log.entries, b.log.positions = slices.Clone(s.log.entries), maps.Clone(s.log.positions)
	return b
}

// RollBack makes the service forget everything since a backup, like a service that was
// wiped or restored. All sessions end; clients learn of that as of any other news. New
// versions and positions continue from those of the backup plus ahead.
func (s *Service) RollBack(b Backup, ahead store.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sessions := map[*lease]bool{}
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
	s.log.entries, s.log.positions, s.log.following = slices.Clone(b.log.entries),
		maps.Clone(b.log.positions), following
	if s.log.positions == nil {
		s.log.positions = make(map[string]store.Position)
	}
	for client := range following {
		client.tellLocked(client.wakeLocked)
	}
}
