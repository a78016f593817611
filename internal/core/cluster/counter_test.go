package cluster

import (
	"strings"
	"testing"
	"time"
)

// TestACounterHasNothingToDeal is about a counter in the log: it is created and destroyed, nobody attaches to it, and a
// checkpoint keeps it.
func TestACounterHasNothingToDeal(t *testing.T) {
	d := Definition{Kind: Counter, After: 7, Max: 9, Prefix: "inv"}
	create := CreateSequencer{Sequencer: "invoices", Definition: d, SolePrefix: true}
	v := must(t, joined(t, Value{}, "a"), create)
	for _, at := range []Value{v, restore(t, checkpoint(t, v))} {
		s, ok := at.Sequencer("invoices")
		if !ok || s.Definition() != d || s.NodeIDs().Size() != 0 || s.Free() != 0 || len(at.Lacking("invoices")) > 0 {
			t.Errorf("%v: %+v with the node IDs %v", at, s.Definition(), s.NodeIDs())
		}
		for _, c := range []Command{
			Attach{Sequencer: "invoices", Member: "a"},
			Detach{"invoices", "a"},
			Decline{"invoices", "a", 0},
			Drain{"invoices", "a"},
			Undrain{"invoices", "a"},
			Move{"invoices", 0, "a"},
			Allocate{"invoices", 0, Allocation{Kind: AllocateCount, Count: 1}},
			SetPolicy{[]Share{{"invoices", 0}}},
		} {
			next, out := Apply(at, Entry{Position: at.position + 1, Command: c})
			if out.Result != Refused || out.Why != noNodeIDs {
				t.Errorf("%s: %+v", c.Name(), out)
			}
			next.position, next.entries = at.position, at.entries
			if string(checkpoint(t, next)) != string(checkpoint(t, at)) {
				t.Errorf("%s changes %v to %v", c.Name(), at, next)
			}
		}
		if _, out := Apply(at, Entry{Position: at.position + 1, Command: create}); out.Result != Unchanged {
			t.Errorf("created again: %+v", out)
		}
		must(t, at, DestroySequencer{"invoices", s.Created()})
	}
	refuses(t, string(checkpoint(t, v)), []damage{
		{`"freed":null`, `"freed":[0]`, "node ID 0"},
		{`"fresh":null`, `"fresh":[[0,0]]`, "fresh node IDs 0 to 0"},
		{`"freed":null`, `"freed":null,"start":1`, "want no node IDs"},
		{`"freed":null`, `"freed":null,"drained":["a"]`, "want no node IDs"},
		{`"freed":null`, `"freed":null,"allocation":{"kind":"count","count":2}`, "want no node IDs"},
		{`"wanting":null`, `"wanting":[{"member":"a","since":2}]`, "want no node IDs"},
		{`"sequencers"`, `"policy":[{"sequencer":"invoices"}],"sequencers"`, "with node IDs"},
		{`"max":"9"`, `"max":"6"`, "a counter after 7 to at most 6"},
	})
}

func TestTheCommandThatCreatesACounter(t *testing.T) {
	d := Definition{Kind: Counter}
	data, err := Encode(CreateSequencer{Sequencer: "invoices", Definition: d}, time.Time{})
	const want = `{"version":2,"command":"create-sequencer",` +
		`"args":{"sequencer":"invoices","definition":{"kind":"counter"}}}`
	if err != nil || string(data) != want {
		t.Errorf("%s %v, want %s", data, err, want)
	}
	if e, err := Decode(1, data); err != nil || e.Command.(CreateSequencer).Definition != d {
		t.Errorf("%+v %v", e, err)
	}
	for why, c := range map[string]CreateSequencer{
		"IDs are claimed, and it starts at the node ID 3; want 0, as it has none": {Start: 3},
		"a counter or strict order in the region 0/2":                             {Region: Region{Of: 2}},
	} {
		c.Sequencer, c.Definition = "invoices", d
		if err := c.validate(); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%+v: %v, want %s", c, err, why)
		}
	}
}
