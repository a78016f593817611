package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/firn-id/firn"
)

// sample is a value in which there is something of everything.
func sample(t testing.TB) Value {
	t.Helper()
	var v Value
	for i, c := range []Command{
		PrepareJoin{"a"},
		PrepareJoin{"b"},
		NotifyWatchers{"b"},
		AcceptJoin{"b"},
		PrepareJoin{"c"},
		NotifyWatchers{"c"},
		AcceptJoin{"c"},
		CreateSequencer{Sequencer: "orders", Definition: small(2, Allocation{})},
		Attach{Sequencer: "orders", Member: "b"},
		Attach{Sequencer: "orders", Member: "c"},
		Attach{Sequencer: "orders", Member: "a", Nodes: &Range{From: 1, To: 1}},
		CreateSequencer{Sequencer: "spare", Definition: small(1024, Allocation{Kind: AllocatePercent, Percent: 50})},
		Attach{Sequencer: "spare", Member: "a"},
		Attach{Sequencer: "spare", Member: "b", Nodes: &Range{From: 100, To: 200}},
		Detach{"spare", "a"},
		PrepareJoin{"d"},
		NotifyWatchers{"d"},
		Drain{"spare", "c"},
		Drain{"spare", "a"},
		Allocate{"spare", 0, Allocation{Kind: AllocateCount, Count: 7}},
		Expel{"d", "a"},
		PrepareJoin{"e"},
		Expel{"e", "a"},
		PrepareJoin{"f"},
		NotifyWatchers{"f"},
	} {
		var out Outcome
		if v, out = Apply(v, Entry{Position: int64(3 * i), Command: c}); out.Result != Applied {
			t.Fatalf("%s %+v: %v %s", c.Name(), c, out.Result, out.Why)
		}
	}
	return v
}

func TestCheckpointIsAsDocumented(t *testing.T) {
	v := sample(t)
	const want = `ring a>b>c; f accepted at a; orders 0:b 1:c, waiting a; spare 100:b, drained a c, for 7 members; ` +
		`expelled d e`
	if v.String() != want {
		t.Fatalf("have %s\nwant %s", v, want)
	}
	if back := restore(t, checkpoint(t, v)); back.String() != want || back.Position() != v.Position() ||
		back.Entries() != 25 {
		t.Errorf("have %s at %d after %d", back, back.Position(), back.Entries())
	}
}

// damage replaces a part of a checkpoint.
type damage struct{ old, change, why string } // why: part of the error; empty: it stays readable

// refuses demands that checkpoints with such damages are refused.
func refuses(t *testing.T, data string, damages []damage) {
	t.Helper()
	for _, c := range damages {
		damaged := strings.Replace(data, c.old, c.change, 1)
		if damaged == data {
			t.Errorf("there is no %s in %s", c.old, data)
			continue
		}
		_, err := DecodeCheckpoint([]byte(damaged))
		var unreadable *UnreadableError
		switch {
		case c.why == "" && err != nil:
			t.Errorf("%s to %s: %v", c.old, c.change, err)
		case c.why != "" && (!errors.As(err, &unreadable) || !strings.Contains(err.Error(), c.why)):
			t.Errorf("%s to %s: %v, want an UnreadableError with %q", c.old, c.change, err, c.why)
		}
	}
}

