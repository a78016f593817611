package grpcapi

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/sequencer"
)

// any definition, if it is valid.
func random(r *rand.Rand) cluster.Definition {
	if r.IntN(5) == 0 {
		d := cluster.Definition{
			Kind: cluster.Counter, After: firn.ID(r.Int64()), Prefix: "inv",
			Order: cluster.Order(r.IntN(2)),
		}
		if r.IntN(2) == 0 {
			d.Dated = sequencer.Dated{Every: sequencer.Every(1 + r.IntN(3)), Digits: r.IntN(12), Zone: "UTC"}
		}
		if r.IntN(2) == 0 {
			d.Max = firn.ID(r.Int64())
		}
		return d
	}
	l := firn.Layout{
		Epoch:    time.Unix(r.Int64N(1<<31), r.Int64N(1e9)).UTC(),
		Tick:     time.Duration(1+r.Int64N(1000)) * time.Millisecond,
		TimeBits: 20 + r.IntN(22), DatacenterBits: r.IntN(5), NodeBits: r.IntN(9), SequenceBits: r.IntN(13),
		NodeLowest: r.IntN(2) == 0,
	}
	d := cluster.Define(l)
	d.Nodes = 1 + r.Int64N(d.Nodes)
	d.Allocation.Kind = cluster.AllocationKind(r.IntN(3))
	switch d.Allocation.Kind {
	case cluster.AllocateCount:
		d.Allocation.Count = 1 + r.Int64N(math.MaxInt64)
	case cluster.AllocatePercent:
		d.Allocation.Percent = 1 + r.Int64N(100)
	}
	d.Attach = cluster.AttachPolicy(r.IntN(2))
	if r.IntN(2) == 0 {
		d.After = firn.ID(r.Int64N(1 << 40))
	}
	return d
}

// A definition is the same after its way through a message, and after one through the wire.
func TestDefinitionsGoThereAndBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	valid := 0
	for range 5000 {
		d := random(r)
		if d.Validate() != nil {
			continue
		}
		valid++
		wire, err := proto.Marshal(definitionMessage(d))
		if err != nil {
			t.Fatal(err)
		}
		var m firnv1.Definition
		if err := proto.Unmarshal(wire, &m); err != nil {
			t.Fatal(err)
		}
		if got, err := readDefinition(&m); err != nil || !got.Equal(d) {
			t.Fatalf("%v has become %v, %v", d, got, err)
		}
	}
	if valid < 1000 {
		t.Errorf("only %d were valid", valid)
	}
}

// What is absent is what it is in JSON.
func TestDefaultsAreThoseOfJSON(t *testing.T) {
	for text, m := range map[string]*firnv1.Definition{
		`{}`:                               nil,
		`{ }`:                              {},
		`{"nodes":5}`:                      {Nodes: new(int64(5))},
		`{"layout":"twitter"}`:             {Layout: new("twitter")},
		`{"layout":"twitter","nodes":64}`:  {Layout: new("twitter"), Nodes: new(int64(64))},
		`{"time_bits":40,"node_bits":2}`:   {TimeBits: new(int32(40)), NodeBits: new(int32(2))},
		`{"node_bits":0}`:                  {NodeBits: new(int32(0))},
		`{"node_lowest":true}`:             {NodeLowest: new(true)},
		`{"tick":"10ms"}`:                  {Tick: durationpb.New(10 * time.Millisecond)},
		`{"epoch":"1971-01-01T00:00:00Z"}`: {Epoch: timestamppb.New(time.Date(1971, 1, 1, 0, 0, 0, 0, time.UTC))},
		`{"allocation":{"kind":"all"}}`:    {Allocation: &firnv1.Allocation{}},

		`{"allocation":{"kind":"count","count":2}}`: {
			Allocation: &firnv1.Allocation{To: &firnv1.Allocation_Count{Count: 2}},
		},
		`{"allocation":{"kind":"percent","percent":50}}`: {
			Allocation: &firnv1.Allocation{To: &firnv1.Allocation_Percent{Percent: 50}},
		},
		`{"after":"1000"}`:         {After: 1000},
		`{"attach":"on-demand"}`:   {Attach: firnv1.Definition_ATTACH_ON_DEMAND},
		`{"attach":"explicit"}`:    {Attach: firnv1.Definition_ATTACH_EXPLICIT},
		`{"attach":"on-demand"  }`: {Attach: firnv1.Definition_ATTACH_UNSPECIFIED},
		`{"kind":"snowflake"}`:     {Kind: firnv1.Definition_KIND_SNOWFLAKE},
		`{"kind":"snowflake" }`:    {Kind: firnv1.Definition_KIND_UNSPECIFIED},
		`{"kind":"counter"}`:       {Kind: firnv1.Definition_KIND_COUNTER},
		`{"kind":"counter","dated":"month","digits":4,"zone":"Europe/Berlin"}`: {
			Kind: firnv1.Definition_KIND_COUNTER, Dated: firnv1.Definition_DATED_MONTH, Digits: 4,
			Zone: "Europe/Berlin",
		},
		`{"order":"strict","layout":"41/10/12"}`: {
			Order: firnv1.Definition_ORDER_STRICT, Layout: new("41/10/12"),
		},
		`{"kind":"counter","after":"7","max":"9007199254740993","order":"strict","prefix":"inv"}`: {
			Kind: firnv1.Definition_KIND_COUNTER, After: 7, Max: 9007199254740993,
			Order: firnv1.Definition_ORDER_STRICT, Prefix: "inv",
		},
	} {
		var want cluster.Definition
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got, err := readDefinition(m); err != nil || !got.Equal(want) {
			t.Errorf("%v is %v, %v\nwant %v", m, got, err, want)
		}
	}
}

