package cluster

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Quota is how many sequencers there may be, of all or of some names.
type Quota struct {
	Names []string `json:"names,omitempty"` // patterns of path.Match; none: all names
	Most  int64    `json:"most"`            // at least 1
}

// MaxQuotaNames is how many bytes the patterns of all quotas of a command may have together, as they stand in the log.
const MaxQuotaNames = 16 << 10

// Count returns how many sequencers the quota counts.
func (q Quota) Count(v Value) (n int64) {
	if len(q.Names) == 0 {
		return int64(v.sequencers.len())
	}
	for name := range v.sequencers.all() {
		if slices.ContainsFunc(q.Names, func(pattern string) bool { return matches(pattern, name) }) {
			n++
		}
	}
	return n
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

func checkQuotas(quotas []Quota) error {
	size := 0
	for _, q := range quotas {
		if q.Most < 1 {
			return fmt.Errorf("a quota of %d; want 1 or more", q.Most)
		}
		for _, pattern := range q.Names {
			if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
				return fmt.Errorf("a quota for the names %.100q; want a pattern such as orders-*", pattern)
			}
			size += len(pattern)
		}
	}
	if size > MaxQuotaNames {
		return fmt.Errorf("quotas with patterns of %d bytes; want at most %d", size, MaxQuotaNames)
	}
	return nil
}

// PrefixError is returned when a sequencer would have the prefix of another one.
type PrefixError struct {
	Prefix string
	Holder string // the sequencer that has it
}

func (e *PrefixError) Error() string {
	return fmt.Sprintf("the prefix %q is that of the sequencer %q; want another", e.Prefix, e.Holder)
}

// Reason returns the code of the error, as docs/errors.md has it.
func (*PrefixError) Reason() string { return "refused" }

// ReserveError is returned when a sequencer would begin with reservations that it can't have.
type ReserveError struct {
	Why string
}

func (e *ReserveError) Error() string { return e.Why }

// Reason returns the code of the error, as docs/errors.md has it.
func (*ReserveError) Reason() string { return "refused" }

// QuotaError is returned when there are as many sequencers as a quota allows, or more.
type QuotaError struct {
	Quota
	There int64
}

func (e *QuotaError) Error() string {
	there, names := fmt.Sprintf("there are %d sequencers", e.There), ""
	if e.There == 1 {
		there = "there is one sequencer"
	}
	if len(e.Names) > 0 {
		names = fmt.Sprintf(" of the names %.200s", strings.Join(e.Names, ", "))
	}
	return fmt.Sprintf("%s%s, and the quota is %d; destroy one that nobody needs", there, names, e.Most)
}

// Check returns why a value refuses to create a sequencer of a new name: a *PrefixError, a *QuotaError, a
// *ReserveError, or nil.
func (c CreateSequencer) Check(v Value) error {
	if c.SolePrefix {
		for name, s := range v.sequencers.all() {
			if s.definition.Prefix == c.Definition.Prefix {
				return &PrefixError{c.Definition.Prefix, name}
			}
		}
	}
	for _, q := range c.Quotas {
		if there := q.Count(v); there >= q.Most {
			return &QuotaError{q, there}
		}
	}
	_, err := c.begin(v.position + 1)
	return err
}