func TestDamagedCheckpointIsRefused(t *testing.T) {
	data := string(checkpoint(t, sample(t)))
	refuses(t, data, []damage{
		{`"version":2`, `"version":3`, "version 3"},
		{`"version":2`, `"vers":2`, "version 0"},
		{`"entries"`, `"entrees"`, "entrees"},
		{`"position":72`, `"position":-1`, "position -1"},
		{`"entries":25`, `"entries":-1`, "-1 entries"},
		{`"id":"b"`, `"id":"a"`, "in the ring twice"},
		{`"id":"b"`, `"id":""`, "missing"},
		{`"joined":9`, `"joined":0`, "joined at 0"},
		{`"joined":9`, `"joined":73`, "joined at 73"},
		{`"joined":9`, `"joined":-1`, "joined at -1"},
		{`"joiner":"f"`, `"joiner":"a"`, "the join of"},
		{`"joiner":"f"`, `"joiner":""`, "missing"},
		{`"target":"a"`, `"target":"x"`, `at "x"`},
		{`"orders":{`, `"Orders!":{`, "Orders!"},
		{`"nodes":2,`, ``, "want 1024"},
		{`"created":`, `"created":-`, "created at -"},
		{`"created":`, `"created":1000`, "created at 1000"},
		{`"nodes":2,`, `"nodes":4,`, "are free, held or reserved"},
		{`"nodes":2,`, `"nodes":1,`, "node ID 1"},
		{`"kind":"percent","percent":50`, `"kind":"percent","percent":1000`, "1000 percent"},
		{`"kind":"percent","percent":50`, `"kind":"count","count":2`, ""}, // that would be right, too
		{`"kind":"all"`, `"kind":"count","count":1`, "first in line"},
		{
			`"member":"b","since":24,"node":0`, `"member":"b","since":24`,
			"1 node IDs are free, held or reserved; want 2",
		},
		{`"member":"b","since":24`, `"member":"x","since":24`, `attach of "x"`},
		{`"member":"b","since":24`, `"member":"c","since":24`, `attach of "c"`},
		{`"since":27`, `"since":24`, `attach of "c"`},
		{`"since":30`, `"since":73`, `attach of "a"`},
		{`"from":1,"to":1`, `"from":1`, `attach of "a"`},
		{`"from":1,"to":1`, `"from":1,"to":0`, `attach of "a"`},
		{`"from":1,"to":1`, `"from":-1,"to":1`, `attach of "a"`},
		{`"from":100`, `"from":101`, `attach of "b"`},
		{`"node":0`, `"node":2`, "node ID 2"},
		{`"node":0`, `"node":-1`, "node ID -1"},
		{`"node":0`, `"node":1`, "node ID 1"},
		{`"fresh":[[1,99]`, `"fresh":[[99,1]`, "99 to 1"},
		{`"fresh":[[1,99]`, `"fresh":[[-1,99]`, "-1 to 99"},
		{`,[101,1023]`, `,[101,1024]`, "101 to 1024"},
		{`,[101,1023]`, `,[100,1023]`, "100 to 1023"},
		{`"freed":[0]`, `"freed":[0,0]`, "node ID 0"},
		{`"freed":[0]`, `"freed":[]`, "are free, held or reserved"},
		{`"kind":"count","count":7`, `"kind":"count"`, "count of 0"},
		{`"drained":["a"`, `"drained":["x"`, `"x" is drained`},
		{`"drained":["a"`, `"drained":["b"`, `"b" is drained`},
		{`"drained":["a"`, `"drained":["c"`, `"c" is drained`},
		{`"id":"d"`, `"id":""`, "missing"},
		{`"id":"d"`, `"id":"a"`, `"a" expelled`},
		{`"id":"d"`, `"id":"f"`, `"f" expelled`},
		{`"id":"d"`, `"id":"e"`, `"e" expelled`},
		{`"at":60`, `"at":66`, `"e" expelled`},
		{`"at":60`, `"at":-1`, `"d" expelled at -1`},
		{`"at":66`, `"at":73`, `"e" expelled at 73`},
		{`{"version"`, `{}{"version"`, "after top-level"},
	})
	for _, text := range []string{"", "null", "[]", `"x"`, "{", `{"version":1`, data[:len(data)/2]} {
		if _, err := DecodeCheckpoint([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestDamagedPolicyIsRefused(t *testing.T) {
	v := shared(t, Share{"x", 50}, Share{"y", 50})
	for _, id := range []string{"a", "b", "c"} {
		v = joined(t, v, id)
		v = must(t, v, Attach{Sequencer: "x", Member: id}, Attach{Sequencer: "y", Member: id})
	}
	v = must(t, v, Drain{"x", "b"})
	const want = "x 0:a 1:c, drained b; y 0:b, waiting a c; 50% for x: a c; 50% for y: b"
	if !strings.HasSuffix(v.String(), want) {
		t.Fatalf("%s; want %s", v, want)
	}
	data := string(checkpoint(t, v))
	refuses(t, data, []damage{
		{`"sequencer":"x","percent":50`, `"sequencer":"x","percent":60`, "110 percent"},
		{`"sequencer":"x","percent":50`, `"sequencer":"x","percent":20`, "not shared out"},
		{`"sequencer":"y","percent":50`, `"sequencer":"y","percent":40`, ""}, // a third one may be gone
		{`"sequencer":"x","percent":50`, `"sequencer":"x","percent":-1`, "-1 percent"},
		{`"sequencer":"x","percent":50`, `"sequencer":"z","percent":50`, `"z"`},
		{`"sequencer":"x","percent":50`, `"sequencer":"y","percent":50`, `"y"`},
		{`"serves":"y"`, `"serves":"x"`, "has the node ID 0"},
		{`,"serves":"y"`, ``, "has the node ID 0"},
		{`"serves":"y"`, `"serves":"z"`, `serves "z"`},
		{`"drained":["b"]`, `"drained":[]`, ""},
		{
			`"policy":[{"sequencer":"x","percent":50},{"sequencer":"y","percent":50}]`, `"policy":[]`,
			"want a sequencer of the policy",
		},
		{`,"node":1}`, `}`, "held or reserved"},
	})
	random := rand.New(rand.NewPCG(2, 4))
	for range 2000 {
		damaged := []byte(data)
		for range 1 + random.IntN(2) {
			i := random.IntN(len(damaged))
			switch c := damaged[i]; {
			case '0' <= c && c <= '9':
				damaged[i] = byte('0' + random.IntN(10))
			case 'a' <= c && c <= 'c':
				damaged[i] = byte('a' + random.IntN(3))
			case 'x' <= c && c <= 'y':
				damaged[i] = byte('x' + random.IntN(2))
			}
		}
		acceptedIsSound(t, damaged)
	}
}

func TestDamagedNodeIDsAreRefused(t *testing.T) {
	v := joined(t, joined(t, Value{}, "a"), "b")
	v = must(t, v, CreateSequencer{Sequencer: "s", Definition: small(4, Allocation{})},
		Attach{Sequencer: "s", Member: "a"}, Attach{"s", "b", &Range{From: 0, To: 2}}, Decline{"s", "a", 0})
	const want = "s 1:b 2:a"
	if !strings.HasSuffix(v.String(), want) {
		t.Fatalf("%s; want %s", v, want)
	}
	data := string(checkpoint(t, v))
	refuses(t, data, []damage{
		{`"node":1`, `"node":3`, `attach of "b"`},
		{`"node":1`, `"node":2`, "node ID 2"},
		{`"node":2`, `"node":4`, "node ID 4"},
		{`,"node":1`, ``, "3 node IDs are free, held or reserved; want 4"},
		{`,"node":1}],"fresh":[[3,3]],"freed":[0]`, `}],"fresh":[[3,3]],"freed":[0,1]`, "first in line"},
	})
}

// A checkpoint that an older version wrote.
func TestCheckpointOfVersion1(t *testing.T) {
	const definition = `"epoch":"2026-01-01T00:00:00Z","tick":"1ms","time_bits":41,"datacenter_bits":0,` +
		`"node_bits":10,"sequence_bits":12,"node_lowest":false}`
	v, err := DecodeCheckpoint([]byte(`{"version":1,"position":48,"entries":17,` +
		`"ring":[{"id":"a","joined":0},{"id":"b","joined":9},{"id":"c","joined":18}],` +
		`"joins":[{"joiner":"d","target":"a","accepted":true}],` +
		`"sequencers":{"orders":{"definition":{"nodes":2,"allocation":{"kind":"all"},` + definition + `,"created":21,` +
		`"wanting":[{"member":"b","since":24,"node":0},{"member":"c","since":27,"node":1},{"member":"a","since":30,` +
		`"from":1,"to":1}],"fresh":null,"freed":null},` +
		`"spare":{"definition":{"nodes":1024,"allocation":{"kind":"percent","percent":50},` + definition +
		`,"created":33,` +
		`"wanting":[{"member":"b","since":39,"from":100,"to":200,"node":100}],"fresh":[[1,99],[101,1023]],` +
		`"freed":[0]}}}`))
	const want = `ring a>b>c; d accepted at a; orders 0:b 1:c, waiting a; spare 100:b`
	if err != nil || v.String() != want {
		t.Fatalf("have %s, %v\nwant %s", v, err, want)
	}
	if s, _ := v.Sequencer("spare"); s.Allocation() != (Allocation{Kind: AllocatePercent, Percent: 50}) {
		t.Errorf("allocation to %v; want that of the definition", s.Allocation())
	}
}

// acceptedIsSound checks that what was accepted as a checkpoint is as good a value as any.
func acceptedIsSound(t *testing.T, data []byte) {
	v, err := DecodeCheckpoint(data)
	if err != nil {
		var unreadable *UnreadableError
		if !errors.As(err, &unreadable) {
			t.Fatalf("%T %v", err, err)
		}
		return
	}
	restore(t, checkpoint(t, v))
	if wrong := inconsistency(v); wrong != "" {
		t.Fatalf("%s: %s", v, wrong)
	}
	_, _ = v.Recorder(), v.ring()
	w := walk{rand: rand.New(rand.NewPCG(uint64(len(data)), 3)), value: v}
	for i := range int64(20) {
		if v.position > 1<<62 {
			return
		}
		w.value, _ = Apply(w.value, Entry{Position: v.position + 1 + i, Command: w.command()})
		if wrong := inconsistency(w.value); wrong != "" {
			t.Fatalf("%s, then %s: %s", v, w.value, wrong)
		}
	}
}

// TestFlippedCheckpoint changes bytes and numbers of a checkpoint at random.
func TestFlippedCheckpoint(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 4))
	data := checkpoint(t, sample(t))
	for range 3000 {
		damaged := bytes.Clone(data)
		for range 1 + random.IntN(2) {
			i := random.IntN(len(damaged))
			switch c := damaged[i]; {
			case '0' <= c && c <= '9':
				damaged[i] = byte('0' + random.IntN(10))
			case 'a' <= c && c <= 'd':
				damaged[i] = byte('a' + random.IntN(4))
			case random.IntN(8) == 0:
				damaged[i] ^= 1 << random.IntN(7)
			}
		}
		acceptedIsSound(t, damaged)
	}
}

func FuzzDecodeCheckpoint(f *testing.F) {
	f.Add(checkpoint(f, sample(f)))
	f.Add(checkpoint(f, Value{}))
	f.Add(checkpoint(f, joined(f, shared(f, Share{"a", 75}, Share{"b", 0}), "m")))
	f.Add(checkpoint(f, must(f, joined(f, Value{}, "a"),
		CreateSequencer{Sequencer: "s", Definition: small(4, Allocation{})}, Attach{Sequencer: "s", Member: "a"})))
	f.Add([]byte(`{"version":1,"ring":[{"id":"a","joined":0}],"joins":[{"joiner":"b","target":"a"}],` +
		`"sequencers":null}`))
	f.Add([]byte(`{"version":1,"position":-1,"ring":[{"id":"a"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) { acceptedIsSound(t, data) })
}

// TestZeroValue is that of an empty log: everything can be asked of it.
func TestZeroValue(t *testing.T) {
	var v Value
	have, err := json.Marshal(v)
	const want = `{"members":[],"pairs":{},"prepared":{},"accepted":{},"sequencers":{}}`
	if err != nil || string(have) != want {
		t.Errorf("%s %v", have, err)
	}
	if s := fmt.Sprint(v); s != "ring " {
		t.Errorf("%q", s)
	}
	if back := restore(t, checkpoint(t, v)); back != v {
		t.Errorf("a checkpoint turns it into %+v", back)
	}
	_, watched := v.Watched("a")
	_, pending := v.Pending("a")
	_, sequencer := v.Sequencer("a")
	if v.Position() != 0 || v.Entries() != 0 || v.Size() != 0 || v.Candidates() != 0 || v.Recorder() != "" || watched ||
		pending ||
		sequencer || v.IsMember("a") || len(v.Members()) != 0 || Watches(v, "a") != nil {
		t.Error("it is not empty")
	}
	if duties := Duties(v, "a"); len(duties) != 0 {
		t.Errorf("duties: %v", duties)
	}
	var s Sequencer
	if _, ok := s.Node("a"); ok || s.Attached("a") || len(s.Waiting()) != 0 {
		t.Error("the zero sequencer is not empty")
	}
}

// TestLargeCheckpoint is about more members and sequencers than an uncompressed one has room for.
func TestLargeCheckpoint(t *testing.T) {
	var v Value
	random := rand.New(rand.NewPCG(1, 5))
	apply := func(c Command) { v, _ = Apply(v, Entry{Position: v.position + 1 + random.Int64N(9), Command: c}) }
	for range 500 {
		id := fmt.Sprintf("%013x", random.Uint64()>>12)
		apply(PrepareJoin{id})
		apply(NotifyWatchers{id})
		apply(AcceptJoin{id})
	}
	for i := range 60 {
		name := fmt.Sprint("orders-", i)
		apply(CreateSequencer{Sequencer: name, Definition: Define(firn.Default)})
		for _, m := range v.Members() {
			apply(Attach{Sequencer: name, Member: m})
		}
	}
	data := checkpoint(t, v)
	if len(data) > 1<<20 {
		t.Errorf("%d bytes for 30 000 attachments, want no more than a store takes: a MiB", len(data))
	}
	if back := restore(t, data); back.String() != v.String() {
		t.Error("it is another value")
	}
	for _, cut := range []int{2, 10, 11, 100, len(data) / 2, len(data) - 1} {
		acceptedIsSound(t, data[:cut])
		if _, err := DecodeCheckpoint(data[:cut]); err == nil {
			t.Errorf("the first %d bytes of it are read", cut)
		}
	}
	for range 50 {
		damaged := bytes.Clone(data)
		damaged[random.IntN(len(damaged))] ^= 1 << random.IntN(8)
		acceptedIsSound(t, damaged)
	}
}
