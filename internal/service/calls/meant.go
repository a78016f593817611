package calls

import (
	"context"
	"fmt"
	"strings"

	"github.com/firn-id/firn/internal/core/cluster"
)

// Candidate is a member or joiner that a caller may mean.
type Candidate struct {
	ID    string
	Owner string // the name of its node; empty: unknown
}

func (c Candidate) String() string {
	if c.Owner == "" {
		return c.ID
	}
	return fmt.Sprintf("%s (%s)", c.ID, c.Owner)
}

// Meant returns the candidate that a caller means: the one with this ID or name, or else the only one whose ID or name
// begins so. An error that lists candidates is returned when there is none, or more than one.
func Meant(text string, candidates []Candidate) (Candidate, error) {
	var exact, begins []Candidate
	for _, c := range candidates {
		switch {
		case text == "":
		case c.ID == text, c.Owner == text:
			exact = append(exact, c)
		case strings.HasPrefix(c.ID, text), strings.HasPrefix(c.Owner, text):
			begins = append(begins, c)
		}
	}
	if len(exact) > 0 {
		begins = exact
	}
	switch len(begins) {
	case 0:
		return Candidate{},
			fmt.Errorf("no member is %.100q; want the ID or the name of one, or the beginning of it: %s", text,
				listed(candidates))
	case 1:
		return begins[0], nil
	default:
		return Candidate{},
			fmt.Errorf("%.100q can be %d members: %s; give more of the ID", text, len(begins), listed(begins))
	}
}

// listed lists candidates for people.
func listed(candidates []Candidate) string {
	const most = 10
	if len(candidates) == 0 {
		return "there are no members"
	}
	var all []string
	for _, c := range candidates[:min(len(candidates), most)] {
		all = append(all, c.String())
	}
	if more := len(candidates) - most; more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, ", ")
}

// meant returns the member that a caller means, or the joiner, where there may be joiners.
func (s *Service) meant(ctx context.Context, text string, joiners bool) (Candidate, error) {
	v, err := s.latest()
	if err != nil {
		return Candidate{}, err
	}
	soon, cancel := context.WithTimeout(ctx, pulsesWithin)
	defer cancel()
	pulses, unread := s.member.Pulses(soon)
	c, err := Meant(text, candidates(v, func(id string) string { return pulses[id].Owner }, joiners))
	switch {
	case err == nil:
		return c, nil
	case unread != nil:
		return Candidate{}, fmt.Errorf("the names of the members are unknown: %w", unread)
	default:
		return Candidate{}, Input(err)
	}
}

// candidates are the members of a value, and its joiners if wanted.
func candidates(v cluster.Value, owner func(id string) string, joiners bool) (all []Candidate) {
	for _, id := range v.Members() {
		all = append(all, Candidate{id, owner(id)})
	}
	if joiners {
		for id := range v.Joins() {
			all = append(all, Candidate{id, owner(id)})
		}
	}
	return all
}
