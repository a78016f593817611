package plan

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

var three = []string{"a", "b", "c"}

func machine(address string, s State, cluster string) Machine {
	return Machine{Address: address, Life: "life of " + address, Disk: Disk{s, cluster}, List: three}
}

// edit returns a machine that says something else, too.
func (m Machine) edit(change func(*Machine)) Machine {
	change(&m)
	return m
}

func runs(record ...string) func(*Machine) {
	return func(m *Machine) { m.Running, m.Record = true, record }
}

func member(id uint64) func(*Machine) {
	return func(m *Machine) { m.Member = id }
}

func list(machines ...string) func(*Machine) {
	return func(m *Machine) { m.List = machines }
}

func TestDecide(t *testing.T) {
	for _, test := range []struct {
		name string
		me   Machine
		said []Machine
		do   Do
		of   string // the cluster
		why  string // a part of it
		wait string // for whom
	}{
		{
			"all are empty: the lowest address founds", machine("a", Empty, ""),
			[]Machine{machine("b", Empty, ""), machine("c", Promised, "x")},
			Propose, "new", "all machines answer", "",
		},
		{
			"and the others wait for it", machine("b", Empty, ""),
			[]Machine{machine("a", Empty, ""), machine("c", Empty, "")},
			Wait, "", "waiting for a", "a",
		},
		{
			"one is silent", machine("a", Empty, ""),
			[]Machine{machine("b", Empty, "")},
			Wait, "",
			"a new one needs all machines", "c",
		},
		{
			"one has data", machine("a", Empty, ""),
			[]Machine{machine("b", Started, "x"), machine("c", Formed, "x")},
			Wait, "", "b has data of cluster x: waiting until a majority", "",
		},
		{"one has data, and the others have lost it", machine("a", Empty, ""), []Machine{
			machine("b", Started, "x"),
			machine("c", Lost, "x"),
		}, Wait, "", "a majority of the machines has lost it", ""},
		{
			"one has data, and saw that of the others", machine("a", Empty, ""),
			[]Machine{machine("b", Started, "x").edit(func(m *Machine) {
				m.Saw = map[string]uint64{"a": 7, "c": 7}
			}), machine("c", Empty, "")},
			Wait, "", "a majority of the machines has lost it", "",
		},
		{
			"one has data, and knows that the others had some", machine("a", Empty, ""),
			[]Machine{machine("b", Started, "x").edit(func(m *Machine) {
				m.Members = []Member{{Address: "a", Started: true}, {Address: "b", Started: true}}
			}), machine("c", Empty, "")},
			Wait, "", "a majority of the machines has lost it", "",
		},
		{
			"one has data, and is about to grow", machine("a", Empty, ""),
			[]Machine{machine("b", Started, "x").edit(func(m *Machine) {
				m.Members = []Member{{Address: "a"}, {Address: "b", Started: true}}
			}), machine("c", Empty, "")},
			Wait, "", "b has data of cluster x: waiting until a majority", "",
		},
		{"one has data that the others never had", machine("a", Empty, ""), []Machine{
			machine("b", Started, "x"),
			machine("c", Empty, ""),
		}, Wait, "", "b has data of cluster x: waiting until a majority", ""},
		{
			"one has lost its data, and nobody has any", machine("a", Empty, ""),
			[]Machine{machine("b", Lost, "x"), machine("c", Empty, "")},
			Wait, "", "b was part of cluster x", "b",
		},
		{"one has another list", machine("a", Empty, ""), []Machine{machine("b", Empty, ""), machine("c", Empty, "").
			edit(list("b", "c", "d"))}, Wait, "", "c has another list of machines (b, c, d)", "c"},
		{"the order of a list is nothing", machine("a", Empty, ""), []Machine{
			machine("b", Empty, ""),
			machine("c", Empty, "").edit(list("c", "b", "a")),
		}, Propose, "new", "", ""},
		{"a list of one", machine("a", Empty, "").edit(list("a")), nil, Propose, "new", "", ""},
		{"a list of one, with data", machine("a", Started, "x").edit(list("a")), nil, Run, "x", "", ""},
		{
			"what was promised is there", machine("c", Promised, "x"),
			[]Machine{machine("b", Formed, "x")},
			Follow, "x",
			"b has formed cluster x", "",
		},
		{
			"something else is there", machine("c", Promised, "y"),
			[]Machine{machine("b", Formed, "x")},
			Wait, "",
			"b has data of cluster x", "a",
		},

		{
			"nobody says whether the data is the latest", machine("a", Started, "x"), nil, Wait, "",
			"one other machine must say first", "b, c",
		},
		{"one says so", machine("a", Started, "x"), []Machine{machine("b", Empty, "")}, Run, "x", "", ""},
		{"data that is new", machine("a", Formed, "x"), []Machine{machine("b", Promised, "x")}, Run, "x", "", ""},
		{
			"data that was set back", machine("a", Started, "x").edit(func(m *Machine) { m.Index = 4 }),
			[]Machine{machine("b", Started, "x").edit(func(m *Machine) { m.Saw = map[string]uint64{"a": 7} })},
			SetBack, "x", "ends at entry 4, and b knows that this machine had entry 7", "",
		},
		{
			"what was seen in another cluster is nothing", machine("a", Started, "x").edit(func(m *Machine) {
				m.Index = 4
			}),
			[]Machine{machine("b", Lost, "y").edit(func(m *Machine) { m.Saw = map[string]uint64{"a": 7} })},
			Run, "x", "", "",
		},
		{
			"data of another cluster", machine("a", Started, "x"),
			[]Machine{machine("b", Started, "y")},
			Refuse, "",
			"is of cluster x, and b has data of cluster y", "",
		},
		{
			"data of another cluster, at a third one", machine("a", Started, "x"),
			[]Machine{machine("b", Started, "y"), machine("c", Started, "x")},
			Run, "x", "", "",
		},
		{
			"data of a cluster, and a log of a quorum of one", machine("a", Started, "x"),
			[]Machine{machine("b", Alone, "")},
			Refuse, "", "b has data of a quorum of one", "",
		},
		{
			"the same, from the other side", machine("b", Alone, ""),
			[]Machine{machine("a", Started, "x"), machine("c", Empty, "")},
			Refuse, "", "a has data of cluster x", "",
		},

		{
			"a quorum of one", machine("b", Alone, ""),
			[]Machine{machine("a", Empty, ""), machine("c", Empty, "")},
			Run,
			"new", "becomes cluster new", "",
		},
		{"a quorum of one, and a promise that may be kept", machine("b", Alone, ""), []Machine{
			machine("a", Empty, ""),
			machine("c", Promised, "x"),
		}, Wait, "", "c has promised to be part of cluster x", "c"},
		{
			"a quorum of one, and a silent one", machine("b", Alone, ""),
			[]Machine{machine("a", Empty, "")},
			Wait, "", "", "c",
		},
		{
			"two quorums of one", machine("b", Alone, ""),
			[]Machine{machine("a", Alone, "")},
			Refuse, "",
			"a has data of a quorum of one", "",
		},
		{
			"nobody founds beside a quorum of one", machine("a", Empty, ""),
			[]Machine{machine("b", Alone, ""), machine("c", Empty, "")},
			Wait, "", "b has data of a quorum of one", "",
		},

		{
			"a copy of another machine's directory", machine("a", Started, "x").edit(member(7)),
			[]Machine{
				machine("b", Started, "x").edit(member(7)).edit(runs("b", "c")),
				machine("c", Started, "x").edit(member(8)),
			},
			Refuse, "", "this machine and b are the same member 7 of cluster x", "",
		},
		{
			"another member of the cluster", machine("a", Started, "x").edit(member(7)),
			[]Machine{machine("b", Started, "x").edit(member(8))},
			Run, "x", "", "",
		},
		{
			"the same member, of a log that was set aside", machine("a", Started, "x").edit(member(7)),
			[]Machine{machine("b", Lost, "x")},
			Run, "x", "", "",
		},
		{
			"two copies of a restored directory", machine("a", Alone, "").edit(member(7)),
			[]Machine{machine("b", Alone, "").edit(member(7)), machine("c", Empty, "")},
			Refuse, "",
			"data of a quorum of one, or of a backup, and b has", "",
		},
		{
			"another process at the same address", machine("a", Started, "x"),
			[]Machine{machine("a", Started, "x").edit(func(m *Machine) {
				m.Life = "another"
			}), machine("b", Started, "x"), machine("c", Started, "x")},
			Wait, "", "another process answers at a", "a",
		},
		{
			"another process at the address of an empty machine", machine("a", Empty, ""),
			[]Machine{machine("a", Empty, "").edit(func(m *Machine) {
				m.Life = "another"
			}), machine("b", Empty, ""), machine("c", Empty, "")},
			Wait, "", "another process answers at a", "a",
		},

		{
			"an emptied one", machine("a", Empty, ""),
			[]Machine{machine("b", Started, "x").edit(runs("a", "b", "c"))},
			Join, "x", "", "",
		},
		{
			"one whose log is gone", machine("a", Lost, "x"),
			[]Machine{machine("b", Started, "x").edit(runs("a", "b", "c"))},
			Join, "x", "", "",
		},
		{
			"one whose log is gone waits for a majority", machine("a", Lost, "x"),
			[]Machine{machine("b", Started, "x")},
			Wait, "", "is gone here", "c",
		},
		{
			"one whose log is gone, and another cluster", machine("a", Lost, "x"),
			[]Machine{machine("b", Started, "y").edit(runs("a", "b", "c"))},
			Refuse, "", "b has data of cluster y", "",
		},
		{
			"a cluster grows", machine("c", Empty, ""),
			[]Machine{machine("a", Started, "x").edit(runs("a"))},
			Join, "x", "", "",
		},
		{
			"a cluster grows, and one had promised another", machine("c", Promised, "y"),
			[]Machine{machine("a", Started, "x").edit(runs("a"))},
			Join, "x", "", "",
		},
		{"a cluster does not grow by a list of one's own", machine("c", Empty, ""), []Machine{machine("a", Started,
			"x").edit(runs("a")).edit(list("a"))}, Client, "x", "is kept by a, and not by this machine", ""},
		{
			"replaced while it was down", machine("c", Started, "x"),
			[]Machine{machine("a", Started, "x").edit(runs("a", "b", "d"))},
			Client, "x", "is kept by a, b, d", "",
		},
		{
			"replaced, and a member still", machine("c", Started, "x"),
			[]Machine{machine("a", Started, "x").edit(runs("a", "b", "d")).edit(func(m *Machine) {
				m.Members = []Member{{Address: "c"}}
			})},
			Run, "x", "", "",
		},
		{
			"replaced before it began", machine("c", Promised, "x"),
			[]Machine{machine("a", Started, "x").edit(runs("a", "b", "d"))},
			Client, "x", "", "",
		},
		{
			"one that leads what has no majority knows no record", machine("c", Started, "x"),
			[]Machine{machine("a", Started, "x")},
			Run, "x", "", "",
		},
		{"removed", machine("c", Removed, "x"), []Machine{machine("a", Started, "x")}, Client, "x", "was removed", ""},
		{
			"removed, and wanted again", machine("c", Removed, "x"),
			[]Machine{machine("a", Started, "x").edit(runs("a", "b", "c"))},
			Join, "x", "", "",
		},
	} {
		said := map[string]Machine{test.me.Address: test.me}
		for _, m := range test.said {
			said[m.Address] = m
		}
		d := Decide(test.me, said, "new")
		if d.Do != test.do || d.Cluster != test.of || !strings.Contains(d.Why, test.why) || d.Why == "" ||
			strings.Join(d.For, ", ") != test.wait {
			t.Errorf("%s:\n%v %q, for %v: %s\nwant %v %q, for %s: %s", test.name, d.Do, d.Cluster, d.For, d.Why,
				test.do, test.of, test.wait, test.why)
		}
	}
}

