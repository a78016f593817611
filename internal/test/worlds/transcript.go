package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/core/journal"
)

// line is a line of the transcript, which is made only if somebody reads it.
type line struct {
	at   time.Duration
	text func() string
}

// tell adds a line to the transcript.
func (w *world) tell(text func() string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.transcript = append(w.transcript, line{w.now(), text})
}

// tells returns the transcript: what the plan had happen, and what members wrote into their journals.
func (w *world) tells() (lines []string) {
	all := w.transcript
	for _, p := range w.processes {
		all = append(all, p.wrote()...)
	}
	slices.SortStableFunc(all, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	for _, l := range all {
		if text := l.text(); text != "" {
			lines = append(lines, stamp(l.at)+"  "+text)
		}
	}
	return lines
}

// stamp is an instant of a world, such as 2m03.250s.
func stamp(at time.Duration) string {
	if at < 0 { // of no ID: a layout's epoch
		return "before 0m00.000s"
	}
	return fmt.Sprintf("%dm%06.3fs", at/time.Minute, (at % time.Minute).Seconds())
}

// wrote returns what a process's journal tells: of answers, and not of what was sent; and where the same happens to a
// node ID again and again, the first and the last of it.
func (p *process) wrote() (lines []line) {
	if p.journal == nil {
		return nil
	}
	type what struct {
		sequencer string
		node      int64
	}
	last, row := map[what]journal.Do{}, map[what][]int{} // what happened last, and the lines that tell it
	for d := json.NewDecoder(bytes.NewReader(p.journal.Bytes())); ; {
		var l journal.Line
		if d.Decode(&l) != nil {
			return lines
		}
		if l.Do == journal.Send || l.Do == journal.Bound {
			continue
		}
		next := line{l.At.Sub(epoch), func() string { return words(p.name, l) }}
		of := what{l.Sequencer, l.Node}
		if last[of] != l.Do {
			last[of], row[of] = l.Do, nil
		}
		if at := row[of]; len(at) == 2 {
			lines[at[1]].text = func() string { return "" }
			at[1] = len(lines)
		} else {
			row[of] = append(at, len(lines))
		}
		lines = append(lines, next)
	}
}

// words tells a line of a journal in the words of the glossary.
func words(who string, l journal.Line) string {
	at := func(ms int64) string { return stamp(time.UnixMilli(ms).Sub(epoch)) }
	id := fmt.Sprintf("node ID %d of %s", l.Node, l.Sequencer)
	switch l.Do {
	case journal.Read:
		if l.Version == 0 {
			return fmt.Sprintf("   %s reads %s, which nobody has used", who, id)
		}
		return fmt.Sprintf("   %s reads %s: horizon %s, version %d; its floor is %s", who, id, at(l.Horizon),
			l.Version, at(l.Floor))
	case journal.Applied:
		return fmt.Sprintf("   %s may use %s up to its horizon, %s, version %d", who, id, at(l.Horizon), l.Version)
	case journal.Conflict:
		return fmt.Sprintf("   %s learns that %s has another version", who, id)
	case journal.Doubt:
		return fmt.Sprintf("   %s gets no answer about %s", who, id)
	case journal.Seen:
		return fmt.Sprintf("   %s reads %s again: horizon %s, version %d", who, id, at(l.Horizon), l.Version)
	case journal.Stop:
		return fmt.Sprintf("   %s stops; it has used %s up to %s", who, id, at(l.Until))
	case journal.Given:
		return fmt.Sprintf("   %s gives %d IDs of %s, from %s to %s", who, l.Count, id, at(l.From), at(l.Until))
	case journal.Loss:
		return fmt.Sprintf("   %s finds that the store has lost data", who)
	default:
		return ""
	}
}
