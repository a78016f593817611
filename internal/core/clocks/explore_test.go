package clocks

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/testenv"
)

// This file explores, breadth first, what up to five members make of their clocks by Look and Hear: from clocks of all
// kinds, through every order of steps, corrections, crashes, writes, ages of what was written, answers that do not
// come, and judgements. In each world check says who must be served once the rest is kind, and every verdict that puts
// a member out is looked at.

// one is a member: its clock, what its pulse shows, and whether it is out.
type one struct {
	clock, shown int8 // of the clocks of the exploration
	dead, gone   bool // gone: its pulse, too
	old          bool // its pulse is as old as it may be
	out          bool
}

// crowd are the members, and how many steps and crashes may still come.
type crowd struct {
	n              int
	of             [5]one
	steps, crashes int8
}

const every = 10 * time.Second

// key makes crowds equal that differ in the order of their members only.
func (c crowd) key() (k uint64) {
	bit := func(b bool) uint64 {
		if b {
			return 1
		}
		return 0
	}
	var all [5]uint64
	for i, m := range c.of[:c.n] {
		all[i] = uint64(m.clock)<<7 | uint64(m.shown)<<4 | bit(m.dead)<<3 | bit(m.gone)<<2 | bit(m.old)<<1 | bit(m.out)
	}
	slices.Sort(all[:c.n])
	for _, m := range all[:c.n] {
		k = k<<10 | m
	}
	return k<<4 | uint64(c.steps)<<2 | uint64(c.crashes)
}

// explorer explores crowds whose clocks show one of these.
type explorer struct {
	clocks []time.Duration
	now    time.Time
}

func (e *explorer) read(shown, mine int8, since, age time.Duration) Reading {
	return Read(e.now.Add(e.clocks[shown]-since), e.now.Add(e.clocks[mine]), age)
}

// apart reports how far two members' clocks are apart.
func (e *explorer) apart(a, b one) time.Duration {
	return (e.clocks[a.clock] - e.clocks[b.clock]).Abs()
}

// judge has a member judge its clock, where another may be silent; broken says why it must be put neither out nor in.
func (e *explorer) judge(c crowd, i, silent int) (n crowd, broken string) {
	var was Verdict
	if c.of[i].out {
		was = Verdict{Kind: Ahead, Offset: time.Hour}
	}
	var all, answers []Reading
	var living []one
	for j, m := range c.of[:c.n] {
		if j == i {
			continue
		}
		if !m.gone {
			var since time.Duration
			if m.old {
				since = every
			}
			all = append(all, e.read(m.shown, c.of[i].clock, since, every+time.Second))
		}
		if !m.dead && j != silent {
			answers = append(answers, e.read(m.clock, c.of[i].clock, 0, 100*time.Millisecond))
			living = append(living, m)
		}
	}
	v, ask := Look(was, all)
	if ask {
		v = Hear(was, answers)
	}
	n = c
	if ask && was.Out() && !v.Out() && len(living) == 0 {
		broken = fmt.Sprintf("member %d is let in by %v, and nobody has answered", i, v)
	}
	if n.of[i].out = v.Out(); n.of[i].out && !c.of[i].out && !e.majority(living, c.of[i], len(living)+1) {
		broken = fmt.Sprintf("member %d is put out by %v, and no majority of those who answered is against it", i, v)
	}
	return n, broken
}

// majority reports whether more than half of so many agree with each other, and not with one.
func (e *explorer) majority(of []one, against one, total int) bool {
	for _, first := range of { // the one that is furthest behind
		group := 0
		for _, m := range of {
			if ahead := e.clocks[m.clock] - e.clocks[first.clock]; ahead >= 0 && ahead <= Skew &&
				e.apart(m, against) > Skew {
				group++
			}
		}
		if e.apart(first, against) > Skew && 2*group > total {
			return true
		}
	}
	return false
}

// check says what is wrong with whom the members serve in the end: when the pulses of the dead are gone and all living
// have written, however long ago, and have judged.
func (e *explorer) check(c crowd) string {
	var living []one
	for i := range c.of[:c.n] {
		m := &c.of[i]
		m.shown, m.gone = m.clock, m.dead
		if !m.dead {
			living = append(living, *m)
		}
	}
	for i, m := range c.of[:c.n] {
		if m.dead {
			continue
		}
		after, _ := e.judge(c, i, -1)
		agree := 0
		for _, o := range living {
			if e.apart(m, o) <= Skew {
				agree++
			}
		}
		switch out := after.of[i].out; {
		case 2*agree > len(living) && out:
			return fmt.Sprintf("member %d is out, and %d of %d agree with it", i, agree, len(living))
		case 2*agree <= len(living) && out != e.majority(living, m, len(living)):
			return fmt.Sprintf("member %d is out: %v", i, out)
		}
	}
	return ""
}

