package peer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/internal/core/cluster"
)

// A judge says whether this machine's wall clock is believed: it compares it with the clocks that the other members
// wrote into their pulses. If these do not settle it, it asks up to five members through the log to write again.
// Package clocks has the rules; the judge reads, asks and waits. Its methods are safe for concurrent use.
type judge struct {
	others others
	clock  *firn.SteadyClock

	judging lock  // held while it judges
	known   known // used then

	latest   atomic.Pointer[judgement] // nil: none yet
	question atomic.Pointer[question]  // the latest of the log; nil: none yet
}

// others is what a judge sees of the cluster, and what it does there.
type others interface {
	Value() cluster.Value // that the member has reached
	ID() string           // of the member in it
	process() string      // the mark of its pulses

	Pulses(ctx context.Context) (map[string]Pulse, error)
	PulseOf(ctx context.Context, id string) (Pulse, error)

	endOfLog(ctx context.Context) (position int64, err error)
	askClocks(ctx context.Context) (question, error) // appends one

	lost() int64                                      // how often the store has lost data
	keepsAll(ctx context.Context, losses int64) error // an error if it has since
	tellVerdict(was, is clocks.Verdict)               // before the next judgement
}

const (
	judgeMost  = 5 * time.Second // how long judging may take
	answerMost = 2 * time.Second // how long those that were asked have
)

// hearBackoff paces the reads for answers.
var hearBackoff = retry.Backoff{First: 10 * time.Millisecond, Max: 200 * time.Millisecond}

// judgement is a verdict on this machine's wall clock.
type judgement struct {
	clocks.Verdict
	at    time.Time // by package time
	since time.Time // since when judgements are of its kind
	steps uint64    // of the wall, before
}

// err returns a *ClockError while most of the others are against the clock.
func (j judgement) err() error {
	if !j.Out() {
		return nil
	}
	return &ClockError{Ahead: j.Offset, Of: j.Against, Others: j.Others}
}

// question is an entry of the log that asks members for their clocks.
type question struct {
	position int64
	asked    []string
}

// newQuestion is that of an AskClocks of by, by the value after it. By answers, too: others may take the question for
// theirs.
func newQuestion(v cluster.Value, position int64, by string) question {
	return question{position, append(cluster.Asked(v, position, by), by)}
}

// known is what a judge knows of the clocks of others by their pulses.
type known struct {
	pulses map[string]knownPulse
	choice int64 // of those that readSome reads
	chosen bool  // that is new, and is to be read once more
}

// knownPulse is one that the judge has read.
type knownPulse struct {
	stamp string
	read  time.Time      // when the latest read began
	ahead clocks.Reading // how far the clock of its owner is
}

// offset returns by how much the wall clock is ahead of the others' median at least. Clocks whose pulses were read once
// do not count: how old those were is not known.
func (k *known) offset() time.Duration {
	var all []clocks.Reading
	for _, p := range k.pulses {
		if p.ahead != clocks.Unknown {
			all = append(all, p.ahead)
		}
	}
	return -clocks.Median(all)
}

// judged returns the latest judgement; at first, that of a clock that is alone.
func (j *judge) judged() judgement {
	if latest := j.latest.Load(); latest != nil {
		return *latest
	}
	return judgement{}
}

// outdated reports whether the latest judgement is older than that, or the wall has stepped since.
func (j *judge) outdated(age time.Duration) bool {
	latest := j.judged()
	return j.steps() != latest.steps || latest.at.IsZero() || time.Since(latest.at) >= age
}

// steps returns how many steps of the wall there were up to now.
func (j *judge) steps() uint64 {
	j.clock.Ahead() // compares
	ahead, back := j.clock.Steps()
	return ahead + back
}

// judge judges the clock unless the latest judgement is younger than that.
func (j *judge) judge(ctx context.Context, age time.Duration) error {
	if err := j.judging.lock(ctx); err != nil {
		return err
	}
	defer j.judging.unlock()
	if !j.outdated(age) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, judgeMost)
	defer cancel()
	was, losses := j.judged(), j.others.lost()
	for {
		is := judgement{steps: j.steps()}
		if is.steps != was.steps {
			j.known.pulses = nil
		}
		var err error
		if is.Verdict, err = j.compare(ctx, was.Verdict); err != nil {
			return fmt.Errorf("comparing clocks: %w", err)
		}
		if j.steps() != is.steps {
			continue // what was read before the step is compared with what the wall shows after it
		}
		if was.Out() && !is.Out() {
			if err := j.others.keepsAll(ctx, losses); err != nil {
				return fmt.Errorf("comparing clocks: %w", err)
			}
		}
		is.at = time.Now()
		is.since = is.at
		if was.Kind == is.Kind && !was.at.IsZero() {
			is.since = was.since
		}
		j.latest.Store(&is)
		j.others.tellVerdict(was.Verdict, is.Verdict)
		return nil
	}
}

