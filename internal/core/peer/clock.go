package peer

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/attachment"
	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/store"
)

// checkEvery is how often a member checks whether the wall has stepped, and how long a verdict serves for other claims.
const checkEvery = time.Second

// ClockError is wrapped in an ErrNotReady while most of the other members agree with each other about the time, and
// not with this machine's wall clock. It passes by itself once the clocks agree.
type ClockError struct {
	Ahead      time.Duration // of the median of those others, at least; negative: behind
	Of, Others int           // so many of the others agree with each other
}

func (e *ClockError) Error() string {
	kind := clocks.Ahead
	if e.Ahead < 0 {
		kind = clocks.Behind
	}
	return "this clock is " + clocks.Verdict{Kind: kind, Offset: e.Ahead, Against: e.Of, Others: e.Others}.String()
}

// Reason returns the code of the error, as docs/errors.md has it.
func (*ClockError) Reason() string { return "clock" }

// judged returns the latest judgement on the wall clock.
func (m *Member) judged() judgement { return m.judge.judged() }

// watchClock judges the clock when the wall has stepped, and as often as pulses are written, until ctx ends.
func (m *Member) watchClock(ctx context.Context) {
	for retry.Sleep(ctx, checkEvery) == nil {
		if m.Ready() != nil {
			continue // it asks as a member, and joins whatever its clock shows
		}
		var err error
		every := m.options.every()
		jitter := rand.N(every / 5) // so that pulses are read at different ages
		if age := every - jitter; m.judge.outdated(age) {
			if err = m.judge.judge(ctx, age); err == nil {
				err = m.heedFloor(ctx)
			}
		}
		if err == nil && !m.judged().Out() {
			err = m.adjust(ctx)
		}
		if err != nil && err != errClaiming {
			m.troubles.note(ctx, "can't compare clocks at present, trying again", err)
		}
	}
}

// checkClock returns a *ClockError when most of the others are against the clock, by a judgement that is younger than
// age and than the latest step of the wall, or a new one.
func (m *Member) checkClock(ctx context.Context, age time.Duration) error {
	if err := m.judge.judge(ctx, age); err != nil {
		return err
	}
	if err := m.judged().err(); err != nil {
		return err
	}
	return m.adjust(ctx)
}

// What the judge sees of the cluster, and does there.

func (m *Member) process() string { return *m.mark.Load() }

func (m *Member) lost() int64 { return m.losses.Load() }

func (m *Member) endOfLog(ctx context.Context) (int64, error) {
	end := m.Value().Position()
	batch, err := m.store.Read(ctx, store.Position(end))
	for _, e := range batch.Entries {
		end = int64(e.Position)
	}
	return end, err
}

func (m *Member) askClocks(ctx context.Context) (question, error) {
	var by string
	o, err := m.do(ctx, func(member string) cluster.Command {
		by = member
		return cluster.AskClocks{By: by}
	})
	if err == nil && o.missed {
		err = errMissed
	}
	if err != nil {
		return question{}, err
	}
	return newQuestion(o.value, o.value.Position(), by), nil
}

// tellVerdict has everybody act by a verdict.
func (m *Member) tellVerdict(was, is clocks.Verdict) {
	if was.Kind == is.Kind {
		return
	}
	switch {
	case is.Out():
		m.log.Error("most other members disagree with this machine's clock: no node ID is claimed or extended until "+
			"it is set right", "clock", is)
	case is.Kind == clocks.Tied:
		m.log.Warn("this clock and those of other members disagree, and there is no majority: it is believed",
			"clock", is)
	case was.Out():
		m.log.Info("other members agree with this machine's clock again", "clock", is)
	}
	if was.Out() != is.Out() {
		m.keeper.hurry()
		for _, s := range m.Sequencers() {
			s.poke()
		}
	}
}

// heard notes a question of the log, and has the member answer it if it is asked. Called by the player.
func (p *player) heard(q question) {
	p.judge.question.Store(&q)
	if p.incarnation != nil && slices.Contains(q.asked, p.incarnation.id) {
		p.answer(q.position)
	}
}

// answer has the pulse written at once, as the entry at a position asks for. Called by the player.
func (p *player) answer(position int64) {
	p.incarnation.answers.Store(position)
	p.keeper.hurry()
}

// adjust brings ID time to the wall, which is believed. A member without node IDs takes the wall's time, whichever way
// that lies. Another one follows a step ahead once its horizons lie beyond it, so that callers notice nothing; it
// approaches a wall that is behind by itself.
func (m *Member) adjust(ctx context.Context) error {
	clock := m.options.Clock
	if ahead := clock.Ahead(); ahead == 0 && (clock.Offset().Abs() < time.Millisecond || !m.idle()) {
		return nil
	}
	if err := m.beginClaim(-1); err != nil { // whose horizon would be that of the time before
		return err
	}
	defer m.endClaim(-1)
	ahead := clock.Ahead()
	switch {
	case m.idle():
		clock.Reset()
	case ahead == 0:
		return nil
	default:
		if err := m.extend(ctx, m.options.Window, ahead); err != nil {
			return err
		}
		if clock.Ahead() > ahead+fence.DefaultMaxStep {
			return nil // it has stepped further, which is judged next
		}
		clock.Follow()
	}
	if ahead != 0 {
		m.believed.Add(1)
		m.log.Info("the wall clock has stepped ahead, and no majority of the others disagrees: following it",
			"by", ahead)
	}
	for _, s := range m.Sequencers() {
		s.poke() // a floor may be reached
	}
	return nil
}

var errClaiming = errors.New("node IDs can't be claimed while ID time follows the wall clock, nor the other way round")

// beginClaim begins a claim, or with -1 to bring ID time to the wall: many claims may be under way, or the other alone.
func (m *Member) beginClaim(n int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.claims < 0 || n < 0 && m.claims > 0 {
		return errClaiming
	}
	m.claims += n
	return nil
}

func (m *Member) endClaim(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.claims -= n
}

// idle reports whether the member has no node ID, and has given no ID beyond what the wall shows now: its clock may
// go back.
func (m *Member) idle() bool {
	for _, s := range m.registry.all() {
		if st := s.status.Load(); st.state.Tenures != [2]attachment.Tenure{} || st.used.After(m.Wall()) {
			return false
		}
	}
	return true
}
