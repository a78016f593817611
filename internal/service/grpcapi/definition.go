package grpcapi

import (
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/sequencer"
)

// readDefinition reads a message. It does so by way of JSON, so that defaults and errors are the same there. An error
// is returned when the definition is not valid.
func readDefinition(m *firnv1.Definition) (d cluster.Definition, err error) {
	if m == nil {
		m = &firnv1.Definition{}
	}
	fields := map[string]any{}
	put(fields, "nodes", m.Nodes)
	put(fields, "layout", m.Layout)
	put(fields, "time_bits", m.TimeBits)
	put(fields, "datacenter_bits", m.DatacenterBits)
	put(fields, "node_bits", m.NodeBits)
	put(fields, "sequence_bits", m.SequenceBits)
	put(fields, "node_lowest", m.NodeLowest)
	if a := m.GetAllocation(); a != nil {
		if fields["allocation"], err = readAllocation(a); err != nil {
			return d, err
		}
	}
	if at := m.GetEpoch(); at != nil {
		if !at.IsValid() {
			return d, fmt.Errorf("the epoch of %d seconds and %d nanoseconds is not a valid time; want one from "+
				"1970 to now", at.GetSeconds(), at.GetNanos())
		}
		fields["epoch"] = at.AsTime()
	}
	if tick := m.GetTick(); tick != nil {
		if !tick.IsValid() || tick.AsDuration() > time.Second {
			return d, fmt.Errorf("the tick of %d seconds and %d nanoseconds; want 1ms to 1s", tick.GetSeconds(),
				tick.GetNanos())
		}
		fields["tick"] = tick.AsDuration().String()
	}
	if window := m.GetWindow(); window != nil {
		if !window.IsValid() {
			return d, fmt.Errorf("the window of %d seconds and %d nanoseconds is no duration; want at least 1s",
				window.GetSeconds(), window.GetNanos())
		}
		fields["window"] = window.AsDuration().String()
	}
	if err := putPlain(fields, m); err != nil {
		return d, err
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal(text, &d)
}

// putPlain puts the fields whose zero value is the default.
func putPlain(fields map[string]any, m *firnv1.Definition) error {
	if m.GetAfter() < 0 {
		return fmt.Errorf("after is %d; want an ID, or 0 for none", m.GetAfter())
	}
	if m.GetAfter() > 0 {
		fields["after"] = m.GetAfter()
	}
	if m.GetMax() < 0 {
		return fmt.Errorf("max is %d; want the greatest number of a counter, or 0 for %d", m.GetMax(), firn.MaxID)
	}
	if m.GetMax() > 0 {
		fields["max"] = m.GetMax()
	}
	if m.GetDigits() != 0 {
		fields["digits"] = m.GetDigits()
	}
	if m.GetZone() != "" {
		fields["zone"] = m.GetZone()
	}
	if m.GetPrefix() != "" {
		fields["prefix"] = m.GetPrefix()
	}
	if m.GetScattered() {
		fields["scattered"] = true
	}
	if m.GetRandomStart() {
		fields["random_start"] = true
	}
	if a := m.GetAttach(); a != firnv1.Definition_ATTACH_UNSPECIFIED {
		policy, ok := attachPolicies[a]
		if !ok {
			return fmt.Errorf("attach is %d; want on demand (%d) or explicit (%d)", a,
				firnv1.Definition_ATTACH_ON_DEMAND, firnv1.Definition_ATTACH_EXPLICIT)
		}
		fields["attach"] = policy
	}
	if o := m.GetOrder(); o != firnv1.Definition_ORDER_UNSPECIFIED {
		order, ok := orders[o]
		if !ok {
			return fmt.Errorf("order is %d; want node (%d) or strict (%d)", o, firnv1.Definition_ORDER_NODE,
				firnv1.Definition_ORDER_STRICT)
		}
		fields["order"] = order
	}
	if d := m.GetDated(); d != firnv1.Definition_DATED_UNSPECIFIED {
		every, ok := everies[d]
		if !ok {
			return fmt.Errorf("dated is %d; want day (%d), month (%d) or year (%d)", d, firnv1.Definition_DATED_DAY,
				firnv1.Definition_DATED_MONTH, firnv1.Definition_DATED_YEAR)
		}
		fields["dated"] = every
	}
	if k := m.GetKind(); k != firnv1.Definition_KIND_UNSPECIFIED {
		kind, ok := kinds[k]
		if !ok {
			return fmt.Errorf("kind is %d; want snowflake (%d) or counter (%d)", k,
				firnv1.Definition_KIND_SNOWFLAKE, firnv1.Definition_KIND_COUNTER)
		}
		fields["kind"] = kind
	}
	return nil
}

var attachPolicies = map[firnv1.Definition_Attach]cluster.AttachPolicy{
	firnv1.Definition_ATTACH_ON_DEMAND: cluster.AttachOnDemand,
	firnv1.Definition_ATTACH_EXPLICIT:  cluster.AttachExplicit,
}

var kinds = map[firnv1.Definition_Kind]cluster.Kind{
	firnv1.Definition_KIND_SNOWFLAKE: cluster.Snowflake,
	firnv1.Definition_KIND_COUNTER:   cluster.Counter,
}

var orders = map[firnv1.Definition_Order]sequencer.Order{
	firnv1.Definition_ORDER_NODE:   sequencer.OrderNode,
	firnv1.Definition_ORDER_STRICT: sequencer.OrderStrict,
}

var everies = map[firnv1.Definition_Dated]sequencer.Every{
	firnv1.Definition_DATED_DAY:   sequencer.EveryDay,
	firnv1.Definition_DATED_MONTH: sequencer.EveryMonth,
	firnv1.Definition_DATED_YEAR:  sequencer.EveryYear,
}

// messageOf returns the message that stands for a value, or the zero message.
func messageOf[M comparable, V comparable](values map[M]V, value V) (message M) {
	for m, v := range values {
		if v == value {
			return m
		}
	}
	return message
}

func put[T any](fields map[string]any, name string, value *T) {
	if value != nil {
		fields[name] = *value
	}
}

// readAllocation reads a message. It checks no ranges.
func readAllocation(a *firnv1.Allocation) (cluster.Allocation, error) {
	switch to := a.GetTo().(type) {
	case nil:
		return cluster.Allocation{}, nil
	case *firnv1.Allocation_Count:
		return cluster.Allocation{Kind: cluster.AllocateCount, Count: to.Count}, nil
	case *firnv1.Allocation_Percent:
		return cluster.Allocation{Kind: cluster.AllocatePercent, Percent: to.Percent}, nil
	default:
		return cluster.Allocation{}, fmt.Errorf("unknown kind of allocation %T; want count, percent or neither", to)
	}
}

func definitionMessage(d cluster.Definition) *firnv1.Definition {
	if d.Kind == cluster.Counter {
		return &firnv1.Definition{
			Kind: firnv1.Definition_KIND_COUNTER, After: int64(d.After), Max: int64(d.Max), Prefix: d.Prefix,
			Order: messageOf(orders, d.Order), Dated: messageOf(everies, d.Dated.Every),
			Digits: int32(d.Dated.Digits), Zone: d.Dated.Zone, // 0 to 14
		}
	}
	l := d.Layout
	bits := func(n int) *int32 { return new(int32(n)) } // 0 to 62
	m := &firnv1.Definition{
		Epoch: timestamppb.New(l.Epoch), Tick: durationpb.New(l.Tick),
		TimeBits: bits(l.TimeBits), DatacenterBits: bits(l.DatacenterBits), NodeBits: bits(l.NodeBits),
		SequenceBits: bits(l.SequenceBits),
		NodeLowest:   &l.NodeLowest, After: int64(d.After),
		Prefix: d.Prefix, Scattered: d.Scattered, RandomStart: d.RandomStart,
		Kind: firnv1.Definition_KIND_SNOWFLAKE, Order: messageOf(orders, d.Order),
	}
	if d.Claimed() {
		return m
	}
	m.Nodes, m.Allocation, m.Attach = &d.Nodes, allocationMessage(d.Allocation), messageOf(attachPolicies, d.Attach)
	if d.Window != 0 {
		m.Window = durationpb.New(d.Window)
	}
	return m
}

func allocationMessage(a cluster.Allocation) *firnv1.Allocation {
	switch a.Kind {
	case cluster.AllocateCount:
		return &firnv1.Allocation{To: &firnv1.Allocation_Count{Count: a.Count}}
	case cluster.AllocatePercent:
		return &firnv1.Allocation{To: &firnv1.Allocation_Percent{Percent: a.Percent}}
	default:
		return &firnv1.Allocation{}
	}
}

func conflictMessage(e *peer.ExistsError) *firnv1.Conflict {
	m := &firnv1.Conflict{InForce: definitionMessage(e.InForce)}
	for _, d := range e.InForce.Differences(e.Wanted) {
		m.Differences = append(m.Differences, &firnv1.Difference{Field: d.Field, InForce: d.InForce, Wanted: d.Wanted})
	}
	return m
}
