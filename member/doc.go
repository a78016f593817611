// Package member makes IDs inside an application: it is a member of a cluster, without a service in between.
//
//	m, err := member.Join(ctx, store, member.Options{Logger: slog.Default()})
//	s, err := m.EnsureSequencer(ctx, "orders", sequencer.Define(firn.Default))
//	id, err := s.Next(ctx)
//
// A member claims node IDs, and fences them in time through its store. Whatever happens to the store, the
// session, the other members or the clock, Next returns a unique ID or an error. While the store is unavailable, a
// member makes IDs up to its horizon. A member that lost its session, or that the others took for dead, joins again,
// makes IDs up to its old horizon meanwhile, and switches over.
//
// Exported are Start and Join, which return a Member; its Options; the Sequencer, which makes IDs; the Counter, which
// gives dense numbers; and the errors that say why there are none. What a service or an operator needs beyond that,
// such as draining a node, is for `firn`.
package member
