package sequencer

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

func TestDefinitionDefaults(t *testing.T) {
	var d Definition
	if err := json.Unmarshal([]byte(`{"nodes":100}`), &d); err != nil {
		t.Fatal(err)
	}
	if want := (Definition{Nodes: 100, Layout: firn.Default}); !d.Equal(want) || d.Capacity() != 128 {
		t.Errorf("%+v with room for %d, want %+v", d, d.Capacity(), want)
	}
	if l := d.IDLayout(); l.NodeIDs() != 128 || l.Rate() != 8*firn.Default.Rate() ||
		l.Lifetime() != firn.Default.Lifetime() {
		t.Errorf("IDs of %s", l)
	}
	data, err := json.Marshal(d)
	const want = `{"nodes":100,"allocation":{"kind":"all"},"epoch":`
	if err != nil || !strings.HasPrefix(string(data), want) {
		t.Errorf("%s %v", data, err)
	}
	if d = Define(firn.Default); d.Capacity() != firn.Default.NodeIDs() || d.Validate() != nil ||
		d.IDLayout() != d.Layout {
		t.Errorf("%+v", d)
	}
	elsewhere := d
	elsewhere.Layout.Epoch = d.Layout.Epoch.In(time.FixedZone("there", 3600))
	if !d.Equal(elsewhere) || d.Equal(small(5, Allocation{})) {
		t.Error("the same definition is another in another time zone, or the other way round")
	}
	for nodes, capacity := range map[int64]int64{1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 1023: 1024, 1024: 1024} {
		if have := small(nodes, Allocation{}).Capacity(); have != capacity {
			t.Errorf("%d nodes make %d, want %d", nodes, have, capacity)
		}
	}
}

func TestDefinitionErrorsNameTheValue(t *testing.T) {
	for text, why := range map[string]string{
		`null`:                "want a definition",
		`[]`:                  "array",
		`{"layout":"twiter"}`: `"twiter"`,
		`{"tick":"999us"}`:    "999µs",
		`{"after":"-1"}`:      "-1",
		`{"after":"9223372036854775807","time_bits":40}`:                "9223372036854775807",
		`{"after":9223372036854775807}`:                                 "last tick",
		`{"nodes":0}`:                                                   "0 nodes",
		`{"nodes":1025}`:                                                "1025 nodes",
		`{"nodes":2,"nods":3}`:                                          `"nods"`,
		`{"nodes":2,"tick":"2s"}`:                                       "2s",
		`{"nodes":2,"tick":"fast"}`:                                     `"fast"`,
		`{"nodes":2,"epoch":"9999-12-31T23:59:59-10:00"}`:               "10000",
		`{"nodes":2,"time_bits":63}`:                                    "63 time bits",
		`{"nodes":2,"datacenter_bits":2,"node_bits":8}`:                 "4 datacenters",
		`{"attach":"never"}`:                                            `"never"; want on-demand or explicit`,
		`{"nodes":2,"allocation":{"kind":"some"}}`:                      `"some"`,
		`{"nodes":2,"allocation":{"kind":"count"}}`:                     "count of 0",
		`{"nodes":2,"allocation":{"kind":"count","count":-3}}`:          "count of -3",
		`{"nodes":2,"allocation":{"kind":"percent","percent":101}}`:     "101 percent",
		`{"nodes":2,"allocation":{"kind":"percent"}}`:                   "0 percent",
		`{"nodes":2,"allocation":{"kind":"percent","of":"everything"}}`: `"of"`,
	} {
		var d Definition
		if err := d.UnmarshalJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v; want %q", text, err, why)
		}
	}
	var d Definition // what the kind does not use is dropped, so that equal definitions are equal
	if err := d.UnmarshalJSON([]byte(`{"nodes":2,"allocation":{"kind":"all","count":5,"percent":7}}`)); err != nil ||
		d.Allocation != (Allocation{}) {
		t.Errorf("%+v %v", d, err)
	}
}

