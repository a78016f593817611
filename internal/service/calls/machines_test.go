package calls_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store/quorum"
)

// A node is expelled with its machine of the quorum only if the others are a majority, or the caller says that they
// need not be.
func TestExpelKeepsTheMajority(t *testing.T) {
	who, err := (&auth.Policy{Trusted: true}).Admit("")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		machines func([]quorum.Machine) // of three voters that work, of which the second is of the node b
		anyway   bool
		refused  bool
	}{
		"two of three are left": {func([]quorum.Machine) {}, false, false},
		"one of three is left":  {func(m []quorum.Machine) { m[2].Err = "no answer" }, false, true},
		"and it may be":         {func(m []quorum.Machine) { m[2].Err = "no answer" }, true, false},
		"it is down itself":     {func(m []quorum.Machine) { m[1].Err = "no answer" }, false, false},
		"it is no voter": {func(m []quorum.Machine) {
			m[1].Role, m[2].Err = quorum.Learner, "no answer"
		}, false, false},
		"it has told no name": {func(m []quorum.Machine) { m[1].Node, m[2].Err = "", "no answer" }, false, true},
		"another one has the host": {func(m []quorum.Machine) {
			m[1].Node, m[2].Err = "c", "no answer"
		}, false, false},
		"one has never told its role": {func(m []quorum.Machine) {
			m[2] = quorum.Machine{Address: m[2].Address, Err: "no answer"}
		}, false, true},
	} {
		m := servertest.Tell(t, "aid", cluster.PrepareJoin{Joiner: "aid"}, cluster.PrepareJoin{Joiner: "bid"})
		m.SetPulses(map[string]peer.Pulse{"aid": {Owner: "a"}, "bid": {Owner: "b"}})
		m.SetNodes(peer.NodeRecord{Name: "b", Host: "ids-2", Members: []string{"earlier", "bid"}})
		q := servertest.ThreeMachines()
		for i, node := range []string{"a", "b", "c"} {
			q.State.Machines[i].Role, q.State.Machines[i].Err, q.State.Machines[i].Node = quorum.Voter, "", node
		}
		tt.machines(q.State.Machines)
		s := calls.New(m.Member, calls.Options{Quorum: q})
		_, err := s.Expel(t.Context(), who, "b", tt.anyway)
		refused, ok := errors.AsType[*calls.MajorityError](err)
		if ok != tt.refused || !ok && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if ok && (refused.Machine != "ids-2:7420" || refused.Left != 1 || refused.Voters != 3 ||
			calls.CodeOf(err) != codes.Refused ||
			!strings.HasPrefix(err.Error(),
				"bid (b) keeps data for all, as the machine ids-2:7420, which ends with it: 1 of 3 machines would "+
					"be left")) {
			t.Errorf("%s: %s %v", name, calls.CodeOf(err), err)
		}
	}
}

// A machine of the record that answers without data, as its disk was emptied, still counts for the majority.
func TestEmptiedMachinesCount(t *testing.T) {
	voter := func(address string) quorum.Machine { return quorum.Machine{Address: address, Role: quorum.Voter} }
	q := &quorum.Status{
		Majority: true, Record: []string{"a", "b", "c", "d", "e"},
		Machines: []quorum.Machine{voter("a"), voter("b"), voter("c"), {Address: "d"}, {Address: "e"}},
	}
	q.Machines[3].Role, q.Machines[4].Role = "empty", "empty"
	if ends, left, voters := calls.EndsMajority(q, &q.Machines[0]); !ends || left != 2 || voters != 5 {
		t.Errorf("it ends: %v, %d of %d would be left; want true, 2 of 5", ends, left, voters)
	}
}

// A machine is meant by its address, or by the name of its node if no other machine has told that.
func TestMeantMachine(t *testing.T) {
	q := quorum.Status{Machines: []quorum.Machine{
		{Address: "10.0.0.1:7420", Node: "ids-1"},
		{Address: "10.0.0.2:7420", Node: "ids-2"},
		{Address: "10.0.0.3:7420", Node: "ids-2"},
		{Address: "ids-1"},
		{},
	}}
	for text, want := range map[string]string{
		"10.0.0.2:7420": "10.0.0.2:7420", "ids-1": "ids-1", "ids-3": "ids-3", "ids": "ids", "": "",
	} {
		if have, err := calls.MeantMachine(text, q); err != nil || have != want {
			t.Errorf("%q: %q, %v; want %q", text, have, err, want)
		}
	}
	q.Machines = q.Machines[:3]
	if have, err := calls.MeantMachine("ids-1", q); err != nil || have != "10.0.0.1:7420" {
		t.Errorf("%q, %v", have, err)
	}
	if have, err := calls.MeantMachine("ids-2", q); calls.CodeOf(err) != codes.BadRequest ||
		err.Error() != `"ids-2" can be the machines 10.0.0.2:7420 and 10.0.0.3:7420; want the address of one` {
		t.Errorf("%q, %v", have, err)
	}
}
