package cluster

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// small sequencers with eight node IDs, the first of which is 6.
func reserving(t *testing.T) Value {
	t.Helper()
	v := must(t, Value{}, PrepareJoin{"a"})
	return must(t, v, CreateSequencer{Sequencer: "s", Definition: small(8, Allocation{}), Start: 6})
}

func reserved(v Value) map[string][]int64 {
	all := map[string][]int64{}
	s, _ := v.Sequencer("s")
	for r := range s.Reservations() {
		all[r.For] = r.Nodes
	}
	return all
}

func refusal(t *testing.T, v Value, c Command, want string) {
	t.Helper()
	if _, out := Apply(v, Entry{Position: v.position + 1, Command: c}); out.Result != Refused ||
		!strings.Contains(out.Why, want) {
		t.Errorf("%s %+v: %v %q, want a refusal with %q", c.Name(), c, out.Result, out.Why, want)
	}
}

// The highest node IDs that were never used are reserved first, then those that are the longest free.
func TestReserveTakesTheHighestNeverUsed(t *testing.T) {
	v := reserving(t)
	v = must(t, v, Attach{Sequencer: "s", Member: "a"})
	v = must(t, v, Decline{"s", "a", 6})
	v = must(t, v, Decline{"s", "a", 7})
	v = must(t, v, Reserve{"s", 0, Reserving{For: "two", Count: 2}})
	v = must(t, v, Reserve{"s", 0, Reserving{For: "five", Count: 5}})
	want := map[string][]int64{"two": {4, 5}, "five": {1, 2, 3, 6, 7}}
	s, _ := v.Sequencer("s")
	if have := reserved(v); !reflect.DeepEqual(have, want) || s.Free() != 0 || heldOf(s, "a") != 0 {
		t.Errorf("reserved are %v, %d are free, and a has %v; want %v", have, s.Free(), heldOf(s, "a"), want)
	}
	refusal(t, v, Reserve{"s", 0, Reserving{For: "more", Count: 1}}, "only 0 node IDs are free")
}

// What is kept for later is reserved first, in the order of its node IDs, and is gone with its last one.
func TestReserveTakesWhatIsForLater(t *testing.T) {
	v := must(t, reserving(t), Attach{Sequencer: "s", Member: "a"})
	v = must(t, v, Reserve{"s", 0, Reserving{For: Later, At: 7, Count: 4}})
	s, _ := v.Sequencer("s")
	first := *s.Reservation(Later)
	v = must(t, v, Reserve{"s", 0, Reserving{For: "one", Count: 1}})
	v = must(t, v, Reserve{"s", 0, Reserving{For: "named", Nodes: []int64{1, 4}}})
	want := map[string][]int64{Later: {3, 5}, "named": {1, 4}, "one": {7}}
	if s, _ = v.Sequencer("s"); !reflect.DeepEqual(reserved(v), want) || s.Free() != 2 {
		t.Errorf("reserved are %v, and %d are free; want %v", reserved(v), s.Free(), want)
	}
	if r := s.Reservation(Later); r.Since != first.Since || r.At != first.At ||
		!slices.Equal(first.Nodes, []int64{3, 4, 5, 7}) {
		t.Errorf("for later is %+v; it was %+v", r, first)
	}
	restored, err := DecodeCheckpoint(must2(EncodeCheckpoint(v)))
	if err != nil || !reflect.DeepEqual(reserved(restored), want) {
		t.Errorf("restored are %v, %v", reserved(restored), err)
	}
	for _, c := range []struct {
		command Command
		want    string
	}{
		{Move{"s", 5, "a"}, `the node ID 5 is reserved for "later"`},
		{Reserve{"s", 0, Reserving{For: Later, Count: 4}}, "2 node IDs are reserved for that, 3 to 5"},
		{Reserve{"s", 0, Reserving{For: "x", Count: 6}}, "only 4 node IDs are free"},
		{Reserve{"s", 0, Reserving{For: "x", Nodes: []int64{3, 7}}}, `the node ID 7 is reserved for "one"`},
		{DestroySequencer{"s", 0}, `2 of its node IDs are reserved for "later"; release them first`},
	} {
		refusal(t, v, c.command, c.want)
	}
	same := Entry{Position: v.position + 1, Command: Reserve{"s", 0, Reserving{For: "named", Nodes: []int64{1, 4}}}}
	if next, out := Apply(v, same); out.Result != Unchanged || !reflect.DeepEqual(reserved(next), want) {
		t.Errorf("again: %v, and reserved are %v", out, reserved(next))
	}
	v = must(t, v, Reserve{"s", 0, Reserving{For: "three", Count: 3}})
	if have := reserved(v); have[Later] != nil || !slices.Equal(have["three"], []int64{2, 3, 5}) {
		t.Errorf("after the last one for later: %v", have)
	}
	v = must(t, v, Reserve{"s", 0, Reserving{For: Later, Count: 1}})
	s, _ = v.Sequencer("s")
	v = must(t, v, Release{"s", 0, Later, s.Reservation(Later).Since})
	if s, _ = v.Sequencer("s"); s.Free() != 1 {
		t.Errorf("%d node IDs are free after the release; want 1", s.Free())
	}
}

