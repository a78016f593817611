package peer

import (
	"context"
	"errors"
	"fmt"
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

// A member compares its wall clock with those of the others, by their pulses: before it claims a node ID, when the
// wall steps, and every third of the window. While most of them disagree with it, it claims none and extends none.
// Where a look at what they wrote does not settle it, it asks a few of them, through the log, to write again. See
// package clocks, which judges.

const (
	lookEvery  = time.Second     // how often it looks whether the wall has stepped, and how long a verdict serves for other claims
	judgeMost  = 5 * time.Second // how long judging may take
	answerMost = 2 * time.Second // how long those that were asked have
)

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

// judgement is a verdict on this machine's wall clock.
type judgement struct {
	clocks.Verdict
	at    time.Time // by package time
	since time.Time // since when judgements are of its kind
	steps uint64    // of the wall, before
}

// judged returns the latest judgement; at first, that of a clock that is alone.
func (m *Member) judged() judgement {
	if j := m.judgement.Load(); j != nil {
		return *j
	}
	return judgement{}
}

// err returns a *ClockError while most of the others are against the clock.
func (j judgement) err() error {
	if !j.Out() {
		return nil
	}
	return &ClockError{Ahead: j.Offset, Of: j.Against, Others: j.Others}
}

// steps returns how many steps of the wall there were up to now.
func (m *Member) steps() uint64 {
	m.options.Clock.Ahead() // compares
	ahead, back := m.options.Clock.Steps()
	return ahead + back
}

// watchClock judges the clock when the wall has stepped, and every third of the window, until ctx ends.
func (m *Member) watchClock(ctx context.Context) {
	for retry.Sleep(ctx, lookEvery) == nil {
		if m.Ready() != nil {
			continue // it asks as a member, and joins whatever its clock shows
		}
		j := m.judged()
		var err error
		third := m.options.Window / 3
		jitter := rand.N(third / 5) // so that pulses are read at different ages
		if m.steps() != j.steps || time.Since(j.at) >= third-jitter {
			if m.judging.lock(ctx) != nil {
				return
			}
			err = m.judge(ctx)
			m.judging.unlock()
			if err == nil {
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

// checkClock returns a *ClockError when most of the others are against the clock, by a judgement of a moment ago or a
// new one.
func (m *Member) checkClock(ctx context.Context) error {
	if err := m.judging.lock(ctx); err != nil {
		return err
	}
	defer m.judging.unlock()
	if j := m.judged(); m.steps() != j.steps || j.at.IsZero() || time.Since(j.at) >= lookEvery {
		if err := m.judge(ctx); err != nil {
			return err
		}
	}
	if err := m.judged().err(); err != nil {
		return err
	}
	return m.adjust(ctx)
}

// judge judges the clock. judging is held.
func (m *Member) judge(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, judgeMost)
	defer cancel()
	was, losses := m.judged(), m.losses.Load()
	for {
		is := judgement{steps: m.steps()}
		if is.steps != was.steps {
			m.known.pulses = nil
		}
		var err error
		if is.Verdict, err = m.compare(ctx, was.Verdict); err != nil {
			return fmt.Errorf("comparing clocks: %w", err)
		}
		if m.steps() != is.steps {
			continue // what was read before the step is compared with what the wall shows after it
		}
		if was.Out() && !is.Out() {
			if err := m.keepsAll(ctx, losses); err != nil {
				return fmt.Errorf("comparing clocks: %w", err)
			}
		}
		is.at = time.Now()
		is.since = is.at
		if was.Kind == is.Kind && !was.at.IsZero() {
			is.since = was.since
		}
		m.judgement.Store(&is)
		m.tellVerdict(was.Verdict, is.Verdict)
		return nil
	}
}

// tellVerdict has everybody act by a verdict.
func (m *Member) tellVerdict(was, is clocks.Verdict) {
	if was.Kind == is.Kind {
		return
	}
	switch {
	case is.Out():
		m.log.Error("most other members disagree with this machine's clock: no node ID is claimed or extended until it is set right", "clock", is)
	case is.Kind == clocks.Tied:
		m.log.Warn("this clock and those of other members disagree, and there is no majority: it is believed", "clock", is)
	case was.Out():
		m.log.Info("other members agree with this machine's clock again", "clock", is)
	}
	if was.Out() != is.Out() {
		m.renewSoon()
		for _, s := range m.Sequencers() {
			s.poke()
		}
	}
}

// compare returns the verdict that follows another.
func (m *Member) compare(ctx context.Context, was clocks.Verdict) (clocks.Verdict, error) {
	began := time.Now()
	some, err := m.readSome(ctx)
	if err != nil {
		return was, err
	}
	few := m.readClocks(some, began)
	if is := clocks.Judge(few); is.Kind == clocks.Agreed && is.Against == 0 { // one that disagrees has it look at all
		is.Offset = m.known.offset()
		return is, nil
	}
	began = time.Now()
	all, err := m.Pulses(ctx)
	if err != nil {
		return was, err
	}
	readings := m.readClocks(all, began)
	is, ask := clocks.Look(was, readings)
	if is.Kind == clocks.Agreed {
		is.Offset = m.known.offset()
	}
	if !ask {
		return is, nil
	}
	answers, err := m.ask(ctx, len(all))
	if err != nil {
		return was, err
	}
	return clocks.Hear(was, answers), nil
}

// readSome reads the pulses of a few others in a cluster of more; else of none. So the cost for the store does not grow
// with the square of the members. It reads each choice twice, so that most have been written again when they are read.
func (m *Member) readSome(ctx context.Context) (map[string]Pulse, error) {
	v, id := m.Value(), m.ID()
	if m.known.chosen = !m.known.chosen; m.known.chosen {
		m.known.choice = rand.Int64()
	}
	others := cluster.Asked(v, m.known.choice, id)
	if v.Size() <= len(others)+1 {
		return nil, nil
	}
	few := make(map[string]Pulse, len(others))
	for _, id := range others {
		kv, err := m.store.Get(ctx, pulseKey(id))
		if err != nil {
			return nil, err
		}
		few[id] = readPulse(kv.Value)
	}
	return few, nil
}

// readClocks reads the clocks of others in their pulses, which were read from a time on, for ones that the living have
// written. What it notes for the offset is sure of the dead, too: it takes only pulses that were written again since they
// were last read.
func (m *Member) readClocks(pulses map[string]Pulse, began time.Time) (all []clocks.Reading) {
	if len(pulses) == 0 {
		return nil
	}
	v, now := m.Value(), make(map[string]knownPulse, len(pulses))
	for id, k := range m.known.pulses {
		if _, read := pulses[id]; read || v.IsMember(id) {
			now[id] = k
		}
	}
	for id, p := range pulses {
		r, ok := m.read(p, p.Every+time.Second)
		if !ok {
			continue
		}
		all = append(all, r)
		k, ok := now[id]
		if !ok {
			k.ahead = clocks.Unknown
		} else if k.stamp != p.Stamp {
			r.Most = r.Least + time.Since(k.read) + time.Second
			k.ahead = clocks.Narrow(k.ahead, began.Sub(k.read), r)
		}
		k.stamp, k.read = p.Stamp, began
		now[id] = k
	}
	m.known.pulses = now
	return all
}

// known is what a member knows of the clocks of others by their pulses.
type known struct {
	pulses map[string]knownPulse
	choice int64 // of those that readSome reads
	chosen bool  // that is new, and is to be read once more
}

// knownPulse is one that the member has read.
type knownPulse struct {
	stamp string
	read  time.Time      // when the latest read began
	ahead clocks.Reading // how far the clock of its owner is
}

// offset returns by how much the wall clock is ahead of the others' median at least.
func (k *known) offset() time.Duration {
	var all []clocks.Reading
	for _, p := range k.pulses {
		all = append(all, p.ahead)
	}
	return -clocks.Median(all)
}

// read reads another's clock in its pulse, which is at most so old.
func (m *Member) read(p Pulse, age time.Duration) (clocks.Reading, bool) {
	return clocks.Read(p.Clock, m.Wall(), age), !p.Clock.IsZero() && p.Mark != *m.mark.Load()
}

// question is an entry of the log that asks members for their clocks.
type question struct {
	position int64
	asked    []string
}

// newQuestion is that of an AskClocks of by, by the value after it. By answers, too: others may take the question for theirs.
func newQuestion(v cluster.Value, position int64, by string) question {
	return question{position, append(cluster.Asked(v, position, by), by)}
}

// heard notes a question of the log, and has the member answer it if it is asked. Called by the player.
func (m *Member) heard(q question) {
	m.question.Store(&q)
	if m.incarnation != nil && slices.Contains(q.asked, m.incarnation.id) {
		m.answer(q.position)
	}
}

// answer has the pulse written at once, as the entry at a position asks for. Called by the player.
func (m *Member) answer(position int64) {
	m.incarnation.answers.Store(position)
	m.renewSoon()
}

// ask asks members for their clocks, and returns those that answered in time. Where others ask at the same time, as
// when all clocks step together, one question serves all.
func (m *Member) ask(ctx context.Context, crowd int) ([]clocks.Reading, error) {
	since, v := time.Now(), m.Value()
	batch, err := m.store.Read(ctx, store.Position(v.Position()))
	if err != nil {
		return nil, err
	}
	end := v.Position() // of the log: what comes later was appended since
	for _, e := range batch.Entries {
		end = int64(e.Position)
	}
	if err := retry.Sleep(ctx, rand.N(min(time.Duration(crowd)*time.Millisecond, time.Second)+1)); err != nil {
		return nil, err
	}
	q := m.question.Load()
	if q == nil || q.position <= end {
		since = time.Now()
		var by string
		o, err := m.do(ctx, func(member string) cluster.Command {
			by = member
			return cluster.AskClocks{By: by}
		})
		if err != nil {
			return nil, err
		}
		if o.missed {
			return nil, errMissed
		}
		q = new(newQuestion(o.value, o.value.Position(), by))
	}
	return m.hear(ctx, q, since)
}

// hear reads the answers to a question that was appended since then, until all have answered or the time is over.
func (m *Member) hear(ctx context.Context, q *question, since time.Time) (answers []clocks.Reading, err error) {
	waiting, deadline := q.asked, time.Now().Add(answerMost)
	for tries := 0; len(waiting) > 0; tries++ {
		var silent []string
		for _, id := range waiting {
			kv, err := m.store.Get(ctx, pulseKey(id))
			if err != nil {
				return nil, err
			}
			p := readPulse(kv.Value)
			r, ok := m.read(p, time.Since(since))
			switch {
			case ok && p.Answers >= q.position:
				answers = append(answers, r)
			case ok:
				silent = append(silent, id)
			}
		}
		waiting = silent
		if len(waiting) == 0 || !time.Now().Before(deadline) {
			break
		}
		if err := retry.Sleep(ctx, hearBackoff.After(tries)); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// hearBackoff paces the looks for answers.
var hearBackoff = retry.Backoff{First: 10 * time.Millisecond, Max: 200 * time.Millisecond}

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
		m.log.Info("the wall clock has stepped ahead, and no majority of the others disagrees: following it", "by", ahead)
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
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sequencers {
		for _, l := range s.status.Load().lanes {
			if l.state.Tenures != [2]attachment.Tenure{} || l.used.After(m.Wall()) {
				return false
			}
		}
	}
	return true
}