func TestDefinitionFromAPreset(t *testing.T) {
	for text, want := range map[string]Definition{
		`{}`:                                Define(firn.Default),
		`{"layout":"twitter"}`:              Define(firn.Twitter),
		`{"layout":"sonyflake","nodes":16}`: {Nodes: 16, Layout: firn.Sonyflake},
		`{"layout":"41/5/17","after":"99"}`: {
			Nodes: 32, After: 99,
			Layout: firn.Layout{
				Epoch: firn.Default.Epoch, Tick: time.Millisecond, TimeBits: 41, NodeBits: 5,
				SequenceBits: 17,
			},
		},
	} {
		var d Definition
		if err := json.Unmarshal([]byte(text), &d); err != nil || !d.Equal(want) {
			t.Errorf("%s is %v %v, want %v", text, d, err, want)
		}
		data, err := json.Marshal(d)
		var back Definition
		if err == nil {
			err = json.Unmarshal(data, &back)
		}
		if err != nil || !back.Equal(d) {
			t.Errorf("%s is read as %v %v, want %v", data, back, err, d)
		}
	}
}

// TestAbove compares Above with what it promises, for IDs of every preset and of fewer nodes than it has.
func TestAbove(t *testing.T) {
	for _, p := range firn.Presets() {
		for _, nodes := range []int64{1, 2, p.NodeIDs()} {
			if nodes < 1<<p.DatacenterBits {
				continue
			}
			d := Definition{Nodes: nodes, Layout: p.Layout}
			l := d.IDLayout()
			for _, tick := range []int64{0, 1, 1 << 30, 1<<l.TimeBits - 2} {
				last, err := l.Last(l.TickStart(tick))
				if err != nil {
					t.Fatal(err)
				}
				at, err := d.Above(last)
				if err != nil {
					t.Fatalf("%s: above %d: %v", p.Name, last, err)
				}
				above, err := l.First(at)
				before, errBefore := l.First(at.Add(-l.Tick))
				if err != nil || errBefore != nil || above != last+1 || before > last {
					t.Errorf("%s: the first ID above %d is %d %v, and that of the tick before %d", p.Name, last,
						above, err, before)
				}
			}
			all := l.TimeBits + l.DatacenterBits + l.NodeBits + l.SequenceBits
			greatest := firn.ID(1)<<all - 1
			if at, err := d.Above(greatest); err == nil {
				t.Errorf("%s: IDs above %d from %v on", p.Name, greatest, at)
			}
			if at, err := d.Above(0); err != nil || !at.Equal(p.Epoch) {
				t.Errorf("%s: above 0: %v %v", p.Name, at, err)
			}
		}
	}
}

func TestCheckLooksAtTheTimeThatIsLeft(t *testing.T) {
	d := Define(firn.Default)
	end := d.Layout.Lifetime()
	for _, c := range []struct {
		now           time.Time
		warning, fail string
	}{
		{d.Layout.Epoch.Add(-1), "", "has not come"},
		{d.Layout.Epoch, "", ""},
		{end.Add(-MinLifetimeLeft), "", ""},
		{end.Add(1 - MinLifetimeLeft), "365 days", ""},
		{end.Add(-36 * time.Hour), "in 2 days", ""},
		{end.Add(-1), "in 0 days", ""},
		{end, "", "its time ended on 2095"},
	} {
		warning, err := d.Check(c.now)
		if !strings.Contains(warning, c.warning) || (warning == "") != (c.warning == "") {
			t.Errorf("at %v it warns of %q, want %q", c.now, warning, c.warning)
		}
		if (err == nil) != (c.fail == "") ||
			err != nil && (!strings.Contains(err.Error(), c.fail) || !errors.Is(err, firn.ErrLifetime)) {
			t.Errorf("at %v the error is %v, want an ErrLifetime with %q", c.now, err, c.fail)
		}
	}
	if _, err := small(0, Allocation{}).Check(d.Layout.Epoch); err == nil {
		t.Error("a definition that is not valid is not refused")
	}
}

