package grpcapi_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/firn-id/firn/api/firnv1"
)

// verbs serves two members with a sequencer of four node IDs, of which each has one, and returns their IDs.
func verbs(t *testing.T) (a, b *rig, idA, idB string) {
	t.Helper()
	all := newMembers(t, "host-a", "host-b")
	a, b = all[0], all[1]
	if _, err := a.admin.CreateSequencer(within(t), &firnv1.CreateSequencerRequest{
		Name:       "orders",
		Definition: &firnv1.Definition{Nodes: new(int64(4))},
	}); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if _, err := r.admin.AttachSequencer(within(t), &firnv1.AttachSequencerRequest{Name: "orders"}); err != nil {
			t.Fatal(err)
		}
	}
	// b has read all of that, a need not have
	status, err := b.admin.ClusterStatus(within(t), &firnv1.ClusterStatusRequest{})
	if err != nil || len(status.GetMembers()) != 2 {
		t.Fatalf("%v, %v", status, err)
	}
	return a, b, status.GetMembers()[0].GetId(), status.GetMembers()[1].GetId()
}

// reaches waits until the answering server has this state for orders: it reads the log by itself.
func (r *rig) reaches(want firnv1.Here_State) {
	r.t.Helper()
	for ctx := within(r.t); ; time.Sleep(time.Millisecond) {
		got, err := r.admin.GetSequencer(ctx, &firnv1.GetSequencerRequest{Name: "orders"})
		if err != nil {
			r.t.Fatalf("it never has the state %v: %v", want, err)
		}
		if got.GetSequencer().GetHere().GetState() == want {
			return
		}
	}
}

