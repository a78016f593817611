package sequencer

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

func TestDefinitionOfACounter(t *testing.T) {
	for text, want := range map[string]struct {
		Definition
		shown string
	}{
		`{"kind":"counter"}`:             {Definition{Kind: Counter}, "counter"},
		`{"kind":"counter","after":"7"}`: {Definition{Kind: Counter, After: 7}, "counter, after 7"},
		`{"kind":"counter","max":"9","order":"strict","prefix":"inv"}`: {
			Definition{Kind: Counter, Max: 9, Order: OrderStrict, Prefix: "inv"},
			"counter, to 9, order strict, prefix inv",
		},
		`{"kind":"counter","after":"8","max":"9"}`: {
			Definition{Kind: Counter, After: 8, Max: 9},
			"counter, after 8, to 9",
		},
		`{"kind":"counter","after":9223372036854775806}`: {
			Definition{Kind: Counter, After: firn.MaxID - 1},
			"counter, after 9223372036854775806",
		},
	} {
		var d, back Definition
		if err := json.Unmarshal([]byte(text), &d); err != nil || d != want.Definition || d.String() != want.shown {
			t.Errorf("%s is %v %v, want %+v", text, d, err, want)
		}
		data, err := json.Marshal(d)
		if err == nil {
			err = json.Unmarshal(data, &back)
		}
		if err != nil || back != d {
			t.Errorf("%s is read as %+v %v, want %+v", data, back, err, d)
		}
		if warning, err := d.Check(time.Time{}); warning != "" || err != nil {
			t.Errorf("%s at any time: %q %v", text, warning, err)
		}
	}
	data, err := json.Marshal(Definition{Kind: Counter, After: 8, Max: 9, Prefix: "inv"})
	if want := `{"kind":"counter","after":"8","max":"9","prefix":"inv"}`; err != nil || string(data) != want {
		t.Errorf("%s %v, want %s", data, err, want)
	}
	if data, err = json.Marshal(Define(firn.Default)); err != nil || strings.Contains(string(data), "kind\":\"s") ||
		strings.Contains(string(data), "max") {
		t.Errorf("%s %v, want it without a kind and a maximum", data, err)
	}
}

func TestACounterHasNoNodeIDsAndNoTime(t *testing.T) {
	d := Definition{Kind: Counter}
	if d.Capacity() != 0 || d.IDLayout() != (firn.Layout{}) || d.Last() != firn.MaxID {
		t.Errorf("%d node IDs, layout %v, to %d", d.Capacity(), d.IDLayout(), d.Last())
	}
	if nodes, err := (Region{}).Nodes(d); err != nil || nodes.Size() != 0 || nodes.Holds(0) {
		t.Errorf("node IDs %v %v, want none", nodes, err)
	}
	if at, err := d.Above(7); err == nil {
		t.Errorf("numbers above 7 from %v on", at)
	}
	const why = "a counter or strict order in the region 1/2, which would give the IDs of the others; " +
		"want a cluster without regions"
	if _, err := (Region{Number: 1, Of: 2}).Nodes(d); err == nil || err.Error() != why {
		t.Errorf("%v, want %s", err, why)
	}
	few := Definition{Kind: Counter, Max: 9}
	if all := d.Differences(few); len(all) != 1 ||
		all[0].String() != "max: 9223372036854775807 is in force, 9 is wanted" {
		t.Errorf("%v", all)
	}
	if all := d.Differences(Define(firn.Default)); len(all) != 1 ||
		all[0].String() != "kind: counter is in force, snowflake is wanted" {
		t.Errorf("%v", all)
	}
	// What shows sequencers may meet a counter that a newer node has created.
	l := d.IDLayout()
	_, _, _ = l.String(), l.Rate(), l.Lifetime()
}

func TestErrorsOfKindsNameTheValue(t *testing.T) {
	const noMax = "a maximum of 9 in a sequencer of the kind snowflake; only a counter has one"
	const only = " in a counter; want only after, max, order, prefix, dated, digits and zone: its numbers have no " +
		"layout and no node ID"
	for text, why := range map[string]string{
		`{"kind":"count"}`:                                           `the kind "count"; want snowflake or counter`,
		`{"max":"9"}`:                                                noMax,
		`{"kind":"snowflake","max":"9"}`:                             "a maximum of 9",
		`{"kind":"counter","after":"9","max":"9"}`:                   "a counter after 9 to at most 9; want a greater",
		`{"kind":"counter","after":9223372036854775807}`:             "a counter after 9223372036854775807 to at most",
		`{"kind":"counter","prefix":"No"}`:                           `the prefix "No"`,
		`{"kind":"counter","nodes":2}`:                               `"nodes" of 2` + only,
		`{"kind":"counter","layout":"twitter"}`:                      `"epoch" of 2010-11-04T01:42:54.657Z` + only,
		`{"kind":"counter","tick":"1ms"}`:                            `"tick" of 1ms` + only,
		`{"kind":"counter","time_bits":41}`:                          `"time_bits" of 41` + only,
		`{"kind":"counter","sequence_bits":5}`:                       `"sequence_bits" of 5` + only,
		`{"kind":"counter","node_lowest":true}`:                      `"node_lowest" of true` + only,
		`{"kind":"counter","attach":"explicit"}`:                     `"attach" of explicit` + only,
		`{"kind":"counter","window":"5s"}`:                           `"window" of 5s` + only,
		`{"kind":"counter","scattered":true}`:                        `"scattered" of true` + only,
		`{"kind":"counter","random_start":true}`:                     `"random_start" of true` + only,
		`{"kind":"counter","step":2}`:                                `"step"`,
		`{"kind":"counter","allocation":{"kind":"count","count":3}}`: `"allocation" of 3 members` + only,
	} {
		var d Definition
		if err := d.UnmarshalJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v; want %q", text, err, why)
		}
	}
	strict := Define(firn.Default)
	strict.Order = OrderStrict
	for _, d := range []Definition{strict, {Kind: 2}, {Kind: Counter, After: -1}, {Kind: Counter, Max: -1}} {
		if err := d.Validate(); err == nil {
			t.Errorf("%+v is valid", d)
		}
	}
}
