package firn

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The presets reproduce IDs that others made, in both directions.
func TestPresetsReproduceRealIDs(t *testing.T) {
	text, err := os.ReadFile("testdata/layouts.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []struct {
			Layout     string
			ID         string
			TimeMs     int64 `json:"time_ms"`
			Datacenter int64
			Node       int64
			Sequence   int64
			Source     string
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) == 0 {
		t.Fatal("no vectors")
	}
	for _, v := range file.Vectors {
		l, err := ParseLayout(v.Layout)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseInt(v.ID, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		p, err := l.Decompose(ID(n))
		if err != nil {
			t.Fatalf("%s (%s): %v", v.ID, v.Source, err)
		}
		if got := l.TickStart(p.Tick).UnixMilli(); got != v.TimeMs {
			t.Errorf("%s: time %d, want %d (%s)", v.ID, got, v.TimeMs, v.Source)
		}
		if p.Datacenter != v.Datacenter || p.Node != v.Node || p.Sequence != v.Sequence {
			t.Errorf("%s: parts %+v, want %+v", v.ID, p, v)
		}
		if id, err := l.Compose(p); err != nil || id != ID(n) {
			t.Errorf("Compose(%+v) = %d, %v, want %s", p, id, err, v.ID)
		}
	}
}

// The layouts that docs/comparison.md names for other generators take IDs apart as these do: the IDs are from their
// documentation and tests.
func TestLayoutsOfOtherGenerators(t *testing.T) {
	page, err := os.ReadFile("docs/comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		page, layout, epoch string
		lowest              bool
		id                  ID
		at                  string
		node, sequence      int64
	}{
		{ // its README; by the settings there, in Shanghai
			"timeBits/workerBits/seqBits@1s", "29/21/13@1s", "2016-09-20T00:00:00+08:00", false, 180363646902239241,
			"2017-01-19T12:15:46+08:00", 4, 9,
		},
		{ // README of hypersistence-tsid: 0123456789ABC in base32
			"--layout 41/10/12 --epoch 2020-01-01", "41/10/12", "2020-01-01T00:00:00Z", false, 38390726480144748,
			"2020-04-15T22:31:02.458Z", 74, 2412,
		},
		{ // FlakeIdGeneratorProxyTest of Hazelcast
			"--layout 41/16/6 --node-lowest --epoch 2018-01-01", "41/16/6", "2018-01-01T00:00:00Z", true,
			5300086112257234, "2018-01-15T15:00:39Z", 1234, 0,
		},
		{
			"--layout 41/16/6 --node-lowest --epoch 2018-01-01", "41/16/6", "2018-01-01T00:00:00Z", true,
			5300086112257234 + 1<<16, "2018-01-15T15:00:39Z", 1234, 1,
		},
	} {
		if !strings.Contains(string(page), c.page) {
			t.Errorf("the page has no %q", c.page)
		}
		l, err := ParseLayout(c.layout)
		if err != nil {
			t.Fatal(err)
		}
		l.NodeLowest = c.lowest
		var at time.Time
		for text, into := range map[string]*time.Time{c.epoch: &l.Epoch, c.at: &at} {
			if *into, err = time.Parse(time.RFC3339, text); err != nil {
				t.Fatal(err)
			}
		}
		p, err := l.Decompose(c.id)
		if err != nil || !l.TickStart(p.Tick).Equal(at) || p.Node != c.node || p.Sequence != c.sequence {
			t.Errorf("%s of %d: %+v of %s, %v; want node %d, sequence %d and %s", l, c.id, p, l.TickStart(p.Tick), err,
				c.node, c.sequence, at)
		}
	}
}

func TestPresetsAreValidAndNamed(t *testing.T) {
	for _, p := range Presets() {
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if l, err := ParseLayout(p.Name); err != nil || l != p.Layout {
			t.Errorf("ParseLayout(%q) = %v, %v", p.Name, l, err)
		}
	}
	if got := Default.Lifetime().Format(time.RFC3339Nano); got != "2095-09-07T15:47:35.552Z" {
		t.Errorf("Default lasts until %s", got)
	}
	if got := Default.Rate(); got != 4_096_000 {
		t.Errorf("Default makes %v IDs a second", got)
	}
	if bits := JavaScript.Bits(); bits != 53 {
		t.Errorf("JavaScript has %d bits", bits)
	}
	// From the documentation of sony/sonyflake: 39 bits of 10 ms, 8 of sequence, 16 of machine.
	id, err := Sonyflake.Compose(Parts{Tick: 1, Sequence: 2, Node: 3})
	if want := ID(1<<24 | 2<<16 | 3); id != want || err != nil {
		t.Errorf("Sonyflake ID %d, %v, want %d", id, err, want)
	}
}

func TestValidateNamesWhatIsWrong(t *testing.T) {
	change := func(f func(*Layout)) Layout {
		l := Default
		f(&l)
		return l
	}
	for _, c := range []struct {
		layout Layout
		want   string
	}{
		{Layout{}, "0 time bits"},
		{change(func(l *Layout) { l.TimeBits = 63 }), "63 time bits"},
		{change(func(l *Layout) { l.NodeBits = -1 }), "-1 node bits"},
		{change(func(l *Layout) { l.DatacenterBits = 99 }), "99 datacenter bits"},
		{change(func(l *Layout) { l.SequenceBits = 13 }), "64 bits (41/10/13)"},
		{change(func(l *Layout) { l.Tick = 0 }), "tick of 0s"},
		{change(func(l *Layout) { l.Tick = 2 * time.Second }), "tick of 2s"},
		{change(func(l *Layout) { l.Epoch = time.Time{} }), "epoch 0001-01-01"},
		{change(func(l *Layout) { l.Epoch = l.Epoch.AddDate(300, 0, 0) }), "epoch 2326-01-01"},
	} {
		if err := c.layout.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Validate(%v) = %v, want it to say %q", c.layout, err, c.want)
		}
		if _, err := c.layout.Compose(Parts{}); err == nil {
			t.Errorf("Compose with %v: no error", c.layout)
		}
		if _, err := c.layout.Decompose(0); err == nil {
			t.Errorf("Decompose with %v: no error", c.layout)
		}
		if _, err := c.layout.First(c.layout.Epoch); err == nil {
			t.Errorf("First with %v: no error", c.layout)
		}
	}
}

