package peer

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/internal/core/cluster"
)

// company is what a judge sees in a test: members with clocks that are ahead by so much, who answer when they are
// asked.
type company struct {
	value  cluster.Value
	ahead  map[string]time.Duration // of this machine's clock, by member
	silent bool                     // nobody answers a question
	breaks error                    // the store has lost data
	asked  int
	lists  int // of all pulses
	told   []clocks.Kind
}

// newCompany returns that of a member "me" in a cluster of others.
func newCompany(ahead ...time.Duration) *company {
	c := &company{ahead: map[string]time.Duration{}}
	join := func(id string) {
		for _, command := range []cluster.Command{
			cluster.PrepareJoin{Joiner: id}, cluster.NotifyWatchers{Joiner: id}, cluster.AcceptJoin{Joiner: id},
		} {
			c.value, _ = cluster.Apply(c.value, cluster.Entry{Position: c.value.Position() + 1, Command: command})
		}
	}
	join("me")
	for i, d := range ahead {
		id := fmt.Sprint("other ", i)
		join(id)
		c.ahead[id] = d
	}
	return c
}

func (c *company) Value() cluster.Value { return c.value }
func (c *company) ID() string           { return "me" }
func (c *company) process() string      { return "mine" }
func (c *company) lost() int64          { return 0 }

func (c *company) PulseOf(_ context.Context, id string) (Pulse, error) {
	ahead, ok := c.ahead[id]
	if !ok {
		return Pulse{Mark: "mine", Clock: time.Now()}, nil
	}
	p := Pulse{Mark: id, Stamp: fmt.Sprint(time.Now()), Clock: time.Now().Add(ahead), Every: 10 * time.Second}
	if c.asked > 0 && !c.silent {
		p.Answers = int64(c.asked)
	}
	return p, nil
}

func (c *company) Pulses(ctx context.Context) (map[string]Pulse, error) {
	c.lists++
	all := map[string]Pulse{}
	for id := range c.ahead {
		all[id], _ = c.PulseOf(ctx, id)
	}
	return all, nil
}

func (c *company) endOfLog(context.Context) (int64, error) { return 0, nil }

func (c *company) askClocks(context.Context) (question, error) {
	c.asked++
	q := question{position: int64(c.asked)}
	for id := range c.ahead {
		q.asked = append(q.asked, id)
	}
	return q, nil
}

func (c *company) keepsAll(context.Context, int64) error { return c.breaks }

func (c *company) tellVerdict(_, is clocks.Verdict) { c.told = append(c.told, is.Kind) }

// A clock is believed while most agree with it, refused while most agree with each other instead, and told each time.
func TestJudge(t *testing.T) {
	const hour = time.Hour
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			others []time.Duration
			want   clocks.Kind
			asked  int
		}{
			"alone":                           {nil, clocks.Alone, 0},
			"all agree":                       {[]time.Duration{0, 0, 0}, clocks.Agreed, 0},
			"one of three others is ahead":    {[]time.Duration{0, 0, hour}, clocks.Agreed, 0},
			"all others are ahead":            {[]time.Duration{hour, hour, hour}, clocks.Behind, 1},
			"all others are behind":           {[]time.Duration{-hour, -hour}, clocks.Ahead, 1},
			"the only other one is elsewhere": {[]time.Duration{hour}, clocks.Tied, 1},
		} {
			others := newCompany(c.others...)
			j := judge{others: others, clock: firn.NewSteadyClock(time.Second), judging: make(lock, 1)}
			if err := j.judge(t.Context(), time.Second); err != nil {
				t.Fatal(err)
			}
			if got := j.judged(); got.Kind != c.want || others.asked != c.asked || (got.err() != nil) != got.Out() ||
				len(others.told) != 1 {
				t.Errorf("%s: %v after %d questions, told %v; want %v after %d", name, got.Verdict, others.asked,
					others.told, c.want, c.asked)
			}
			if err := j.judge(t.Context(), time.Second); err != nil || len(others.told) != 1 {
				t.Errorf("%s: %v; judged again at once", name, err)
			}
		}
	})
}

// A clock that was refused is believed again only if the store keeps what the others wrote.
func TestJudgeOfALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := newCompany(time.Hour, time.Hour)
		j := judge{others: others, clock: firn.NewSteadyClock(time.Second), judging: make(lock, 1)}
		if err := j.judge(t.Context(), 0); err != nil || !j.judged().Out() {
			t.Fatalf("%v, %v", j.judged().Verdict, err)
		}
		clear(others.ahead) // their pulses are gone
		others.breaks = errLostData
		if err := j.judge(t.Context(), 0); err == nil || !j.judged().Out() {
			t.Errorf("%v, %v: it is believed by a store that has lost those who refuse it", j.judged().Verdict, err)
		}
		others.breaks = nil
		if err := j.judge(t.Context(), 0); err != nil || j.judged().Out() {
			t.Errorf("%v, %v: it is refused though nobody is there", j.judged().Verdict, err)
		}
	})
}

// A clock that was refused is not believed because nobody answers, as when the store is slow.
func TestJudgeWithoutAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := newCompany(time.Hour, time.Hour)
		j := judge{others: others, clock: firn.NewSteadyClock(time.Second), judging: make(lock, 1)}
		judged := func(out bool) {
			t.Helper()
			if err := j.judge(t.Context(), 0); err != nil || j.judged().Out() != out {
				t.Errorf("%v, %v after %d questions; want out: %v", j.judged().Verdict, err, others.asked, out)
			}
		}
		judged(true)
		delete(others.ahead, "other 1") // it has died: the clocks are tied
		others.silent = true
		judged(true)
		others.silent = false
		judged(false)
	})
}

// In a crowd each judgement reads a few clocks, many for the first time, which says little of how far they are apart.
func TestOffsetInACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ahead := make([]time.Duration, 40)
		for i := range ahead {
			ahead[i] = -4 * time.Second
		}
		j := judge{others: newCompany(ahead...), clock: firn.NewSteadyClock(time.Second), judging: make(lock, 1)}
		for i := range 10 {
			if err := j.judge(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			if off := j.judged().Offset; i > 0 && (off < 2*time.Second || off > 4*time.Second) {
				t.Errorf("%v off after %d judgements, want 2s to 4s: pulses are read each second", off, i+1)
			}
			time.Sleep(time.Second)
		}
	})
}

// In a crowd few read all clocks because some are wrong, unless the clocks are divided or their own is wrong.
func TestJudgeOfACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			each  int // so many-th clock is wrong
			lists bool
			want  clocks.Kind
		}{
			{40, false, clocks.Agreed},
			{3, true, clocks.Agreed},
			{1, true, clocks.Behind},
		} {
			ahead := make([]time.Duration, 400)
			for i := range ahead {
				if i%c.each == 0 {
					ahead[i] = time.Hour
				}
			}
			others := newCompany(ahead...)
			j := judge{others: others, clock: firn.NewSteadyClock(time.Second), judging: make(lock, 1)}
			for range 100 {
				if err := j.judge(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
				if got := j.judged(); got.Kind != c.want {
					t.Errorf("each %d is wrong: %v; want %v", c.each, got.Verdict, c.want)
				}
			}
			if (others.lists > 0) != c.lists {
				t.Errorf("each %d is wrong: all clocks were read %d times of 100", c.each, others.lists)
			}
		}
	})
}
