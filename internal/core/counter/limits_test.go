package counter

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/sequencer"
	"github.com/firn-id/firn/store/memstore"
)

var perDay = sequencer.Dated{Every: sequencer.EveryDay, Digits: 3, Zone: "Europe/Berlin"}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestLimitsOfADate(t *testing.T) {
	midnight := at(t, "2026-11-27T00:00:00+01:00")
	rule, err := RuleOf(sequencer.Definition{Kind: sequencer.Counter, Dated: perDay, After: 20261127000})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		now      time.Time
		reserved int64
		want     Limits
	}{
		{midnight, 0, Limits{After: 20261127000, Last: 20261127999, Until: midnight.AddDate(0, 0, 1)}},
		// none that exceeds After
		{midnight.Add(-1), 20261126007, Limits{After: 20261127000, Last: 20261126999, Until: midnight}},
		{
			midnight.AddDate(0, 0, 1), 20261127999,
			Limits{After: 20261128000, Last: 20261128999, Until: midnight.AddDate(0, 0, 2)},
		},
		// Somebody's clock is ahead of this one, by less than floor.Skew, and by more.
		{
			midnight.Add(-9 * time.Second), 20261127001,
			Limits{After: 20261127000, Last: 20261127999, Until: midnight.AddDate(0, 0, 1)},
		},
		{midnight.Add(-11 * time.Second), 20261127001, Limits{After: 20261127000, Last: 20261126999, Until: midnight}},
	} {
		have := rule.Limits(c.now, c.reserved)
		if have.After != c.want.After || have.Last != c.want.Last || !have.Until.Equal(c.want.Until) {
			t.Errorf("at %v after %d: %v, want %v", c.now, c.reserved, have, c.want)
		}
	}
	if _, err := RuleOf(sequencer.Definition{
		Kind:  sequencer.Counter,
		Dated: sequencer.Dated{Zone: "Europe/Brelin"},
	}); err == nil ||
		err.Error() != `the zone "Europe/Brelin" is not known; want a name of the IANA database such as Europe/Berlin` {
		t.Errorf("%v", err)
	}
}

func TestLimitsOfATime(t *testing.T) {
	l := firn.Layout{
		Epoch: at(t, "2026-01-01T00:00:00Z"), Tick: time.Millisecond, TimeBits: 20, NodeBits: 3,
		SequenceBits: 2,
	}
	rule, err := RuleOf(sequencer.Definition{Order: sequencer.OrderStrict, Layout: l, After: 70})
	if err != nil {
		t.Fatal(err)
	}
	tolerance := floor.Skew.Milliseconds()
	end := int64(1)<<20 - 1
	for _, c := range []struct {
		now  time.Duration
		want Limits
	}{
		{time.Millisecond, Limits{70, (1+tolerance)<<5 + 31, l.TickStart(2), true}},
		{3*time.Millisecond - 1, Limits{70, (2+tolerance)<<5 + 31, l.TickStart(3), true}},
		{3 * time.Millisecond, Limits{3<<5 - 1, (3+tolerance)<<5 + 31, l.TickStart(4), true}},
		{-1, Limits{Last: -1}},
		{l.Lifetime().Sub(l.Epoch) - 1, Limits{After: end<<5 - 1, Last: end<<5 + 31}},
		{l.Lifetime().Sub(l.Epoch), Limits{Last: -1}},
		{24 * time.Hour, Limits{Last: -1}},
	} {
		if have := rule.Limits(l.Epoch.Add(c.now), 0); have != c.want {
			t.Errorf("%v after the epoch: %v, want %v", c.now, have, c.want)
		}
	}
	if e := (&ExhaustedError{soon: true}).Reason(); e != "overloaded" {
		t.Errorf("%s until the next tick", e)
	}
}

func (q *party) next() firn.ID {
	q.Helper()
	return q.take(1)[0]
}