// next calls visit with all that can happen next.
func (e *explorer) next(c crowd, visit func(what string, n crowd, broken string)) {
	for i, m := range c.of[:c.n] {
		n := c
		if m.dead {
			n.of[i].gone = true
			visit(fmt.Sprintf("the pulse of %d ends", i), n, "")
			continue
		}
		n.of[i].shown, n.of[i].old = m.clock, false
		visit(fmt.Sprintf("%d writes", i), n, "")
		n = c
		n.of[i].old = true
		visit(fmt.Sprintf("the pulse of %d gets old", i), n, "")
		if c.crashes > 0 {
			n = c
			n.crashes--
			n.of[i].dead = true
			visit(fmt.Sprintf("%d crashes", i), n, "")
		}
		for to := range e.clocks {
			n = c
			n.steps--
			n.of[i].clock = int8(to)
			if c.steps > 0 {
				visit(fmt.Sprintf("the clock of %d steps to %v", i, e.clocks[to]), n, "")
			}
		}
		for silent := -1; silent < c.n; silent++ {
			n, broken := e.judge(c, i, silent)
			visit(fmt.Sprintf("%d judges, and %d is silent", i, silent), n, broken)
		}
	}
}

func (e *explorer) explore(t *testing.T, n int, steps, crashes int8) (crowds int) {
	type origin struct {
		from int32
		what string
	}
	seen := map[uint64]bool{}
	var origins []origin
	var level []crowd
	var number []int32
	add := func(from int32, what string, c crowd, broken string) {
		if k := c.key(); broken == "" && seen[k] || t.Failed() {
			return
		} else {
			seen[k] = true
		}
		origins = append(origins, origin{from, what})
		if broken == "" {
			broken = e.check(c)
		}
		if broken != "" {
			trace := []string{broken}
			for at := int32(len(origins) - 1); at >= 0; at = origins[at].from {
				trace = append(trace, origins[at].what)
			}
			slices.Reverse(trace)
			t.Errorf("%d members with clocks %v: %q", n, e.clocks, trace)
		}
		level, number = append(level, c), append(number, int32(len(origins)-1))
	}
	var begin func(c crowd, i int)
	begin = func(c crowd, i int) {
		if i == n {
			add(-1, fmt.Sprint("they begin as ", c.of[:n]), c, "")
			return
		}
		for clock := range e.clocks {
			c.of[i] = one{clock: int8(clock), shown: int8(clock)}
			begin(c, i+1)
		}
	}
	begin(crowd{n: n, steps: steps, crashes: crashes}, 0)
	for len(level) > 0 {
		now, numbers := level, number
		level, number = nil, nil
		for i, c := range now {
			e.next(c, func(what string, n crowd, broken string) { add(numbers[i], what, n, broken) })
		}
	}
	return len(seen)
}

func TestExplore(t *testing.T) {
	s, h, apart := time.Second, time.Hour, Skew+slack+time.Millisecond // nearer, both verdicts are right
	for _, x := range []struct {
		clocks         []time.Duration
		members        int
		steps, crashes int8
		slow           bool
	}{
		{[]time.Duration{0, 9 * s, apart, 20 * s, h, -h}, 2, 3, 2, false},
		{[]time.Duration{0, 9 * s, h}, 3, 2, 0, false},
		{[]time.Duration{0, h}, 5, 2, 1, false},
		{[]time.Duration{0, 9 * s, apart, h, -h}, 3, 2, 1, true},
		{[]time.Duration{0, 9 * s, h}, 4, 2, 1, true},
		{[]time.Duration{0, apart, -h}, 4, 1, 2, true},
		{[]time.Duration{0, 9 * s, 21 * s}, 5, 1, 1, true},
	} {
		t.Run(fmt.Sprintf("%d members with %v", x.members, x.clocks), func(t *testing.T) {
			if x.slow {
				testenv.Slow(t)
			}
			e := explorer{clocks: x.clocks, now: time.Unix(1e9, 0)}
			t.Logf("%d crowds", e.explore(t, x.members, x.steps, x.crashes))
		})
	}
}