func TestAccept(t *testing.T) {
	empty, promised := machine("a", Empty, ""), machine("a", Promised, "x")
	again := empty.edit(func(m *Machine) { m.Life = "another" })
	for _, test := range []struct {
		name    string
		me      Machine
		seen    Machine
		accepts bool
	}{
		{"an empty disk", empty, empty, true},
		{"a promise that was seen", promised, promised, true},
		{"a promise that was not", promised, empty, false},
		{"another life", again, empty, false},
		{"data", machine("a", Formed, "x"), machine("a", Formed, "x"), false},
		{"data of a quorum of one", machine("a", Alone, ""), machine("a", Alone, ""), false},
		{"a log that is gone", machine("a", Lost, "x"), machine("a", Lost, "x"), false},
	} {
		d, ok := Accept(test.me, OfferTo(test.seen, "new"))
		want := test.me.Disk
		if test.accepts {
			want = Disk{Promised, "new"}
		}
		if ok != test.accepts || d != want {
			t.Errorf("%s: %v, %v, want %v, %v", test.name, d, ok, want, test.accepts)
		}
	}
}

func TestStatesHaveNames(t *testing.T) {
	for s := Empty; s <= Alone; s++ {
		d := Disk{State: s}
		text, err := json.Marshal(d)
		var again Disk
		if err != nil || json.Unmarshal(text, &again) != nil || again != d {
			t.Errorf("%v: %s, %v, and again %v", s, text, err, again)
		}
	}
	var s State
	if err := s.UnmarshalText([]byte("full")); err == nil || !strings.Contains(err.Error(), `"full"`) {
		t.Errorf("an unknown state: %v", err)
	}
	if slices.Contains(states[:], "") {
		t.Error("a state has no name")
	}
}
