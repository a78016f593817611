package grpcapi_test

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/core/counter"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store/memstore"
)

// A counter's life: it is created, shown, gives its numbers, which have no time, until there are no more, and is
// destroyed.
func TestLifeOfACounter(t *testing.T) {
	all := newMembers(t, "a", "b")
	a, b := all[0], all[1]
	ctx := within(t)
	definition := &firnv1.Definition{
		Kind: firnv1.Definition_KIND_COUNTER, Order: firnv1.Definition_ORDER_NODE,
		After: 40, Max: 49, Prefix: "inv",
	}
	shown := func(what string, q *firnv1.Sequencer, err error) {
		t.Helper()
		if err != nil || q.GetCreated() < 1 || q.Until != nil || q.GetRate() != 0 || q.GetCapacity() != 0 ||
			q.Allocation != nil ||
			q.GetName() != "invoices" || !proto.Equal(q.GetDefinition(), definition) {
			t.Errorf("%s: %v, %v", what, q, err)
		}
	}
	created, err := a.admin.CreateSequencer(ctx, &firnv1.CreateSequencerRequest{
		Name: "invoices", Definition: definition,
	})
	if !created.GetCreated() {
		t.Errorf("%v: not created", created)
	}
	shown("CreateSequencer", created.GetSequencer(), err)
	_, err = b.admin.CreateSequencer(ctx, &firnv1.CreateSequencerRequest{Name: "invoices"})
	wants(t, "another kind", err,
		refusal{code: codes.AlreadyExists, reason: "exists", says: "kind: counter is in force, snowflake is wanted"})
	if c := refusalOf(err).conflict; !proto.Equal(c.GetInForce(), definition) {
		t.Errorf("the conflict is %v", c)
	}

	next, err := b.ids.Next(ctx, &firnv1.NextRequest{Sequencer: "invoices", Form: firnv1.Form_FORM_PREFIXED})
	if err != nil || next.GetId() != 41 || next.GetText() != "inv_0000000000019" {
		t.Errorf("Next: %v, %v", next, err)
	}
	some, err := b.ids.NextBatch(ctx, &firnv1.NextBatchRequest{Sequencer: "invoices", Count: 4})
	if err != nil || !slices.Equal(some.GetIds(), []int64{42, 43, 44, 45}) {
		t.Errorf("NextBatch: %v, %v", some, err)
	}
	stream, err := b.ids.Stream(ctx, &firnv1.StreamRequest{Sequencer: "invoices", BatchSize: 2, Total: 2})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := stream.Recv(); err != nil || !slices.Equal(got.GetIds(), []int64{46, 47}) {
		t.Errorf("Stream: %v, %v", got, err)
	}
	_, err = b.ids.NextBatch(ctx, &firnv1.NextBatchRequest{Sequencer: "invoices", Count: 3})
	wants(t, "more than there are", err,
		refusal{code: codes.FailedPrecondition, reason: "exhausted", says: "the numbers end at 49"})

	for _, r := range []*firnv1.DecodeRequest{
		{Id: 41, Form: firnv1.Form_FORM_PREFIXED},
		{Text: "inv_0000000000019", Form: firnv1.Form_FORM_PREFIXED},
		{Text: "41-72", Form: firnv1.Form_FORM_PREFIXED},
		{Text: "INV41", Form: firnv1.Form_FORM_PREFIXED},
		{Text: "INV41-42", Form: firnv1.Form_FORM_PREFIXED},
		{Text: "INV41", As: firnv1.Form_FORM_PREFIXED_DECIMAL, Form: firnv1.Form_FORM_PREFIXED},
	} {
		r.Sequencer = "invoices"
		parts, err := a.ids.Decode(ctx, r)
		if err != nil || !proto.Equal(parts, &firnv1.DecodeResponse{Id: 41, Text: "inv_0000000000019"}) {
			t.Errorf("Decode %v: %v, %v", r, parts, err)
		}
	}

	one, err := b.admin.GetSequencer(ctx, &firnv1.GetSequencerRequest{Name: "invoices"})
	shown("GetSequencer", one.GetSequencer(), err)
	if q := one.GetSequencer(); q.GetCount().GetReserved() != 48 || q.GetCount().GetLost() ||
		q.GetHere().GetState() != firnv1.Here_STATE_COUNTING || q.GetHere().GetReserved() != 48 {
		t.Errorf("GetSequencer: %v", q)
	}
	list, err := a.admin.ListSequencers(ctx, &firnv1.ListSequencersRequest{})
	if len(list.GetSequencers()) != 2 {
		t.Fatalf("ListSequencers: %v, %v", list, err)
	}
	shown("ListSequencers", list.GetSequencers()[1], err)
	status, err := a.admin.ClusterStatus(ctx, &firnv1.ClusterStatusRequest{})
	if len(status.GetSequencers()) != 2 {
		t.Fatalf("ClusterStatus: %v, %v", status, err)
	}
	shown("ClusterStatus", status.GetSequencers()[1], err)

	if _, err := a.admin.DestroySequencer(ctx, &firnv1.DestroySequencerRequest{Name: "invoices"}); err != nil {
		t.Error(err)
	}
	_, err = a.ids.Next(ctx, &firnv1.NextRequest{Sequencer: "invoices"})
	wants(t, "after the end", err, refusal{code: codes.NotFound, reason: "unknown_sequencer"})
	for _, r := range all {
		if log := r.log.String(); log != "" {
			t.Errorf("it was logged: %s", log)
		}
	}
}

