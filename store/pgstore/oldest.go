package pgstore

import "time"

// An open transaction keeps the server from removing what was written since it began. oldest is an SQL expression for
// the time in milliseconds since the oldest of the database began, as far as the role may see: of other users' it sees
// only prepared ones, unless it has the role pg_read_all_stats.
const oldest = `(SELECT coalesce(max(extract(epoch FROM clock_timestamp() - since) * 1000), 0)::bigint FROM (
	SELECT xact_start AS since FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()
			AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
	UNION ALL SELECT prepared FROM pg_prepared_xacts WHERE database = current_database()) AS open)`

// oldestEvery is how often a client asks for it.
const oldestEvery = 30 * time.Second

// age is how old the oldest transaction was.
type age struct {
	is time.Duration
	at time.Time // zero: nobody has asked
}

// oldestTransaction is how long the oldest transaction has been open, to within oldestEvery; see store.Traits.
func (s *Store) oldestTransaction() (is time.Duration, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.age.is, !s.age.at.IsZero()
}

type ageRow struct{ Oldest int64 } // in milliseconds

// askAge asks for the age if that is due.
func (s *Store) askAge(m *message, found **ageRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.age.at) >= oldestEvery {
		maybe(m, found, "SELECT "+oldest+" AS oldest", nil)
	}
}

// learnAge notes the answer; nil: it was not asked for.
func (s *Store) learnAge(found *ageRow) {
	if found == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.age = age{time.Duration(found.Oldest) * time.Millisecond, time.Now()}
}