// An operator drains a member, moves node IDs, changes an allocation, sets a policy, expels a member, and has its node
// forgotten. Each answer says what came of it, and doing it again changes nothing.
func TestVerbs(t *testing.T) {
	a, b, idA, idB := verbs(t)
	ctx := within(t)
	for range 2 {
		drained, err := a.admin.DrainMember(ctx, &firnv1.DrainMemberRequest{Name: "orders", Member: "host-b"})
		if q := drained.GetSequencer(); err != nil || drained.GetMember() != idB ||
			!slices.Equal(q.GetDrained(), []string{idB}) ||
			len(q.GetNodes()) != 1 || q.GetFree() != 3 {
			t.Errorf("DrainMember: %v, %v", drained, err)
		}
	}
	b.reaches(firnv1.Here_STATE_DRAINED)
	_, err := b.ids.Next(ctx, &firnv1.NextRequest{Sequencer: "orders"})
	wants(t, "Next of a drained member", err, unavailable("detached", "an operator has drained this member"))
	for range 2 {
		undrained, err := a.admin.UndrainMember(ctx, &firnv1.UndrainMemberRequest{Name: "orders", Member: idB})
		if q := undrained.GetSequencer(); err != nil || undrained.GetMember() != idB || len(q.GetDrained()) != 0 {
			t.Errorf("UndrainMember: %v, %v", undrained, err)
		}
	}
	b.reaches(firnv1.Here_STATE_ATTACHED)

	for range 2 {
		moved, err := a.admin.MoveNode(ctx, &firnv1.MoveNodeRequest{Name: "orders", Node: 3, To: "host-b"})
		if q := moved.GetSequencer(); err != nil || moved.GetMember() != idB || q.GetNodes()[3] != idB ||
			len(q.GetNodes()) != 2 {
			t.Errorf("MoveNode: %v, %v", moved, err)
		}
	}

	for _, tt := range []struct {
		to      *firnv1.Allocation
		holders int
	}{
		{&firnv1.Allocation{To: &firnv1.Allocation_Count{Count: 1}}, 1},
		{&firnv1.Allocation{To: &firnv1.Allocation_Percent{Percent: 51}}, 2},
		{&firnv1.Allocation{To: &firnv1.Allocation_Percent{Percent: 50}}, 1},
		{nil, 2},
	} {
		allocated, err := b.admin.SetAllocation(ctx, &firnv1.SetAllocationRequest{Name: "orders", Allocation: tt.to})
		q := allocated.GetSequencer()
		if err != nil || len(q.GetNodes()) != tt.holders || len(q.GetNodes())+len(q.GetWaiting()) != 2 ||
			tt.to != nil && !proto.Equal(q.GetAllocation(), tt.to) ||
			!proto.Equal(q.GetDefinition().GetAllocation(), &firnv1.Allocation{}) {
			t.Errorf("SetAllocation to %v: %v, %v", tt.to, allocated, err)
		}
	}

	for range 2 {
		reserved, err := a.admin.ReserveNodes(ctx,
			&firnv1.ReserveNodesRequest{Name: "orders", For: "imports", Count: 1})
		if r := reserved.GetReservation(); err != nil || r.GetFor() != "imports" || len(r.GetNodes()) != 1 ||
			r.GetSince() == nil || reserved.GetFrom() == nil {
			t.Fatalf("ReserveNodes: %v, %v", reserved, err)
		}
	}
	spare := &firnv1.CreateSequencerRequest{
		Name: "spare", Definition: &firnv1.Definition{Nodes: new(int64(8))}, Reserve: 3,
	}
	for range 2 {
		created, err := a.admin.CreateSequencer(ctx, spare)
		r := created.GetSequencer().GetReservations()
		if err != nil || len(r) != 1 || r[0].GetFor() != "later" || len(r[0].GetNodes()) != 3 {
			t.Errorf("CreateSequencer with node IDs for later: %v, %v", created, err)
		}
	}
	spare.Reserve = 4
	_, err = b.admin.CreateSequencer(ctx, spare)
	wants(t, "CreateSequencer with more of them", err,
		refusal{code: codes.FailedPrecondition, reason: "refused", says: `3 of its node IDs are reserved for "later"`})
	spare.Reserve = 9
	_, err = b.admin.CreateSequencer(ctx, spare)
	wants(t, "CreateSequencer with too many", err,
		refusal{code: codes.InvalidArgument, reason: "bad_request", says: `"reserve" is 9; want 0 to 8`})
	_, err = a.admin.ReleaseNodes(ctx, &firnv1.ReleaseNodesRequest{Name: "orders", For: "imports"})
	wants(t, "ReleaseNodes without a use", err,
		refusal{code: codes.InvalidArgument, reason: "bad_request", says: "either the greatest ID"})
	_, err = a.admin.ReleaseNodes(ctx, &firnv1.ReleaseNodesRequest{
		Name: "orders", For: "imports", Used: &firnv1.ReleaseNodesRequest_Greatest{Greatest: 0},
	})
	wants(t, "ReleaseNodes after an ID of another node ID", err,
		refusal{code: codes.FailedPrecondition, reason: "refused", says: "which are reserved for"})
	shown, err := b.admin.GetSequencer(ctx, &firnv1.GetSequencerRequest{Name: "orders"})
	if err != nil || len(shown.GetSequencer().GetReservations()) != 1 || shown.GetSequencer().GetFree() != 1 {
		t.Errorf("GetSequencer with a reservation: %v, %v", shown, err)
	}
	released, err := a.admin.ReleaseNodes(ctx, &firnv1.ReleaseNodesRequest{
		Name: "orders", For: "imports", Used: &firnv1.ReleaseNodesRequest_UsedUntil{UsedUntil: timestamppb.Now()},
	})
	if err != nil || len(released.GetSequencer().GetReservations()) != 0 || released.GetSequencer().GetFree() != 2 {
		t.Errorf("ReleaseNodes: %v, %v", released, err)
	}

	shares := []*firnv1.Share{{Sequencer: "default"}, {Sequencer: "orders", Percent: 50}}
	set, err := a.admin.SetPolicy(ctx, &firnv1.SetPolicyRequest{Shares: shares})
	if err != nil || len(set.GetPolicy().GetShares()) != 2 {
		t.Fatalf("SetPolicy: %v, %v", set, err)
	}
	serving := map[string]int{}
	for i, s := range set.GetPolicy().GetShares() {
		if s.GetSequencer() != shares[i].GetSequencer() || s.GetPercent() != shares[i].GetPercent() ||
			len(s.GetMembers()) != 1 {
			t.Errorf("the share %v; want %v of one member", s, shares[i])
		}
		for _, id := range s.GetMembers() {
			serving[id]++
		}
	}
	if want := map[string]int{idA: 1, idB: 1}; !maps.Equal(serving, want) {
		t.Errorf("members serve so many sequencers: %v; want %v", serving, want)
	}
	policy, err := a.admin.GetPolicy(ctx, &firnv1.GetPolicyRequest{})
	if err != nil || !proto.Equal(policy.GetPolicy(), set.GetPolicy()) {
		t.Errorf("GetPolicy: %v, %v; want %v", policy, err, set)
	}
	one, err := a.admin.GetSequencer(ctx, &firnv1.GetSequencerRequest{Name: "orders"})
	if q := one.GetSequencer(); err != nil || q.Share == nil || q.GetShare() != 50 || len(q.GetNodes()) != 1 {
		t.Errorf("GetSequencer under a policy: %v, %v", one, err)
	}
	if cleared, err := a.admin.SetPolicy(ctx, &firnv1.SetPolicyRequest{}); err != nil ||
		len(cleared.GetPolicy().GetShares()) != 0 {
		t.Errorf("SetPolicy without shares: %v, %v", cleared, err)
	}

	expelled, err := a.admin.ExpelMember(ctx, &firnv1.ExpelMemberRequest{Member: idB[:6]})
	if err != nil || expelled.GetMember() != idB || expelled.GetOwner() != "host-b" {
		t.Errorf("ExpelMember: %v, %v", expelled, err)
	}
	status, err := a.admin.ClusterStatus(ctx, &firnv1.ClusterStatusRequest{})
	if err != nil || len(status.GetMembers()) != 1 || status.GetMembers()[0].GetId() != idA {
		t.Errorf("ClusterStatus without an expelled member: %v, %v", status, err)
	}
	_, err = a.admin.ExpelMember(ctx, &firnv1.ExpelMemberRequest{Member: idB})
	wants(t, "ExpelMember again", err, bad("no member is"))

	var node *firnv1.Node // b's, once that has left
	for node.GetState() != firnv1.Node_STATE_LEFT && node.GetState() != firnv1.Node_STATE_LOST {
		if status, err = a.admin.ClusterStatus(ctx, &firnv1.ClusterStatusRequest{}); err != nil ||
			len(status.GetNodes()) != 2 {
			t.Fatalf("ClusterStatus: %v, %v; want two nodes, one of which is gone", status, err)
		}
		node = status.GetNodes()[1]
	}
	if node.GetName() != "host-b" || !slices.Equal(node.GetMembers(), []string{idB}) || node.GetSeen() == nil {
		t.Errorf("an expelled node is %v", node)
	}
	_, err = a.admin.ForgetNode(ctx, &firnv1.ForgetNodeRequest{Name: "host-a"})
	wants(t, "ForgetNode of one that lives", err, bad("is alive; expel it, or stop it"))
	f, err := a.admin.ForgetNode(ctx, &firnv1.ForgetNodeRequest{Name: node.GetName()})
	for err != nil && strings.Contains(err.Error(), "is alive") { // it has left, and its pulse has yet to end
		f, err = a.admin.ForgetNode(ctx, &firnv1.ForgetNodeRequest{Name: node.GetName()})
	}
	if err != nil || f.GetName() != node.GetName() {
		t.Errorf("ForgetNode: %v, %v", f, err)
	}
	if status, err = a.admin.ClusterStatus(ctx, &firnv1.ClusterStatusRequest{}); err != nil ||
		len(status.GetNodes()) != 1 {
		t.Errorf("ClusterStatus without a forgotten node: %v, %v", status.GetNodes(), err)
	}
	_, err = a.admin.ForgetNode(ctx, &firnv1.ForgetNodeRequest{Name: node.GetName()})
	wants(t, "ForgetNode again", err, bad("no node is"))

	trail := a.trail.String() + b.trail.String()
	for _, want := range []string{
		"protocol=grpc call=drain sequencer=orders member=" + idB + " outcome=ok",
		"protocol=grpc call=undrain sequencer=orders member=" + idB + " outcome=ok",
		"protocol=grpc call=move sequencer=orders member=" + idB + " outcome=ok",
		"protocol=grpc call=allocate sequencer=orders outcome=ok",
		`protocol=grpc call="set policy" outcome=ok`,
		"protocol=grpc call=expel member=" + idB + " outcome=ok",
		`protocol=grpc call=forget member=host-b outcome=ok`,
	} {
		if !strings.Contains(trail, want) {
			t.Errorf("the trail does not say %s:\n%s", want, trail)
		}
	}
}

