package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A log in which an entry is passed over leads to the value of a log without it, but for the count of entries and that
// the value knows it. A checkpoint carries that. It makes no difference where the log was cut, nor whether a program
// could have read the entry.
func TestSkipped(t *testing.T) {
	commands := []Command{
		PrepareJoin{"a"},
		PrepareJoin{"b"},
		NotifyWatchers{"b"},
		AcceptJoin{"b"},
		CreateSequencer{Sequencer: "orders", Definition: small(2, Allocation{})},
		Attach{Sequencer: "orders", Member: "b"},
		Attach{Sequencer: "orders", Member: "a"},
		Expel{"b", "a"},
	}
	text := func(v Value) string {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for at := range commands {
		for cut := range commands {
			var with, without Value
			for i, c := range commands {
				e := Entry{Position: int64(2 * i), Command: c}
				if i == at {
					e.Command = Skipped{"poison"}
				} else {
					without, _ = Apply(without, e)
				}
				with, _ = Apply(with, e)
				if i == cut {
					with = restore(t, checkpoint(t, with))
				}
			}
			note := fmt.Sprintf(`,"skipped":[%d]`, 2*at)
			if got := text(with); !strings.Contains(got, note) || strings.Replace(got, note, "", 1) != text(without) {
				t.Errorf("without entry %d, cut at %d:\n%s\nwant, with the note,\n%s", at, cut, got, text(without))
			}
			if with.Entries() != int64(len(commands)) || !with.Skipped(int64(2*at), "poison") ||
				with.Skipped(int64(2*at), "other") || with.Skipped(int64(2*at)+1, "poison") {
				t.Errorf("without entry %d, cut at %d: %d entries, skipped %v", at, cut, with.Entries(), with.skipped)
			}
		}
	}
}

// Nobody can write into the log that an entry is passed over: members would not agree on it before they meet the entry.
func TestSkippedIsInNoLog(t *testing.T) {
	data, err := Encode(Skipped{"e"}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	var unreadable *UnreadableError
	if e, err := Decode(7, data); !errors.As(err, &unreadable) {
		t.Errorf("%+v, %v; want it unreadable", e, err)
	}
	// A log that was printed has it, to be replayed.
	printed, err := json.Marshal(Entry{Position: 7, Command: Skipped{"e"}})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := ParseEntry(printed); err != nil || e.Command != (Skipped{"e"}) {
		t.Errorf("%s is read as %+v, %v", printed, e, err)
	}
	for _, wrong := range []string{
		`"skipped":[{"entry":"","at":1}]`, `"skipped":[{"entry":"e","at":9}]`,
		`"skipped":[{"entry":"e","at":1},{"entry":"f","at":1}]`, `"skipped":[{"entry":"e","at":-1}]`,
	} {
		if _, err := DecodeCheckpoint(
			[]byte(`{"version":2,"position":3,"entries":2,"ring":[],"joins":[],"sequencers":{},` + wrong +
				`}`)); err == nil {
			t.Errorf("a checkpoint with %s is taken", wrong)
		}
	}
}