// TestDifferencesNameEveryField changes one field after the other.
func TestDifferencesNameEveryField(t *testing.T) {
	base := Define(firn.Default)
	for field, change := range map[string]func(*Definition){
		"nodes":           func(d *Definition) { d.Nodes = 7 },
		"allocation":      func(d *Definition) { d.Allocation = Allocation{Kind: AllocateCount, Count: 7} },
		"epoch":           func(d *Definition) { d.Layout.Epoch = d.Layout.Epoch.Add(time.Second) },
		"tick":            func(d *Definition) { d.Layout.Tick = 10 * time.Millisecond },
		"time_bits":       func(d *Definition) { d.Layout.TimeBits = 40 },
		"datacenter_bits": func(d *Definition) { d.Layout.DatacenterBits = 1 },
		"node_bits":       func(d *Definition) { d.Layout.NodeBits = 11 },
		"sequence_bits":   func(d *Definition) { d.Layout.SequenceBits = 11 },
		"node_lowest":     func(d *Definition) { d.Layout.NodeLowest = true },
		"after":           func(d *Definition) { d.After = 7 },
		"attach":          func(d *Definition) { d.Attach = AttachExplicit },
		"window":          func(d *Definition) { d.Window = 5 * time.Second },
		"prefix":          func(d *Definition) { d.Prefix = "ord" },
		"scattered":       func(d *Definition) { d.Scattered = true },
		"random_start":    func(d *Definition) { d.RandomStart = true },
	} {
		wanted := base
		change(&wanted)
		have := base.Differences(wanted)
		if len(have) != 1 || have[0].Field != field || have[0].InForce == have[0].Wanted {
			t.Errorf("%s: %v", field, have)
		}
		if data, err := json.Marshal(base); err != nil || !slices.Contains([]string{
			"after", "attach", "window",
			"prefix", "scattered", "random_start",
		}, field) && !strings.Contains(string(data), `"`+field+`":`) {
			t.Errorf("%s is no field of %s %v", field, data, err)
		}
	}
	if d := base.Differences(base); d != nil {
		t.Errorf("it differs from itself in %v", d)
	}
}

// TestWindow: one that is zero is that of the node, and is not written.
func TestWindow(t *testing.T) {
	for window, text := range map[time.Duration]string{
		0: "", time.Second: `"window":"1s"`,
		90 * time.Second: `"window":"1m30s"`, time.Hour: `"window":"1h0m0s"`,
	} {
		d := Define(firn.Default)
		d.Window = window
		data, err := json.Marshal(d)
		if err != nil || strings.Contains(string(data), "window") != (text != "") ||
			!strings.Contains(string(data), text) {
			t.Errorf("%v is written as %s %v", window, data, err)
		}
		var back Definition
		if err := json.Unmarshal(data, &back); err != nil || back != d {
			t.Errorf("%s is read as %v %v", data, back, err)
		}
		if said := strings.Contains(d.String(), "window "+window.String()); said != (text != "") {
			t.Errorf("%v says %s", window, d)
		}
	}
	for text, why := range map[string]string{
		`{"window":"999ms"}`:              "a window of 999ms; want 1s to 1h",
		`{"window":"2s","tick":"1s"}`:     "a window of 2s; want 3s to 1h",
		`{"window":"61m"}`:                "a window of 1h1m0s",
		`{"window":"-1s"}`:                "a window of -1s",
		`{"window":"long"}`:               `"long"; want one such as`,
		`{"window":5}`:                    "number",
		`{"window":"2999ms","tick":"1s"}`: "a window of 2.999s",
	} {
		var d Definition
		if err := d.UnmarshalJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v; want %q", text, err, why)
		}
	}
	var d Definition
	if err := d.UnmarshalJSON([]byte(`{"window":"3s","tick":"1s"}`)); err != nil || d.Window != 3*time.Second {
		t.Errorf("%v, %v", d, err)
	}
}

// TestAttachIsWrittenOnlyWhenExplicit: definitions written before the field existed are read, and programs that
// don't know it read the definitions that need none.
func TestAttachIsWrittenOnlyWhenExplicit(t *testing.T) {
	for policy, text := range map[AttachPolicy]string{AttachOnDemand: "", AttachExplicit: `"attach":"explicit"`} {
		d := Define(firn.Default)
		d.Attach = policy
		data, err := json.Marshal(d)
		if err != nil || strings.Contains(string(data), "attach") != (text != "") ||
			!strings.Contains(string(data), text) {
			t.Errorf("%v is written as %s %v", policy, data, err)
		}
		var back Definition
		if err := json.Unmarshal(data, &back); err != nil || !back.Equal(d) {
			t.Errorf("%s is read as %v %v", data, back, err)
		}
		if said := strings.Contains(d.String(), "attach explicit"); said != (text != "") {
			t.Errorf("%v says %s", policy, d)
		}
	}
	d := Define(firn.Default)
	if err := json.Unmarshal([]byte(`{"attach":"on-demand"}`), &d); err != nil || d.Attach != AttachOnDemand {
		t.Errorf("on-demand is %v %v", d, err)
	}
	if d.Attach = 2; d.Validate() == nil {
		t.Error("an unknown policy is valid")
	}
}

