package member_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/sequencer"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// An application does everything that it can do with a member and a sequencer.
func TestLife(t *testing.T) {
	ctx := t.Context()
	opened := memstore.NewService().Client("app")
	resumed, _ := member.Resumes(ctx) // nil where the system does not tell
	m, err := member.Start(func(context.Context) (store.Store, error) { return opened, nil },
		member.Options{Window: 10 * time.Second, Resumed: resumed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Leave)
	if err := m.Wait(ctx); err != nil || m.Ready() != nil || m.ID() == "" || m.Cluster() == "" {
		t.Fatalf("%v: the member %q of the cluster %q is ready: %v", err, m.ID(), m.Cluster(), m.Ready())
	}
	d := sequencer.Define(firn.Default)
	if created, err := m.Create(ctx, "orders", d); err != nil || !created {
		t.Fatalf("Create: %v, %v", created, err)
	}
	s, err := m.Attach(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	if same, err := m.EnsureSequencer(ctx, "orders", d); err != nil || same != s {
		t.Errorf("EnsureSequencer: another handle, %v", err)
	}
	if same, ok := m.Sequencer("orders"); !ok || same != s || s.Name() != "orders" || !s.Definition().Equal(d) ||
		s.Layout() != d.IDLayout() {
		t.Errorf("Sequencer: %v %v %v %v", ok, s.Name(), s.Definition(), s.Layout())
	}
	id, err := s.Next(ctx)
	ids := make([]firn.ID, 3)
	if err := errors.Join(err, s.Fill(ctx, ids[:1]), s.FillAfter(ctx, ids[0], ids[1:])); err != nil || id >= ids[0] ||
		!slices.IsSorted(ids) {
		t.Errorf("%v, %v: %v", id, ids, err)
	}
	l := s.Local()
	last := ids[2]
	for range 2000 { // so many that it has several at a time
		id, err := l.Next(ctx)
		if err != nil || id <= last {
			t.Fatalf("Local: %d after %d, %v", id, last, err)
		}
		last = id
	}
	p, err := s.Parts(id)
	attached := member.State{Phase: member.Attached, Node: p.Node}
	if err != nil || s.State() != attached || s.Ready() != nil {
		t.Errorf("%v of node %d: %v", s.State(), p.Node, err)
	}
	if err := s.Detach(ctx); err != nil || s.State().Phase != member.Detached {
		t.Errorf("Detach: %v, %v", s.State(), err)
	}
	if _, err := s.Next(ctx); !errors.Is(err, member.ErrNotReady) || !errors.Is(err, member.ErrDetached) {
		t.Errorf("Next after Detach: %v", err)
	}
	if _, err := l.Next(ctx); !errors.Is(err, member.ErrNotReady) || !errors.Is(err, member.ErrDetached) {
		t.Errorf("Local.Next after Detach: %v", err)
	}
	if err := s.Attach(ctx); err != nil {
		t.Error(err)
	}
	for state := range s.Changes(ctx) {
		if state.Phase == member.Attached {
			break
		}
	}
	if _, err := l.Next(ctx); err != nil {
		t.Errorf("Local.Next, attached again: %v", err)
	}
	if err := m.Destroy(ctx, "orders"); err != nil {
		t.Error(err)
	}
	if _, err := m.Attach(ctx, "orders"); !errors.Is(err, member.ErrNoSequencer) {
		t.Errorf("Attach after Destroy: %v", err)
	}
	m.Leave()
	<-m.Done()
	if err := m.Err(); err != nil {
		t.Error(err)
	}
}

// What is not valid is refused.
func TestOptions(t *testing.T) {
	for name, o := range map[string]member.Options{
		"TTL": {TTL: member.MaxTTL + 1}, "Window": {Window: member.MaxWindow + 1},
		"Region": {Region: sequencer.Region{Number: 3, Of: 2}}, "CheckpointEvery": {CheckpointEvery: -1},
		"Order": {Order: 9},
	} {
		if o.Validate() == nil {
			t.Errorf("%s: %+v is valid", name, o)
		}
		if _, err := member.Start(nil, o); err == nil {
			t.Errorf("%s: a member started with %+v", name, o)
		}
	}
	if err := (member.Options{}).Validate(); err != nil {
		t.Error(err)
	}
}

// An application does everything that it can do with a counter.
func TestCounter(t *testing.T) {
	ctx := t.Context()
	m, err := member.Join(ctx, memstore.NewService().Client("app"), member.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Leave)
	d := sequencer.Definition{Kind: sequencer.Counter, Max: 9}
	c, err := m.EnsureCounter(ctx, "invoices", d)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := m.OpenCounter(ctx, "invoices"); err != nil || same != c || c.Name() != "invoices" ||
		!c.Definition().Equal(d) || c.Ready() != nil {
		t.Errorf("OpenCounter: %v %v %v %v", err, c.Name(), c.Definition(), c.Ready())
	}
	numbers := make([]firn.ID, 3)
	first, err := c.Next(ctx)
	if err := errors.Join(err, c.Fill(ctx, numbers)); err != nil || first != 1 ||
		!slices.Equal(numbers, []firn.ID{2, 3, 4}) {
		t.Errorf("%v, %v: %v", first, numbers, err)
	}
	if last, err := c.Take(ctx, 5); err != nil || last != 9 {
		t.Errorf("%v: %v", last, err)
	}
	if _, err := c.Next(ctx); !errors.Is(err, member.ErrNotReady) {
		t.Errorf("Next at the end: %v", err)
	}
	if err := c.Detach(ctx); err != nil {
		t.Error(err)
	}
	if _, err := c.Next(ctx); !errors.Is(err, member.ErrDetached) {
		t.Errorf("Next after Detach: %v", err)
	}
}