func TestComposeRejectsWhatDoesNotFit(t *testing.T) {
	for _, p := range []Parts{
		{Tick: -1},
		{Tick: 1 << 41},
		{Datacenter: -1},
		{Datacenter: 32},
		{Node: -1},
		{Node: 32},
		{Sequence: -1},
		{Sequence: 4096},
	} {
		if id, err := Twitter.Compose(p); err == nil {
			t.Errorf("Compose(%+v) = %d", p, id)
		}
	}
	for _, id := range []ID{-1, 1 << 53} {
		if p, err := JavaScript.Decompose(id); err == nil {
			t.Errorf("Decompose(%d) = %+v", id, p)
		}
		if at, err := JavaScript.Time(id); err == nil {
			t.Errorf("Time(%d) = %v", id, at)
		}
		if node, err := JavaScript.NodeID(id); err == nil {
			t.Errorf("NodeID(%d) = %d", id, node)
		}
	}
}

// All IDs of a tick, and no others, lie between First and Last of each of its instants.
func TestFirstAndLastEncloseATick(t *testing.T) {
	for _, p := range Presets() {
		begins := p.TickStart(123_456_789)
		for _, at := range []time.Time{begins, begins.Add(p.Tick / 2), begins.Add(p.Tick - 1)} {
			first, err1 := p.First(at)
			last, err2 := p.Last(at)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			low, _ := p.Decompose(first)
			high, _ := p.Decompose(last)
			if want := (Parts{Tick: 123_456_789}); low != want {
				t.Errorf("%s: First(%s) = %+v, want %+v", p.Name, at, low, want)
			}
			if want := (Parts{
				123_456_789, maxOf(p.DatacenterBits), maxOf(p.NodeBits),
				maxOf(p.SequenceBits),
			}); high != want {
				t.Errorf("%s: Last(%s) = %+v, want %+v", p.Name, at, high, want)
			}
		}
		after, _ := p.First(begins.Add(p.Tick))
		if last, _ := p.Last(begins); after != last+1 {
			t.Errorf("%s: the next tick begins at %d, the last ID of this one is %d", p.Name, after, last)
		}
		for _, at := range []time.Time{p.Epoch.Add(-1), p.Lifetime(), {}} {
			if id, err := p.First(at); !errors.Is(err, ErrLifetime) {
				t.Errorf("%s: First(%s) = %d, %v", p.Name, at, id, err)
			}
			if _, err := p.Last(at); !errors.Is(err, ErrLifetime) {
				t.Errorf("%s: Last(%s): %v", p.Name, at, err)
			}
		}
	}
}