// A counter whose store has lost data stops until it is resumed, and ends at its maximum.
func TestResumeCounter(t *testing.T) {
	store := memstore.NewService().Client("a")
	r := newRig(t, new(servertest.Issuer), servertest.JoinOver(t, store), trusting)
	ctx := within(t)
	definition := &firnv1.Definition{
		Kind:  firnv1.Definition_KIND_COUNTER,
		Order: firnv1.Definition_ORDER_NODE, Max: 10_001,
	}
	if _, err := r.admin.CreateSequencer(ctx, &firnv1.CreateSequencerRequest{
		Name: "invoices", Definition: definition,
	}); err != nil {
		t.Fatal(err)
	}
	// until takes numbers until that fails, and returns the last one.
	until := func(reason string) (last int64) {
		t.Helper()
		for {
			next, err := r.ids.Next(ctx, &firnv1.NextRequest{Sequencer: "invoices"})
			if refusalOf(err).reason == reason {
				return last
			}
			if err != nil && refusalOf(err).reason != "lost" { // which it is for a moment after it was resumed
				t.Fatalf("%v; want %s", err, reason)
			}
			last = max(last, next.GetId())
		}
	}
	here := func() *firnv1.Sequencer {
		t.Helper()
		q, err := r.admin.GetSequencer(ctx, &firnv1.GetSequencerRequest{Name: "invoices"})
		if err != nil {
			t.Fatal(err)
		}
		return q.GetSequencer()
	}
	resume := func(name string, after *int64) (*firnv1.ResumeCounterResponse, error) {
		return r.admin.ResumeCounter(ctx, &firnv1.ResumeCounterRequest{Name: name, After: after})
	}
	if _, err := r.ids.NextBatch(ctx, &firnv1.NextBatchRequest{Sequencer: "invoices", Count: 7}); err != nil {
		t.Fatal(err)
	}
	refused := refusal{code: codes.FailedPrecondition, reason: "refused"}
	_, err := resume("invoices", new(int64(10_000)))
	wants(t, "before", err, refused)
	if err := counter.Tell(ctx, store); err != nil {
		t.Fatal(err)
	}
	last := until("lost")
	if q := here(); q.GetHere().GetState() != firnv1.Here_STATE_LOST || !q.GetCount().GetLost() ||
		q.GetCount().GetReserved() < last {
		t.Errorf("after %d it is %v", last, q)
	}
	_, err = resume("invoices", new(int64(6)))
	wants(t, "too low", err, refused)
	_, err = resume("invoices", nil)
	wants(t, "without a number", err, bad("no after; want the greatest number that anybody was given"))
	_, err = resume("invoices", new(int64(-1)))
	wants(t, "below 0", err, bad("to resume above -1; want 0 or more"))
	_, err = resume("nothing", new(int64(7)))
	wants(t, "another", err, refusal{code: codes.NotFound, reason: "unknown_sequencer"})
	resumed, err := resume("invoices", new(int64(10_000)))
	if c := resumed.GetSequencer().GetCount(); err != nil || c.GetLost() || c.GetReserved() < 10_000 {
		t.Errorf("%v, %v", resumed, err)
	}
	if last := until("exhausted"); last != 10_001 {
		t.Errorf("it ended at %d; want 10001", last)
	}
	if q := here(); q.GetHere().GetState() != firnv1.Here_STATE_EXHAUSTED || q.GetHere().GetWhy() == "" {
		t.Errorf("it is %v", q)
	}
}