func TestReservedNodeIDsAreKept(t *testing.T) {
	v := reserving(t)
	v = must(t, v, Reserve{"s", 0, Reserving{For: "warehouse", Nodes: []int64{6, 7}}})
	v = must(t, v, Attach{Sequencer: "s", Member: "a"})
	for _, c := range []struct {
		command Command
		want    string
	}{
		{Move{"s", 7, "a"}, `the node ID 7 is reserved for "warehouse"`},
		{Reserve{"s", 0, Reserving{For: "warehouse", Count: 1}}, "2 node IDs are reserved for that, 6 to 7"},
		{Reserve{"s", 0, Reserving{For: "warehouse", Nodes: []int64{5, 6, 7}}}, "2 node IDs are reserved for that"},
		{Reserve{"s", 0, Reserving{For: "other", Nodes: []int64{7}}}, `the node ID 7 is reserved for "warehouse"`},
		{Reserve{"s", 0, Reserving{For: "other", Nodes: []int64{0}}}, "the member a has the node ID 0"},
		{Reserve{"s", 0, Reserving{For: "other", Nodes: []int64{1, 8}}}, "there is no node ID 8; want 0 to 7"},
		{Reserve{"none", 0, Reserving{For: "other", Count: 1}}, noSequencer},
		{Reserve{"s", 1, Reserving{For: "other", Count: 1}}, otherGeneration},
		{Release{"s", 1, "warehouse", 0}, otherGeneration},
		{DestroySequencer{"s", 0}, `2 of its node IDs are reserved for "warehouse"; release them first`},
	} {
		refusal(t, v, c.command, c.want)
	}
	for _, c := range []Command{
		Reserve{"s", 0, Reserving{For: "warehouse", Count: 2}},
		Reserve{"s", 0, Reserving{For: "warehouse", Nodes: []int64{6, 7}}},
		Release{"s", 0, "other", 0},
		Release{"s", 0, "warehouse", 2},
	} {
		if next, out := Apply(v, Entry{Position: v.position + 1, Command: c}); out != unchanged ||
			!reflect.DeepEqual(reserved(next), reserved(v)) {
			t.Errorf("%s %+v: %v, and reserved are %v", c.Name(), c, out, reserved(next))
		}
	}
	v = restore(t, checkpoint(t, v))
	s, _ := v.Sequencer("s")
	v = must(t, v, Release{"s", 0, "warehouse", s.Reservation("warehouse").Since})
	must(t, must(t, v, Move{"s", 7, "a"}), DestroySequencer{"s", 0})
}

// A member that waits gets a node ID that is released.
func TestReleasedNodeIDsAreGiven(t *testing.T) {
	v := reserving(t)
	v = must(t, v, Reserve{"s", 0, Reserving{For: "all", Count: 8}})
	v = must(t, v, Attach{Sequencer: "s", Member: "a"})
	if s, _ := v.Sequencer("s"); !slices.Equal(s.Waiting(), []string{"a"}) {
		t.Fatalf("waiting are %v", s.Waiting())
	}
	s, _ := v.Sequencer("s")
	v = must(t, v, Release{"s", 0, "all", s.Reservation("all").Since})
	if s, _ := v.Sequencer("s"); heldOf(s, "a") == noNode || s.Free() != 7 {
		t.Errorf("a has %v, and %d are free", heldOf(s, "a"), s.Free())
	}
}

func TestClaimedSequencersReserveNothing(t *testing.T) {
	v := must(t, Value{}, CreateSequencer{Sequencer: "c", Definition: Definition{Kind: Counter}})
	refusal(t, v, Reserve{"c", 0, Reserving{For: "x", Count: 1}}, noNodeIDs)
	refusal(t, v, Release{Sequencer: "c", For: "x"}, noNodeIDs)
}