// What a layout has no ID for is refused with the time and with those that it has IDs for.
func TestOutsideTheLifetime(t *testing.T) {
	for _, at := range []string{"2025-12-31T23:59:59.999999999Z", "2095-09-07T15:47:35.552Z"} {
		when, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		want := at +
			" is outside the layout's lifetime; want a time from 2026-01-01T00:00:00Z on, before " +
			"2095-09-07T15:47:35.552Z"
		if _, err := Default.Last(when); !errors.Is(err, ErrLifetime) || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

func TestDatacenterNodes(t *testing.T) {
	first, last, err := Twitter.DatacenterNodes(11)
	if first != 352 || last != 383 || err != nil {
		t.Errorf("datacenter 11 has the node IDs %d to %d, %v", first, last, err)
	}
	for _, d := range []int64{-1, 32} {
		if _, _, err := Twitter.DatacenterNodes(d); err == nil {
			t.Errorf("datacenter %d: no error", d)
		}
	}
	if _, _, err := Default.DatacenterNodes(0); err == nil {
		t.Error("a datacenter without datacenter bits: no error")
	}
}

func TestParseLayout(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"41/10/12", "41/10/12, tick 1ms, epoch 2026-01-01T00:00:00Z"},
		{"41/5/5/12", "41/5/5/12, tick 1ms, epoch 2026-01-01T00:00:00Z"},
		{"39/16/8@10ms", "39/16/8, tick 10ms, epoch 2026-01-01T00:00:00Z"},
		{"sonyflake", "39/16/8 (node lowest), tick 10ms, epoch 2014-09-01T00:00:00Z"},
		{"1/0/62", "1/0/62, tick 1ms, epoch 2026-01-01T00:00:00Z"},
	} {
		if l, err := ParseLayout(c.text); err != nil || l.String() != c.want {
			t.Errorf("ParseLayout(%q) = %v, %v, want %s", c.text, l, err, c.want)
		}
	}
	for _, text := range []string{
		"", "twiter", "41/10", "41/10/12/1/1", "41/10/x", "41/-1/12", "41/+1/12", "42/10/12",
		"0/10/12", "41/10/12@", "41/10/12@1", "41/10/12@2h",
	} {
		if l, err := ParseLayout(text); err == nil {
			t.Errorf("ParseLayout(%q) = %v", text, l)
		}
	}
}

// FuzzLayout composes and decomposes over arbitrary valid layouts.
func FuzzLayout(f *testing.F) {
	f.Add(uint8(41), uint8(0), uint8(10), uint8(12), int64(1e6), true, int64(1), int64(0), int64(2), int64(3))
	f.Add(uint8(1), uint8(0), uint8(0), uint8(62), int64(1), false, int64(1), int64(0), int64(0), int64(1)<<62-1)
	f.Add(uint8(1), uint8(0), uint8(62), uint8(0), int64(1), true, int64(1), int64(0), int64(1)<<62-1, int64(0))
	f.Add(uint8(1), uint8(62), uint8(0), uint8(0), int64(1e9), false, int64(1), int64(1)<<62-1, int64(0), int64(0))
	f.Add(uint8(62), uint8(0), uint8(0), uint8(1), int64(1e9), false, int64(1)<<62-1, int64(0), int64(0), int64(1))
	f.Add(uint8(1), uint8(1), uint8(1), uint8(1), int64(1e9), true, int64(1), int64(1), int64(1), int64(1))
	f.Fuzz(func(t *testing.T, tb, db, nb, sb uint8, tick int64, lowest bool, ticks, datacenter, node, sequence int64) {
		l := Layout{
			Epoch: Default.Epoch, Tick: time.Duration(tick), TimeBits: int(tb),
			DatacenterBits: int(db), NodeBits: int(nb), SequenceBits: int(sb), NodeLowest: lowest,
		}
		p := Parts{ticks, datacenter, node, sequence}
		if l.Validate() != nil {
			if _, err := l.Compose(p); err == nil {
				t.Fatalf("%v is not valid, and composed", l)
			}
			return
		}
		checkRoundTrip(t, l, Parts{
			ticks & maxOf(l.TimeBits), datacenter & maxOf(l.DatacenterBits),
			node & maxOf(l.NodeBits), sequence & maxOf(l.SequenceBits),
		})
		if id, err := l.Compose(p); err == nil {
			if back, _ := l.Decompose(id); back != p {
				t.Fatalf("%v: %+v came back as %+v", l, p, back)
			}
		}
	})
}

func TestRandomLayoutsRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		l := randomLayout(r)
		checkRoundTrip(t, l, Parts{
			r.Int64N(1 << l.TimeBits), r.Int64N(1 << l.DatacenterBits),
			r.Int64N(1 << l.NodeBits), r.Int64N(1 << l.SequenceBits),
		})
	}
}

func randomLayout(r *rand.Rand) Layout {
	l := Layout{Epoch: Default.Epoch, Tick: 1 + time.Duration(r.Int64N(int64(time.Second))), NodeLowest: r.IntN(2) == 0}
	l.TimeBits = 1 + r.IntN(62)
	left := 63 - l.TimeBits
	l.SequenceBits = r.IntN(left + 1)
	left -= l.SequenceBits
	l.NodeBits = r.IntN(min(left, 62) + 1)
	l.DatacenterBits = r.IntN(left - l.NodeBits + 1)
	return l
}

func checkRoundTrip(t *testing.T, l Layout, p Parts) {
	t.Helper()
	id, err := l.Compose(p)
	if err != nil {
		t.Fatalf("%v: Compose(%+v): %v", l, p, err)
	}
	if id < 0 {
		t.Fatalf("%v: %+v gives the negative %d", l, p, id)
	}
	if back, err := l.Decompose(id); err != nil || back != p {
		t.Fatalf("%v: %+v came back as %+v, %v", l, p, back, err)
	}
	at := l.TickStart(p.Tick)
	if tick, err := l.TickAt(at); err != nil || tick != p.Tick {
		t.Fatalf("%v: tick %d begins at %s, which is in tick %d, %v", l, p.Tick, at, tick, err)
	}
	if made, err := l.Time(id); err != nil || !made.Equal(at) {
		t.Fatalf("%v: %d was made at %s, %v; want %s", l, id, made, err, at)
	}
	if node, err := l.NodeID(id); err != nil || node != p.Datacenter<<l.NodeBits|p.Node {
		t.Fatalf("%v: %d was made by node %d, %v; want that of %+v", l, id, node, err, p)
	}
	first, err1 := l.First(at)
	last, err2 := l.Last(at)
	if err1 != nil || err2 != nil || id < first || id > last {
		t.Fatalf("%v: %d is not from First %d to Last %d (%v, %v)", l, id, first, last, err1, err2)
	}
}

// FuzzParseLayout reads whatever there is: what it accepts is valid, and says so again.
func FuzzParseLayout(f *testing.F) {
	for _, text := range []string{
		"twitter", "41/10/12", "41/5/5/12", "39/16/8@10ms", "1/62/0@1ns", "62/0/1@1s", "//",
		"@", "41/10/12@-1ms", "064/1/1",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLayout(text)
		if err != nil {
			return
		}
		if err := l.Validate(); err != nil {
			t.Fatalf("ParseLayout(%q) = %v, which is not valid: %v", text, l, err)
		}
		again := l.split() + "@" + l.Tick.String()
		if back, err := ParseLayout(again); err != nil || back.split() != l.split() || back.Tick != l.Tick {
			t.Fatalf("%q is %v, which is %v, %v when read as %q", text, l, back, err, again)
		}
	})
}