// What the cluster does not allow is refused with its reason, what is wrong in a call is said, and neither changes
// anything.
func TestRefusedVerbs(t *testing.T) {
	_, b, idA, _ := verbs(t)
	ctx := within(t)
	if _, err := b.admin.DetachSequencer(ctx, &firnv1.DetachSequencerRequest{Name: "orders"}); err != nil {
		t.Fatal(err)
	}
	before, err := b.admin.ClusterStatus(ctx, &firnv1.ClusterStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	move := func(node int64, to string) error {
		_, err := b.admin.MoveNode(ctx, &firnv1.MoveNodeRequest{Name: "orders", Node: node, To: to})
		return err
	}
	drain := func(member string) error {
		_, err := b.admin.DrainMember(ctx, &firnv1.DrainMemberRequest{Name: "orders", Member: member})
		return err
	}
	undrain := func(member string) error {
		_, err := b.admin.UndrainMember(ctx, &firnv1.UndrainMemberRequest{Name: "orders", Member: member})
		return err
	}
	allocate := func(to *firnv1.Allocation) error {
		_, err := b.admin.SetAllocation(ctx, &firnv1.SetAllocationRequest{Name: "orders", Allocation: to})
		return err
	}
	share := func(shares ...*firnv1.Share) error {
		_, err := b.admin.SetPolicy(ctx, &firnv1.SetPolicyRequest{Shares: shares})
		return err
	}
	expel := func(member string) error {
		_, err := b.admin.ExpelMember(ctx, &firnv1.ExpelMemberRequest{Member: member})
		return err
	}
	refused := func(why string) refusal {
		return refusal{code: codes.FailedPrecondition, reason: "refused", says: why}
	}
	for what, tt := range map[string]struct {
		err  error
		want refusal
	}{
		"a node ID that does not exist":   {move(4, idA), refused("there is no node ID 4; want 0 to 3")},
		"to a member that isn't attached": {move(0, "host-b"), refused("the member is not attached to this sequencer")},

		"a negative node ID":      {move(-1, idA), bad("the node ID -1; want 0 or more")},
		"to nobody":               {move(0, ""), bad(`no member is ""`)},
		"drain an unknown member": {drain("host-c"), bad(`no member is "host-c"; want the ID or the name of one`)},
		"drain one of two":        {drain("host-"), bad(`"host-" can be 2 members`)},
		"undrain an unknown one":  {undrain("nobody"), bad(`no member is "nobody"`)},
		"expel an unknown one":    {expel("nobody"), bad(`no member is "nobody"`)},
		"expel one of two":        {expel("host"), bad(`"host" can be 2 members`)},
		"a count of 0": {
			allocate(&firnv1.Allocation{To: &firnv1.Allocation_Count{}}),
			bad("a count of 0 members; want at least 1"),
		},
		"101 percent": {
			allocate(&firnv1.Allocation{To: &firnv1.Allocation_Percent{Percent: 101}}),
			bad("101 percent of the members; want 1 to 100"),
		},
		"too little together": {
			share(&firnv1.Share{Sequencer: "orders", Percent: 60}),
			bad("shares of 60 percent together; want 100"),
		},
		"two shares of one": {share(&firnv1.Share{Sequencer: "orders", Percent: 50},
			&firnv1.Share{Sequencer: "orders"}), bad(`two shares for the sequencer "orders"`)},
		"a share of -1 percent": {share(&firnv1.Share{Sequencer: "orders", Percent: -1},
			&firnv1.Share{Sequencer: "default"}), bad("a share of -1 percent")},
		"a share of the unknown": {
			share(&firnv1.Share{Sequencer: "users"}),
			refusal{code: codes.NotFound, reason: "unknown_sequencer", says: `"users"`},
		},
		"a share of an empty name": {share(&firnv1.Share{}), bad("the sequencer's name")},
	} {
		wants(t, what, tt.err, tt.want)
	}
	after, err := b.admin.ClusterStatus(ctx, &firnv1.ClusterStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if len(after.GetMembers()) != 2 || len(after.GetSequencers()) != 2 {
		t.Fatalf("after refused calls: %v", after)
	}
	for i, q := range after.GetSequencers() {
		if was := before.GetSequencers()[i]; !proto.Equal(q, was) {
			t.Errorf("refused calls have made of %v\n%v", was, q)
		}
	}
}
