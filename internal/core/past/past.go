// Package past gives IDs to instants of the past, under one node ID. Its functions are pure. A job gives them in
// ascending order: what it has given is a place, a tick and a sequence in it, below which nothing is left.
package past

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
)

// Rule is how a job gives IDs.
type Rule struct {
	Layout firn.Layout // of the IDs
	Node   int64       // as Layout.NodeID has it
	Until  time.Time   // no ID is of a later instant

	// Move: an instant that has no ID left gets one of the next tick that has. Else it gets an error.
	Move bool
}

// Progress is how far a job has got. The zero value is that of a node ID that was never used.
type Progress struct {
	spot
	before spot   // that of the call before
	call   string // the Call that led here; empty: it had no key
}

// spot is a place, and the tick of the last instant for which an ID was asked: later calls ask for no earlier one.
type spot struct{ place, tick int64 }

// Begin returns the progress of a job that gives IDs from an instant on, whatever it has given before. An error is
// returned when the instant lies beyond the layout's lifetime.
func (r Rule) Begin(p Progress, from time.Time) (Progress, error) {
	if !from.After(r.Layout.Epoch) {
		return p, nil
	}
	tick, err := r.Layout.TickAt(from.Add(r.Layout.Tick - 1)) // the first one that begins no earlier
	p.place, p.tick = max(p.place, tick<<r.Layout.SequenceBits), max(p.tick, tick)
	return p, err
}

// String returns the progress as Parse reads it, without spaces.
func (p Progress) String() string {
	return fmt.Sprintf("%d.%d.%d.%d.%s", p.place, p.tick, p.before.place, p.before.tick, p.call)
}

// Parse reads what String has returned.
func Parse(text string) (p Progress, err error) {
	fields := strings.Split(text, ".")
	if len(fields) != 5 {
		return p, fmt.Errorf("the progress of a job is %.100q; want 5 fields", text)
	}
	for i, n := range []*int64{&p.place, &p.tick, &p.before.place, &p.before.tick} {
		if *n, err = strconv.ParseInt(fields[i], 10, 64); err != nil || *n < 0 {
			return Progress{}, fmt.Errorf("the progress of a job is %.100q; want a number in place of %q", text,
				fields[i])
		}
	}
	p.call = fields[4]
	return p, nil
}

// Reached returns the instant before which the job gives no ID.
func (r Rule) Reached(p Progress) time.Time { return r.Layout.TickStart(p.tick) }

// End returns the instant at which the last tick of which the job has given an ID ends.
func (r Rule) End(p Progress) time.Time {
	return r.Layout.TickStart((p.place-1)>>r.Layout.SequenceBits + 1)
}

// Holds reports whether an ID is one that the job has given. A *RefusedError is returned when it is of another node ID,
// or not of the layout.
func (r Rule) Holds(p Progress, id firn.ID) (bool, error) {
	parts, err := r.Layout.Decompose(id)
	if err != nil {
		return false, refuse("%v", err)
	}
	if node := parts.Datacenter<<r.Layout.NodeBits | parts.Node; node != r.Node {
		return false, refuse("the ID %d is of the node ID %d; want one of %d, which the job has", id, node, r.Node)
	}
	return parts.Tick<<r.Layout.SequenceBits|parts.Sequence < p.place, nil
}

// Call identifies a call by its key, and by what it asks for. It is empty without a key.
func (r Rule) Call(key string, times []time.Time) string {
	if key == "" {
		return ""
	}
	b := fmt.Appendf(nil, "%q %v", key, r.Move)
	for _, t := range times {
		b = binary.LittleEndian.AppendUint64(b, uint64(t.Unix()))
		b = binary.LittleEndian.AppendUint32(b, uint32(t.Nanosecond()))
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// RefusedError is returned when an instant gets no ID, or what the caller says of a job is not so.
type RefusedError string

func (e *RefusedError) Error() string { return string(*e) }

// Reason returns the code of the error, as docs/errors.md has it.
func (*RefusedError) Reason() string { return "refused" }

func refuse(format string, values ...any) error {
	e := RefusedError(fmt.Sprintf(format, values...))
	return &e
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Give returns an ID for each instant, in their order, and the progress after them: each has the tick that its instant
// lies in, or a later one as Move says. If the call is the one that has led to the progress, then the IDs are those
// that it got. Moved is how many have a later tick. A *RefusedError is returned when an instant gets no ID; then none
// does.
func (r Rule) Give(p Progress, times []time.Time, call string) (after Progress, ids []firn.ID, moved int, err error) {
	if call != "" && call == p.call {
		_, ids, moved, err = r.Give(Progress{spot: p.before}, times, "")
		return p, ids, moved, err
	}
	if len(times) == 0 {
		return p, nil, 0, nil
	}
	ticks, err := r.ticks(times)
	if err != nil {
		return p, nil, 0, err
	}
	order := make([]int, len(times))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ticks[a], ticks[b]) })
	last, _ := r.Layout.TickAt(r.Until)
	after, ids = Progress{p.spot, p.spot, call}, make([]firn.ID, len(times))
	for _, i := range order {
		why := ""
		place := max(ticks[i]<<r.Layout.SequenceBits, after.place)
		tick := place >> r.Layout.SequenceBits
		switch {
		case ticks[i] < after.tick:
			why = "the job gives IDs from " + stamp(r.Reached(p)) + " on; want no earlier time, or another job"
		case tick > last:
			why = "its ID would be of a time that has not come"
		case tick != ticks[i] && !r.Move:
			why = fmt.Sprintf("all %d IDs of this tick are given; want fewer, or that it is moved to the next tick",
				int64(1)<<r.Layout.SequenceBits)
		}
		if why != "" {
			return p, nil, 0, refuse("times[%d] is %s: %s", i, stamp(times[i]), why)
		}
		if tick != ticks[i] {
			moved++
		}
		if ids[i], err = r.id(place); err != nil {
			return p, nil, 0, err
		}
		after.spot = spot{place + 1, ticks[i]}
	}
	return after, ids, moved, nil
}

// ticks returns those that the instants lie in.
func (r Rule) ticks(times []time.Time) (ticks []int64, err error) {
	ticks = make([]int64, len(times))
	for i, t := range times {
		if t.After(r.Until) {
			return nil, refuse("times[%d] is %s, which has not come; want none after %s", i, stamp(t), stamp(r.Until))
		}
		if ticks[i], err = r.Layout.TickAt(t); err != nil {
			return nil, refuse("times[%d]: %v", i, err)
		}
	}
	return ticks, nil
}

func (r Rule) id(place int64) (firn.ID, error) {
	l := r.Layout
	return l.Compose(firn.Parts{
		Tick: place >> l.SequenceBits, Datacenter: r.Node >> l.NodeBits, Node: r.Node & (1<<l.NodeBits - 1),
		Sequence: place & (1<<l.SequenceBits - 1),
	})
}
