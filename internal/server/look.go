package server

import (
	"context"

	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/member"
)

// Pulses returns the pulses of all living members, by ID, for callers that watch continuously: it counts against
// no limit.
func (s *Service) Pulses(ctx context.Context, who *auth.Caller) (map[string]member.Pulse, error) {
	if err := who.May(auth.Look, ""); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pulsesWithin)
	defer cancel()
	return s.member.Pulses(ctx)
}

// Look returns a Status with pulses that were read before; nil: unknown. It does not ask the store, and counts
// against no limit.
func (s *Service) Look(who *auth.Caller, pulses map[string]member.Pulse) (Status, error) {
	v, err := s.Value(who)
	if err != nil {
		return Status{}, err
	}
	return s.statusOf(v, pulses), nil
}