// compare returns the verdict that follows another.
func (j *judge) compare(ctx context.Context, was clocks.Verdict) (clocks.Verdict, error) {
	began := time.Now()
	some, err := j.readSome(ctx)
	if err != nil {
		return was, err
	}
	few := j.readClocks(some, began)
	if is := clocks.Judge(few); is.Kind == clocks.Agreed && is.Against == 0 { // one that disagrees has it read on
		is.Offset = j.known.offset()
		return is, nil
	}
	if is, err := j.readMore(ctx, few); err != nil {
		return was, err
	} else if is.Kind == clocks.Agreed {
		is.Offset = j.known.offset()
		return is, nil
	}
	began = time.Now()
	all, err := j.others.Pulses(ctx)
	if err != nil {
		return was, err
	}
	is, ask := clocks.Look(was, j.readClocks(all, began))
	if is.Kind == clocks.Agreed {
		is.Offset = j.known.offset()
	}
	if !ask {
		return is, nil
	}
	answers, err := j.ask(ctx, len(all))
	if err != nil {
		return was, err
	}
	return clocks.Hear(was, answers), nil
}

// readSome reads the pulses of a few others in a cluster of more; else of none. So the cost for the store does not grow
// with the square of the members. It reads each choice twice, so that most have been written again when they are read.
func (j *judge) readSome(ctx context.Context) (map[string]Pulse, error) {
	v, id := j.others.Value(), j.others.ID()
	if j.known.chosen = !j.known.chosen; j.known.chosen {
		j.known.choice = rand.Int64()
	}
	others := cluster.Asked(v, j.known.choice, id)
	if v.Size() <= len(others)+1 {
		return nil, nil
	}
	few := make(map[string]Pulse, len(others))
	for _, id := range others {
		p, err := j.others.PulseOf(ctx, id)
		if err != nil {
			return nil, err
		}
		few[id] = p
	}
	return few, nil
}

// readMore returns the verdict of few clocks and 16 more, if nearly all of them surely agree with this one, and else
// none. So a few wrong clocks in a crowd do not have all who meet one read the pulses of all.
func (j *judge) readMore(ctx context.Context, few []clocks.Reading) (none clocks.Verdict, err error) {
	const more = 16
	v, from := j.others.Value(), rand.Int64()
	if v.Size() < 4*more || clocks.Judge(few).Against == 0 { // without one against it they were old, as others are
		return none, nil
	}
	for i := range int64(more) {
		p, err := j.others.PulseOf(ctx, v.InTurn(from+i))
		if err != nil {
			return none, err
		}
		if r, ok := j.read(p, p.Every+time.Second); ok {
			few = append(few, r)
		}
	}
	if is := clocks.Judge(few); is.Others >= more && 4*is.With >= 3*is.Others {
		return is, nil
	}
	return none, nil
}

// readClocks reads the clocks of others in their pulses, which were read from a time on, for ones that the living have
// written. What it notes for the offset is sure of the dead, too: it takes only pulses that were written again since
// they were last read.
func (j *judge) readClocks(pulses map[string]Pulse, began time.Time) (all []clocks.Reading) {
	if len(pulses) == 0 {
		return nil
	}
	v, now := j.others.Value(), make(map[string]knownPulse, len(pulses))
	for id, k := range j.known.pulses {
		if _, read := pulses[id]; read || v.IsMember(id) {
			now[id] = k
		}
	}
	for id, p := range pulses {
		r, ok := j.read(p, p.Every+time.Second)
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
	j.known.pulses = now
	return all
}

// read reads another's clock in its pulse, which is at most so old.
func (j *judge) read(p Pulse, age time.Duration) (clocks.Reading, bool) {
	return clocks.Read(p.Clock, time.Unix(0, j.clock.Wall()), age), !p.Clock.IsZero() && p.Mark != j.others.process()
}

// ask asks members for their clocks, and returns those that answered in time. Where others ask at the same time, as
// when all clocks step together, one question serves all.
func (j *judge) ask(ctx context.Context, crowd int) ([]clocks.Reading, error) {
	since := time.Now()
	end, err := j.others.endOfLog(ctx) // what comes later was appended since
	if err != nil {
		return nil, err
	}
	if err := retry.Sleep(ctx, rand.N(min(time.Duration(crowd)*time.Millisecond, time.Second)+1)); err != nil {
		return nil, err
	}
	if q := j.question.Load(); q != nil && q.position > end {
		return j.hear(ctx, *q, since)
	}
	since = time.Now()
	q, err := j.others.askClocks(ctx)
	if err != nil {
		return nil, err
	}
	return j.hear(ctx, q, since)
}

// hear reads the answers to a question that was appended since then, until all have answered or the time is over.
func (j *judge) hear(ctx context.Context, q question, since time.Time) (answers []clocks.Reading, err error) {
	waiting, deadline := q.asked, time.Now().Add(answerMost)
	for tries := 0; len(waiting) > 0; tries++ {
		var silent []string
		for _, id := range waiting {
			p, err := j.others.PulseOf(ctx, id)
			if err != nil {
				return nil, err
			}
			r, ok := j.read(p, time.Since(since))
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
