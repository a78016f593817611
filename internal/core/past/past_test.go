package past

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

var epoch = time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)

func rule() Rule {
	return Rule{
		Layout: firn.Layout{
			Epoch: epoch, Tick: 10 * time.Millisecond, TimeBits: 39, DatacenterBits: 2, NodeBits: 3, SequenceBits: 2,
		},
		Node: 13, Until: epoch.Add(time.Hour),
	}
}

func at(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

func times(ms ...int) (all []time.Time) {
	for _, n := range ms {
		all = append(all, at(n))
	}
	return all
}

// tell returns what IDs say: their ticks in milliseconds and their sequences.
func tell(t *testing.T, r Rule, ids []firn.ID) (all [][2]int64) {
	t.Helper()
	for _, id := range ids {
		p, err := r.Layout.Decompose(id)
		if err != nil || p.Datacenter != 1 || p.Node != 5 {
			t.Fatalf("%d is %+v, %v", id, p, err)
		}
		all = append(all, [2]int64{p.Tick * 10, p.Sequence})
	}
	return all
}

func TestGive(t *testing.T) {
	r := rule()
	var p Progress
	for _, step := range []struct {
		times   []time.Time
		move    bool
		want    [][2]int64
		moved   int
		wrong   string
		reached int
		end     int
	}{
		{times: times(70, 5, 75, 9), want: [][2]int64{{70, 0}, {0, 0}, {70, 1}, {0, 1}}, reached: 70, end: 80},
		{times: times(69), wrong: "times[0] is 2015-01-01T00:00:00.069Z: the job gives IDs from " +
			"2015-01-01T00:00:00.07Z on; want no earlier time, or another job", reached: 70, end: 80},
		{
			times: times(70, 71, 72), wrong: "times[2] is 2015-01-01T00:00:00.072Z: all 4 IDs of this tick are given",
			reached: 70, end: 80,
		},
		{times: times(70, 71, 72, 73, 74, 75, 76), move: true, moved: 5, want: [][2]int64{
			{70, 2}, {70, 3}, {80, 0}, {80, 1}, {80, 2}, {80, 3}, {90, 0},
		}, reached: 70, end: 100},
		{times: times(70), wrong: "all 4 IDs", reached: 70, end: 100},
		{times: times(85, 70), move: true, moved: 2, want: [][2]int64{{90, 2}, {90, 1}}, reached: 80, end: 100},
		{times: times(99), want: [][2]int64{{90, 3}}, reached: 90, end: 100},
		{times: nil, reached: 90, end: 100},
		{
			times:   times(100, 3600001),
			wrong:   "times[1] is 2015-01-01T01:00:00.001Z, which has not come; want none after",
			reached: 90, end: 100,
		},
		{times: times(-1), wrong: "outside the layout's lifetime", reached: 90, end: 100},
	} {
		r.Move = step.move
		after, ids, moved, err := r.Give(p, step.times, "")
		if step.wrong != "" {
			refused, ok := errors.AsType[*RefusedError](err)
			if !ok || !strings.Contains(refused.Error(), step.wrong) || after != p || ids != nil {
				t.Errorf("%v: %v, %v; want %s", step.times, ids, err, step.wrong)
			}
		} else if got := tell(t, r, ids); err != nil || !slices.Equal(got, step.want) || moved != step.moved {
			t.Errorf("%v: %v, %d, %v; want %v, %d", step.times, got, moved, err, step.want, step.moved)
		}
		p = after
		if !r.Reached(p).Equal(at(step.reached)) || !r.End(p).Equal(at(step.end)) {
			t.Errorf("%v: reached %v, end %v; want %d, %d", step.times, r.Reached(p), r.End(p), step.reached, step.end)
		}
		if back, err := Parse(p.String()); err != nil || back != p {
			t.Errorf("%q is read as %+v, %v; want %+v", p, back, err, p)
		}
	}
}

// No instant gets an ID of a time that has not come, also if it is moved there.
func TestNoIDIsOfATimeToCome(t *testing.T) {
	r := rule()
	r.Move, r.Until = true, at(19)
	if _, ids, _, err := r.Give(Progress{}, times(10, 10, 10, 10), ""); err != nil || len(ids) != 4 {
		t.Errorf("%v, %v", ids, err)
	}
	_, _, _, err := r.Give(Progress{}, times(10, 10, 10, 10, 10), "")
	if err == nil || !strings.Contains(err.Error(), "of a time that has not come") {
		t.Error(err)
	}
}

// The last call of a job gets its IDs again, any other never one that was given.
func TestACallAgain(t *testing.T) {
	r := rule()
	first := times(10, 10, 30)
	p, a, _, err := r.Give(Progress{}, first, r.Call("a", first))
	if err != nil {
		t.Fatal(err)
	}
	again, b, _, err := r.Give(p, first, r.Call("a", first))
	if err != nil || again != p || !slices.Equal(a, b) {
		t.Errorf("again: %v, %v; want %v", b, err, a)
	}
	calls := map[string]bool{r.Call("a", first): true}
	moving := r
	moving.Move = true
	for _, other := range []string{
		r.Call("b", first), r.Call("a", times(10, 10, 31)), r.Call("a", first[:2]), moving.Call("a", first), "",
	} {
		if calls[other] {
			t.Errorf("two calls are %q", other)
		}
		calls[other] = true
		_, c, _, err := r.Give(p, times(30), other)
		if err != nil || slices.Contains(a, c[0]) {
			t.Errorf("another call %q gets %v, %v", other, c, err)
		}
	}
	if r.Call("", first) != "" {
		t.Error("calls without a key are alike")
	}
	next, _, _, err := r.Give(p, times(40), r.Call("b", times(40)))
	if err != nil {
		t.Fatal(err)
	}
	if _, c, _, err := r.Give(next, first, r.Call("a", first)); err == nil {
		t.Errorf("a call before the last one gets %v", c)
	}
}

func TestBegin(t *testing.T) {
	r := rule()
	p, err := r.Begin(Progress{}, at(11))
	if err != nil || !r.Reached(p).Equal(at(20)) {
		t.Errorf("IDs begin at %v, %v", r.Reached(p), err)
	}
	for _, earlier := range []int{-100, 0, 20} {
		if again, err := r.Begin(p, at(earlier)); err != nil || again != p {
			t.Errorf("from %d: %+v, %v", earlier, again, err)
		}
	}
	if _, err := r.Begin(p, r.Layout.Lifetime()); err == nil {
		t.Error("IDs begin beyond the layout's lifetime")
	}
}

func TestHolds(t *testing.T) {
	r := rule()
	p, ids, _, err := r.Give(Progress{}, times(10, 20), "")
	if err != nil {
		t.Fatal(err)
	}
	other := r
	other.Node--
	_, strange, _, _ := other.Give(Progress{}, times(10), "")
	_, later, _, _ := r.Give(p, times(20), "")
	for _, c := range []struct {
		id        firn.ID
		want, err bool
	}{
		{ids[0], true, false},
		{ids[1], true, false},
		{later[0], false, false},
		{strange[0], false, true},
		{-1, false, true},
	} {
		if got, err := r.Holds(p, c.id); got != c.want || (err != nil) != c.err {
			t.Errorf("%d: %v, %v", c.id, got, err)
		}
	}
}

func TestParseRefusesOtherText(t *testing.T) {
	for _, text := range []string{"", "1", "1.2.3.4", "1.2.3.x.", "-1.2.3.4.", "1.2.3.4.5.6"} {
		if p, err := Parse(text); err == nil {
			t.Errorf("%q is read as %+v", text, p)
		}
	}
}

// However calls come, no ID is given twice, each is of its instant's tick, or of the next that has one, and what ends
// with a progress holds them all.
func TestGiveNeverRepeats(t *testing.T) {
	for seed := range uint64(200) {
		d := rand.New(rand.NewPCG(seed, 3))
		r := rule()
		seen := map[firn.ID]bool{}
		var p Progress
		for now := 0; now < 2000; now += d.IntN(40) {
			r.Move = d.IntN(2) == 0
			var asked []time.Time
			for range d.IntN(9) {
				asked = append(asked, at(now+d.IntN(30)))
			}
			after, ids, moved, err := r.Give(p, asked, "")
			if err != nil {
				continue
			}
			for i, id := range ids {
				made, _ := r.Layout.Time(id)
				late := made.Sub(asked[i])
				if seen[id] || late <= -r.Layout.Tick || moved == 0 && late > 0 || !made.Before(r.End(after)) ||
					made.Before(r.Reached(p)) {
					t.Fatalf("seed %d: %v gets %d of %v again: %v", seed, asked[i], id, made, seen[id])
				}
				seen[id] = true
			}
			p = after
		}
		if len(seen) < 100 {
			t.Fatalf("seed %d: only %d IDs", seed, len(seen))
		}
	}
}