// What is wrong is told with the value, and what would be right.
func TestBadDefinitions(t *testing.T) {
	for says, m := range map[string]*firnv1.Definition{
		"0 nodes; want 1 to 1024":                    {Nodes: new(int64(0))},
		"-9223372036854775808 nodes; want 1 to 1024": {Nodes: new(int64(math.MinInt64))},
		`"twiter"`:                           {Layout: new("twiter")},
		"-1 node bits; want 0 to 62":         {NodeBits: new(int32(-1))},
		"2147483647 time bits; want 1 to 62": {TimeBits: new(int32(math.MaxInt32))},
		"want at most 63":                    {TimeBits: new(int32(60))},
		"a tick of 1µs; want 1ms to 1s":      {Tick: durationpb.New(time.Microsecond)},
		"tick of -1ms":                       {Tick: durationpb.New(-time.Millisecond)},
		"the tick of 1 seconds and 1 nanoseconds; want 1ms to 1s": {Tick: &durationpb.Duration{
			Seconds: 1,
			Nanos:   1,
		}},
		"the tick of 9223372036854775807 seconds":          {Tick: &durationpb.Duration{Seconds: math.MaxInt64}},
		"the tick of 0 seconds and 2000000000 nanoseconds": {Tick: &durationpb.Duration{Nanos: 2e9}},
		"the epoch of 9223372036854775807 seconds":         {Epoch: &timestamppb.Timestamp{Seconds: math.MaxInt64}},
		"the epoch of -9223372036854775808 seconds":        {Epoch: &timestamppb.Timestamp{Seconds: math.MinInt64}},

		"the epoch of 0 seconds and -1 nanoseconds is not a valid time": {Epoch: &timestamppb.Timestamp{Nanos: -1}},

		"the epoch 0001-01-01T00:00:00Z; want 1970 to": {Epoch: timestamppb.New(time.Time{})},
		"the epoch 9999-12-31T00:00:00Z; want 1970 to": {Epoch: timestamppb.New(time.Date(9999, 12, 31,
			0, 0, 0, 0, time.UTC))},

		"attach is 7; want on demand (1) or explicit (2)": {Attach: 7},

		"kind is 7; want snowflake (1) or counter (2)": {Kind: 7},

		`"nodes" of 5 in a counter; want only after, max, order, prefix, dated, digits and zone`: {
			Kind: firnv1.Definition_KIND_COUNTER, Nodes: new(int64(5)),
		},
		"a maximum of 9 in a sequencer of the kind snowflake": {Max: 9},
		"max is -5; want the greatest number of a counter, or 0 for 9223372036854775807": {
			Kind: firnv1.Definition_KIND_COUNTER, Max: -5,
		},
		"a counter after 9 to at most 9; want a greater maximum": {
			Kind: firnv1.Definition_KIND_COUNTER, After: 9, Max: 9,
		},

		"after is -5; want an ID, or 0 for none": {After: -5},
		"IDs after 9223372036854775807":          {After: math.MaxInt64},
		"a count of 0 members; want at least 1":  {Allocation: &firnv1.Allocation{To: &firnv1.Allocation_Count{}}},
		"101 percent of the members; want 1 to 100": {
			Allocation: &firnv1.Allocation{To: &firnv1.Allocation_Percent{Percent: 101}},
		},
	} {
		if d, err := readDefinition(m); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v is %v, %v\nwant %s", m, d, err, says)
		}
	}
}
