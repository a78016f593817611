package calls

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/store/quorum"
)

// machineOf returns the machine of the quorum that ends with the process of a node: the one that has told the node's
// name or, of those that have told none, the only one on the node's host. Nil: none, or unknown.
func machineOf(q *quorum.Status, node, host string) (found *quorum.Machine) {
	if q == nil || node == "" {
		return nil
	}
	for i, m := range q.Machines {
		if m.Node == node {
			return &q.Machines[i]
		}
	}
	for i, m := range q.Machines {
		at, _, err := net.SplitHostPort(m.Address)
		switch {
		case m.Node != "" || err != nil || at != host:
		case found != nil:
			return nil
		default:
			found = &q.Machines[i]
		}
	}
	return found
}

// MachineOf returns the machine of the quorum that ends with a member's process, whose node has a name. Nil: none, or
// unknown.
func (s Status) MachineOf(id, node string) *quorum.Machine {
	host := ""
	for _, n := range s.Nodes {
		if slices.Contains(n.Members, id) {
			host = n.Host
		}
	}
	return machineOf(s.Quorum, node, host)
}

// EndsMajority reports whether a quorum has a majority, and has none once a machine ends; and how many voters are left
// then, of how many.
func EndsMajority(q *quorum.Status, m *quorum.Machine) (ends bool, left, voters int) {
	if q == nil {
		return false, 0, 0
	}
	for one := range votersOf(*q) {
		voters++
		if one.Err == "" && (m == nil || one.Address != m.Address) {
			left++
		}
	}
	voters = max(voters, len(q.Record)) // a machine whose disk was emptied has no role, and counts until it is removed
	return q.Majority && m != nil && m.Role == quorum.Voter && 2*left <= voters, left, voters
}

// MeantMachine returns the address of the machine that a caller names by its address or its node. A text that names
// none is returned as it is. An error is returned when several have told the name.
func MeantMachine(text string, q quorum.Status) (address string, err error) {
	var all []string
	for _, m := range q.Machines {
		switch {
		case m.Address == text:
			return text, nil
		case m.Node == text && text != "":
			all = append(all, m.Address)
		}
	}
	switch len(all) {
	case 0:
		return text, nil
	case 1:
		return all[0], nil
	default:
		return "", Input(fmt.Errorf("%.100q can be the machines %s; want the address of one", text,
			strings.Join(all, " and ")))
	}
}

// MajorityError is returned by Expel for a node without which the quorum has no majority.
type MajorityError struct {
	Node         string // its ID and its name
	Machine      string // its address
	Left, Voters int
}

func (e *MajorityError) Error() string {
	return fmt.Sprintf("%s keeps data for all, as the machine %s, which ends with it: %d of %d machines would be "+
		"left, no majority, and no node could reserve more time; "+
		"start another machine first, or say that this may end the majority (--end-the-majority)", e.Node, e.Machine,
		e.Left, e.Voters)
}

// Reason returns the code of the error, as docs/errors.md has it.
func (*MajorityError) Reason() string { return string(codes.Refused) }

// keepsMajority returns a MajorityError if the quorum has no majority without a member's process.
func (s *Service) keepsMajority(ctx context.Context, c Candidate) error {
	if s.options.Quorum == nil {
		return nil
	}
	host := ""
	if nodes, err := s.member.Nodes(ctx); err == nil { // else what machines have told has to do
		for _, r := range nodes {
			if slices.Contains(r.Members, c.ID) {
				host = r.Host
			}
		}
	}
	q := s.quorum(ctx)
	m := machineOf(q, c.Owner, host)
	if ends, left, voters := EndsMajority(q, m); ends {
		return &MajorityError{c.String(), m.Address, left, voters}
	}
	return nil
}
