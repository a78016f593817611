package cluster

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// everyCommand is one of each.
var everyCommand = []Command{
	PrepareJoin{"a"},
	NotifyWatchers{"a"},
	AcceptJoin{"a"},
	AbortJoin{"a"},
	Leave{"a"},
	PeerGC{"a"},
	CreateSequencer{"orders", small(100, Allocation{Kind: AllocateCount, Count: 3})},
	DestroySequencer{"orders", 0},
	DestroySequencer{"orders", 17},
	Attach{"orders", "a", nil},
	Attach{"orders", "ä<&>", &Range{0, 0}},
	Detach{"orders", "a"},
	Decline{"orders", "a", 0},
}

func TestCommandsAreReadAsWritten(t *testing.T) {
	for _, c := range everyCommand {
		data, err := Encode(c)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if back, err := Decode(data); err != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%s: %+v %v, want %+v", data, back, err, c)
		}
		e := Entry{7, c}
		if data, err = json.Marshal(e); err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
		if back, err := ParseEntry(data); err != nil || !reflect.DeepEqual(back, e) {
			t.Errorf("%s: %+v %v, want %+v", data, back, err, e)
		}
	}
}

func TestUnreadableEntries(t *testing.T) {
	for text, why := range map[string]string{
		``:     "empty",
		`null`: `"version" is missing`,
		`[]`:   "array",
		`{"command":"leave-cluster","args":{"member":"a"}}`:                                                        `"version" is missing`,
		`{"version":2,"command":"leave-cluster","args":{"member":"a"}}`:                                            "version 2",
		`{"version":1,"command":"fly","args":{}}`:                                                                  `"fly"`,
		`{"version":1,"args":{}}`:                                                                                  `"command" is missing`,
		`{"version":1,"command":"leave-cluster"}`:                                                                  `"args" is missing`,
		`{"version":1,"command":"leave-cluster","args":{"member":"a"},"more":1}`:                                   `"more"`,
		`{"version":1,"command":"leave-cluster","args":{"member":"a","more":1}}`:                                   `"more"`,
		`{"version":1,"command":"leave-cluster","args":{}}`:                                                        `"member" is missing`,
		`{"version":1,"command":"leave-cluster","args":null}`:                                                      `"member" is missing`,
		`{"version":1,"command":"leave-cluster","args":{"member":7}}`:                                              "number",
		`{"version":1,"command":"leave-cluster","args":{"member":"` + strings.Repeat("x", 101) + `"}}`:             "1 to 100 bytes",
		`{"version":1,"position":1,"command":"leave-cluster","args":{"member":"a"}}`:                               "only the store assigns it",
		`{"version":1,"command":"leave-cluster","args":{"member":"a"}} {}`:                                         "more than one",
		`{"version":1,"command":"decline","args":{"sequencer":"s","member":"a"}}`:                                  `"node" is missing`,
		`{"version":1,"command":"decline","args":{"sequencer":"s","member":"a","node":-1}}`:                        "node ID -1",
		`{"version":1,"command":"decline","args":{"sequencer":"s","member":"a","node":1,"x":1}}`:                   `"x"`,
		`{"version":1,"command":"attach","args":{"sequencer":"s","member":"a","from":1}}`:                          `"from" without "to"`,
		`{"version":1,"command":"attach","args":{"sequencer":"s","member":"a","from":2,"to":1}}`:                   "from 2 to 1",
		`{"version":1,"command":"attach","args":{"sequencer":"S","member":"a"}}`:                                   `"S"`,
		`{"version":1,"command":"attach","args":{"sequencer":"s","member":"a","x":1}}`:                             `"x"`,
		`{"version":1,"command":"create-sequencer","args":{"sequencer":"s"}}`:                                      `"definition" is missing`,
		`{"version":1,"command":"create-sequencer","args":{"sequencer":"s","definition":{"nodes":0}}}`:             "0 nodes",
		`{"version":1,"command":"create-sequencer","args":{"sequencer":"","definition":{"nodes":1}}}`:              `name ""`,
		`{"version":1,"command":"create-sequencer","args":{"sequencer":"s","definition":{"nodes":1,"colour":"x"}}`: "unexpected EOF",
	} {
		c, err := Decode([]byte(text))
		var unreadable *UnreadableError
		if !errors.As(err, &unreadable) || !strings.Contains(err.Error(), why) || c != nil {
			t.Errorf("%s: %v, %v; want an UnreadableError with %q", text, c, err, why)
		}
	}
	for text, why := range map[string]string{
		`{"command":"peer-gc","args":{"by":"a"}}`:                            `"position" is missing`,
		`{"position":-1,"command":"peer-gc","args":{"by":"a"}}`:              "position -1",
		`{"position":1,"version":2,"command":"peer-gc","args":{"by":"a"}}`:   "version 2",
		`{"position":1,"command":"peer-gc","args":{"by":"a"}}{}`:             "more than one",
		`{"position":1,"command":"peer-gc","args":{"by":"a"},"colour":"no"}`: `"colour"`,
	} {
		if _, err := ParseEntry([]byte(text)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v; want %q", text, err, why)
		}
	}
}

func TestEncodeRefusesWhatCouldNotBeRead(t *testing.T) {
	for _, c := range []Command{
		PrepareJoin{},
		Leave{"\xff"},
		PeerGC{strings.Repeat("x", 101)},
		DestroySequencer{"UPPER", 0},
		CreateSequencer{Sequencer: "s"},
		CreateSequencer{"s", small(-1, Allocation{})},
		CreateSequencer{"s", small(1, Allocation{Kind: 9})},
		Attach{"s", "a", &Range{-1, 0}},
		Attach{"s", "", nil},
		Detach{"", "a"},
		Decline{"s", "a", -1},
	} {
		if data, err := Encode(c); err == nil {
			t.Errorf("%+v: %s", c, data)
		}
	}
}

func FuzzParseEntry(f *testing.F) {
	for _, c := range everyCommand {
		data, err := json.Marshal(Entry{5, c})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := ParseEntry(data)
		if err != nil {
			return
		}
		again, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
		back, err := ParseEntry(again)
		if err != nil || !reflect.DeepEqual(back, e) {
			t.Fatalf("%s: %+v %v, want %+v", again, back, err, e)
		}
		stored, err := Encode(e.Command)
		if err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
		if c, err := Decode(stored); err != nil || !reflect.DeepEqual(c, e.Command) {
			t.Fatalf("%s: %+v %v, want %+v", stored, c, err, e.Command)
		}
		v := sample(t)
		e.Position = max(e.Position, v.position+1)
		if v, _ = Apply(v, e); inconsistency(v) != "" {
			t.Fatalf("%s leads to %s: %s", again, v, inconsistency(v))
		}
	})
}