// TestLaterFieldsAreWrittenOnlyWhenSet: definitions without them are the bytes that they were before these fields
// existed.
func TestLaterFieldsAreWrittenOnlyWhenSet(t *testing.T) {
	for text, want := range map[string]Definition{
		``:                                      {},
		`,"prefix":"ord"`:                       {Prefix: "ord"},
		`,"scattered":true`:                     {Scattered: true},
		`,"scattered":true,"random_start":true`: {Scattered: true, RandomStart: true},
		`,"prefix":"a23456789bcdefgh","scattered":true`: {Prefix: "a23456789bcdefgh", Scattered: true},
	} {
		want.Nodes, want.Layout = 2, firn.Default
		const plain = `{"nodes":2,"allocation":{"kind":"all"},"epoch":"2026-01-01T00:00:00Z","tick":"1ms",` +
			`"time_bits":41,"datacenter_bits":0,"node_bits":10,"sequence_bits":12,"node_lowest":false`
		data, err := json.Marshal(want)
		if err != nil || string(data) != plain+text+"}" {
			t.Errorf("%v is written as %s %v, want %s", want, data, err, plain+text+"}")
		}
		var back Definition
		if err := json.Unmarshal(data, &back); err != nil || back != want {
			t.Errorf("%s is read as %v %v, want %v", data, back, err, want)
		}
		for part, set := range map[string]bool{
			", prefix " + want.Prefix: want.Prefix != "",
			", scattered":             want.Scattered, ", random start": want.RandomStart,
		} {
			if strings.Contains(want.String(), part) != set {
				t.Errorf("%+v is shown as %s", want, want)
			}
		}
	}
	for text, why := range map[string]string{
		`{"prefix":"Ord"}`:               `the prefix "Ord"; want 1 to 16 of a-z and 0-9, the first a letter`,
		`{"prefix":"1rd"}`:               `the prefix "1rd"`,
		`{"prefix":"or_d"}`:              `the prefix "or_d"`,
		`{"prefix":"ör"}`:                `the prefix "ör"`,
		`{"prefix":"a23456789bcdefghi"}`: `the prefix "a23456789bcdefghi"`,
		`{"prefix":7}`:                   "number",
		`{"scattered":"yes"}`:            "string",
		`{"scattered":true,"after":"7"}`: "IDs after 7 that are scattered",
	} {
		var d Definition
		if err := d.UnmarshalJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v; want %q", text, err, why)
		}
	}
}

func small(nodes int64, a Allocation) Definition {
	return Definition{Nodes: nodes, Allocation: a, Layout: firn.Default}
}

// A rate is reached by fewer nodes, down to one in each datacenter.
func TestForRate(t *testing.T) {
	for _, c := range []struct {
		layout firn.Layout
		nodes  int64
		rate   float64
		want   int64 // 0: none can
	}{
		{firn.Default, 1024, 4_096_000, 1024},
		{firn.Default, 1024, 4_096_001, 512},
		{firn.Default, 1000, 4_096_000, 1000},
		{firn.Default, 1000, 10_000_000, 256},
		{firn.Default, 5, 1, 5},
		{firn.Default, 1024, 4_194_304_000, 1},
		{firn.Default, 1024, 4_194_304_001, 0},
		{firn.Twitter, 1024, 131_072_000, 32},
		{firn.Twitter, 1024, 131_072_001, 0},
		{firn.Default, 1024, math.NaN(), 0},
	} {
		d := Define(c.layout)
		d.Nodes = c.nodes
		is, err := d.ForRate(c.rate)
		switch {
		case c.want == 0:
			if err == nil {
				t.Errorf("%v for %v: %d nodes", c.layout, c.rate, is.Nodes)
			}
		case err != nil || is.Nodes != c.want || is.IDLayout().Rate() < c.rate || is.Validate() != nil:
			t.Errorf("%v for %v: %d nodes, %v; want %d", c.layout, c.rate, is.Nodes, err, c.want)
		}
	}
	for _, d := range []Definition{{Kind: Counter}, {Order: OrderStrict, Layout: firn.Default}} {
		if _, err := d.ForRate(1); err == nil || !strings.Contains(err.Error(), "claimed") {
			t.Errorf("%+v: %v", d, err)
		}
	}
}