func TestDatedNumbers(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) { // it is 2000-01-01T01:00:00 in Berlin
		p.Dated, p.pace = perDay, Pace{}
		a, b := p.party("a"), p.party("b")
		for _, want := range []firn.ID{20000101001, 20000101002, 20000101003} {
			if id := a.next(); id != want {
				t.Errorf("%d, want %d", id, want)
			}
		}
		if id := b.next(); id <= 20000101003 || id > 20000101999 {
			t.Errorf("%d", id)
		}
		// Blocks of a day that is over are not given any more.
		a.claim()
		time.Sleep(time.Until(at(t, "2000-01-01T23:59:59+01:00")))
		if id := a.next(); id/1000 != 20000101 {
			t.Errorf("%d before midnight", id)
		}
		time.Sleep(time.Second)
		for _, want := range []firn.ID{20000102001, 20000102002} {
			if id := a.next(); id != want {
				t.Errorf("%d after midnight, want %d", id, want)
			}
		}
		numbers := make([]firn.ID, 2)
		if err := b.Blocks().Fill(t.Context(), numbers[:0]); err != nil {
			t.Error(err)
		}
		if id := b.next(); id/1000 != 20000102 {
			t.Errorf("%d after midnight", id)
		}
		// More than the digits hold.
		for a.Claim(t.Context()) == nil {
			if _, err := a.Blocks().Take(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
		err := a.Claim(t.Context())
		if e, ok := errors.AsType[*ExhaustedError](err); !ok || e.Last != 20000102999 ||
			e.Error() != "the numbers end at 20000102999 until 2000-01-03T00:00:00+01:00, and fewer are left than "+
				"were asked for" {
			t.Errorf("%v", err)
		}
		time.Sleep(24 * time.Hour)
		if id := a.next(); id != 20000103001 {
			t.Errorf("%d on the next day", id)
		}
	})
}

func TestExpiredNumbersAreNotGiven(t *testing.T) {
	for by, take := range map[string]func(*Blocks) error{
		"Next": func(b *Blocks) error { _, err := b.Next(t.Context()); return err },
		"Fill": func(b *Blocks) error { return b.Fill(t.Context(), make([]firn.ID, 2)) },
		"Take": func(b *Blocks) error { _, err := b.Take(t.Context(), 2); return err },
	} {
		now := int64(100)
		b := newBlocks(func(number int64) int64 { return number }, func() int64 { return now })
		b.Add(Block{80, 100})
		b.Add(Block{101, 110})
		b.Fail(errStopped)
		now = 99
		if err := b.Ready(); err != nil {
			t.Error(err)
		}
		if err := take(b); err != nil {
			t.Errorf("%s before the end: %v", by, err)
		}
		given := b.Given()
		now = 110
		if err := take(b); !errors.Is(err, errStopped) || b.Given() != given {
			t.Errorf("%s after it: %v", by, err)
		}
		if d := b.Demand(9, nil); d.Next != 0 {
			t.Errorf("%+v are left", d)
		}
		if err := b.Ready(); !errors.Is(err, errStopped) {
			t.Error(err)
		}
	}
}

func TestAWrongClockRepeatsNoDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &place{T: t, service: memstore.NewService(), pace: Pace{Largest: 1}}
		p.Definition = sequencer.Definition{Kind: sequencer.Counter, Dated: perDay}
		ahead, right := p.party("ahead"), p.party("right")
		ahead.config.Clock = func() int64 { return time.Now().AddDate(0, 0, 1).UnixNano() }
		ahead.blocks = newBlocks(ahead.config.Rule.expiry, ahead.config.Clock)
		if id := ahead.next(); id != 20000102001 {
			t.Errorf("%d", id)
		}
		err := right.Claim(t.Context())
		if err == nil {
			err = right.Claim(t.Context())
		}
		if _, ok := errors.AsType[*AheadError](err); !ok {
			t.Errorf("%v", err)
		}
		time.Sleep(24 * time.Hour)
		if id := right.next(); id != 20000102002 {
			t.Errorf("%d", id)
		}
	})
}

// Blocks that expire before one is in use are not joined to what follows.
func TestExpiredBlocksAreNotJoined(t *testing.T) {
	now := int64(5)
	b := newBlocks(func(number int64) int64 { return number }, func() int64 { return now })
	b.Add(Block{1, 10})
	now = 11
	b.Add(Block{101, 110})
	if last, err := b.Take(t.Context(), 1); err != nil || last != 101 {
		t.Errorf("%d %v", last, err)
	}
}