func TestWrongReserves(t *testing.T) {
	for _, c := range []struct {
		command Command
		want    string
	}{
		{Reserve{"s", 0, Reserving{For: "x"}}, `a "count" of 0; want 1 to 1024`},
		{Reserve{"s", 0, Reserving{For: "x", Count: 1025}}, "1025"},
		{Reserve{"s", 0, Reserving{For: "x", Count: 1, Nodes: []int64{0}}}, `"count" beside "nodes"`},
		{Reserve{"s", 0, Reserving{For: "x", Nodes: []int64{-1, 3}}}, "[-1 3]"},
		{Reserve{"s", 0, Reserving{For: "x", Nodes: []int64{3, 2}}}, "want 1 to 1024 rising node IDs"},
		{Reserve{"s", 0, Reserving{For: "x", Nodes: []int64{}}}, "[]"},
		{Reserve{"s", 0, Reserving{For: "x", At: -1, Count: 1}}, `"at" is -1`},
		{Reserve{"s", 0, Reserving{Count: 1}}, `"for" is missing`},
		{Reserve{"s", 0, Reserving{For: "a\x1b[2J", Count: 1}}, "want no control characters"},
		{Reserve{"S", 0, Reserving{For: "x", Count: 1}}, `"S"`},
		{Release{Sequencer: "s"}, `"for" is missing`},
		{Release{Sequencer: "s", For: strings.Repeat("x", 101)}, "1 to 100 bytes"},
		{Release{Sequencer: "s", For: "x", Since: -1}, "position -1"},
	} {
		if err := c.command.validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: %v, want %q", c.command.Name(), c.command, err, c.want)
		}
	}
}

func TestDamagedReservationsAreRefused(t *testing.T) {
	v := must(t, reserving(t), Reserve{"s", 0, Reserving{For: "x", Count: 2}})
	data := string(must2(EncodeCheckpoint(v)))
	for was, is := range map[string]string{
		`"since":3`:                   `"since":4`,
		`"x","since":3`:               `"x","at":-1,"since":3`,
		`"nodes":[6,7]`:               `"nodes":[7,6]`,
		`"nodes":[6,7]}`:              `"nodes":[6]}`,
		`"reserved":[`:                `"reserved":[{"for":"x","since":3,"nodes":[6]},`,
		`"for":"x"`:                   `"for":""`,
		`"wanting":null,"fresh":[[0,`: `"wanting":null,"fresh":[[1,`,
	} {
		damaged := strings.Replace(data, was, is, 1)
		if _, err := DecodeCheckpoint([]byte(damaged)); err == nil || damaged == data {
			t.Errorf("%s to %s: %v in %s", was, is, err, damaged)
		}
	}
}

func must2[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

// What is reserved from the beginning is reserved before any member has a node ID.
func TestReservedFromTheBeginning(t *testing.T) {
	v := must(t, Value{}, PrepareJoin{"a"})
	c := CreateSequencer{
		Sequencer: "s", Definition: small(4, Allocation{}), Start: 3,
		Reserve: []Reserving{{For: "import", Count: 2}, {For: "warehouse", Nodes: []int64{0}}},
	}
	v = must(t, must(t, v, c), Attach{Sequencer: "s", Member: "a"})
	s, _ := v.Sequencer("s")
	if want := map[string][]int64{"import": {2, 3}, "warehouse": {0}}; !reflect.DeepEqual(reserved(v), want) ||
		heldOf(s, "a") != 1 {
		t.Errorf("reserved are %v, and a has %v; want %v", reserved(v), heldOf(s, "a"), want)
	}
	c.Sequencer = "other"
	c.Reserve = []Reserving{{For: "x", Count: 1}, {For: "x", Count: 1}}
	refusal(t, v, c, `two reservations are for "x"`)
	c.Reserve = []Reserving{{For: "x", Count: 5}}
	refusal(t, v, c, "only 4 node IDs are free")
	c.Reserve = []Reserving{{For: "x"}}
	if err := c.validate(); err == nil {
		t.Error("a reservation of nothing is valid")
	}
	c.Reserve, c.Start, c.Definition = []Reserving{{For: "x", Count: 1}}, 0, Definition{Kind: Counter}
	if err := c.validate(); err == nil || !strings.Contains(err.Error(), noNodeIDs) {
		t.Errorf("a counter that reserves node IDs: %v", err)
	}
}
