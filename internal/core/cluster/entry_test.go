package cluster

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// everyCommand is one of each.
var everyCommand = []Command{
	PrepareJoin{"a"},
	NotifyWatchers{"a"},
	AcceptJoin{"a"},
	AbortJoin{"a"},
	Leave{Member: "a"},
	PeerGC{"a"},
	CreateSequencer{Sequencer: "orders", Definition: small(100, Allocation{Kind: AllocateCount, Count: 3})},
	CreateSequencer{Sequencer: "orders", Definition: Define(firn.Default), Start: 1023},
	CreateSequencer{
		Sequencer: "orders", Definition: Define(firn.Twitter),
		Region: Region{Number: 11, Of: 32}, Start: 352,
	},
	CreateSequencer{
		Sequencer: "orders", Definition: prefixed("ord"), SolePrefix: true,
		Quotas: []Quota{{nil, 1000}, {[]string{"o*", "inv-?"}, 1}},
	},
	DestroySequencer{"orders", 0},
	DestroySequencer{"orders", 17},
	Attach{"orders", "a", nil},
	Attach{"orders", "a", &Range{From: 0, To: 7}},
	Attach{"orders", "ä<&>", &Range{From: 0, To: 0}},
	Detach{"orders", "a"},
	Decline{"orders", "a", 0},
	Leave{"a", CauseSessionEnded, "b"},
	Leave{"ä", CauseLeft, "ä"},
	Leave{"a", CauseFoundDead, ""},
	Leave{"a", "", "b"},
	Expel{"a", "b"},
	AskClocks{"a"},
	Drain{"orders", "a"},
	Undrain{"orders", "a"},
	Move{"orders", 0, "a"},
	Allocate{"orders", 17, Allocation{}},
	Allocate{"orders", 0, Allocation{Kind: AllocatePercent, Percent: 50}},
	Reserve{"orders", 17, Reserving{"warehouse database", 1795910400123, 2, nil}},
	Reserve{"orders", 0, Reserving{"ä", 0, 0, []int64{0, 7}}},
	Release{"orders", 17, "warehouse database", 21},
	SetPolicy{},
	SetPolicy{[]Share{{"orders", 75}, {"spare", 0}}},
}

func TestCommandsAreReadAsWritten(t *testing.T) {
	for _, c := range everyCommand {
		for _, at := range []time.Time{{}, time.Date(2026, 11, 22, 3, 12, 0, 123e6, time.UTC)} {
			e := Entry{Position: 7, At: at, Command: c}
			if !at.IsZero() {
				e.Who = "ops <ä>"
			}
			data, err := e.Encode()
			if err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			if back, err := Decode(7, data); err != nil || !reflect.DeepEqual(back, e) {
				t.Errorf("%s: %+v %v, want %+v", data, back, err, e)
			}
			if data, err = json.Marshal(e); err != nil {
				t.Fatalf("%+v: %v", e, err)
			}
			if back, err := ParseEntry(data); err != nil || !reflect.DeepEqual(back, e) {
				t.Errorf("%s: %+v %v, want %+v", data, back, err, e)
			}
		}
	}
}

// Who asked is written in printable characters, up to a length, and changes no value.
func TestWhoAskedDecidesNothing(t *testing.T) {
	for who, want := range map[string]string{
		"": "", "ops": "ops", "a b\x1b\n\xff": "a b", strings.Repeat("x", 65): strings.Repeat("x", 64),
		"x" + strings.Repeat("ä", 32): "x" + strings.Repeat("ä", 31),
	} {
		data, err := Entry{Who: who, Command: Expel{"a", "b"}}.Encode()
		if e, readErr := Decode(1, data); err != nil || readErr != nil || e.Who != want {
			t.Errorf("%q is written %s, %v, and read %q, %v; want %q", who, data, err, e.Who, readErr, want)
		}
	}
	var with, without Value
	for i, c := range everyCommand {
		e := Entry{Position: int64(i), Command: c}
		var a, b Outcome
		without, a = Apply(without, e)
		e.Who = "ops"
		if with, b = Apply(with, e); a != b {
			t.Errorf("%+v: %v, and without who asked %v", e, b, a)
		}
	}
	a, err := EncodeCheckpoint(with)
	b, otherErr := EncodeCheckpoint(without)
	if err != nil || otherErr != nil || string(a) != string(b) {
		t.Errorf("the value is %s, %v, and without who asked %s, %v", a, err, b, otherErr)
	}
}

func TestUnreadableEntries(t *testing.T) {
	for _, c := range [][2]string{
		{``, "empty"},
		{`null`, `"version" is missing`},
		{`[]`, "array"},
		{`{"command":"leave-cluster","args":{"member":"a"}}`, `"version" is missing`},
		{`{"version":3,"command":"leave-cluster","args":{"member":"a"}}`, "version 3"},
		{`{"version":1,"command":"fly","args":{}}`, `"fly"`},
		{`{"version":1,"args":{}}`, `"command" is missing`},
		{`{"version":1,"command":"leave-cluster"}`, `"args" is missing`},
		{`{"version":1,"command":"leave-cluster","args":{"member":"a"},"more":1}`, `"more"`},
		{`{"version":1,"command":"leave-cluster","args":{"member":"a","more":1}}`, `"more"`},
		{`{"version":1,"command":"leave-cluster","args":{}}`, `"member" is missing`},
		{`{"version":1,"command":"leave-cluster","args":null}`, `"member" is missing`},
		{`{"version":1,"command":"leave-cluster","args":{"member":7}}`, "number"},
		{
			`{"version":1,"command":"leave-cluster","args":{"member":"` + strings.Repeat("x", 101) + `"}}`,
			"1 to 100 bytes",
		},
		{`{"version":1,"position":1,"command":"leave-cluster","args":{"member":"a"}}`, "only the store assigns it"},
		{`{"version":1,"command":"leave-cluster","args":{"member":"a"}} {}`, "more than one"},
		{`{"version":1,"command":"decline","args":{"sequencer":"s","member":"a"}}`, `"node" is missing`},
		{`{"version":1,"command":"decline","args":{"sequencer":"s","member":"a","node":-1}}`, "node ID -1"},
		{`{"version":1,"command":"decline","args":{"sequencer":"s","member":"a","node":1,"x":1}}`, `"x"`},
		{`{"version":1,"command":"attach","args":{"sequencer":"s","member":"a","from":1}}`, `"from" without "to"`},
		{`{"version":1,"command":"attach","args":{"sequencer":"s","member":"a","from":2,"to":1}}`, "from 2 to 1"},
		{`{"version":1,"command":"attach","args":{"sequencer":"S","member":"a"}}`, `"S"`},
		{`{"version":1,"command":"attach","args":{"sequencer":"s","member":"a","x":1}}`, `"x"`},
		{`{"version":2,"command":"attach","args":{"sequencer":"s","member":"a","node_ids":2}}`, `"node_ids"`},
		{`{"version":2,"at":"3 a.m.","command":"peer-gc","args":{"by":"a"}}`, `"3 a.m."`},
		{`{"version":2,"at":"2026-11-22T03:12:00Z","command":"peer-gc","args":{"by":"a"}}`, `"2026-11-22T03:12:00Z"`},
		{`{"version":2,"at":"2026-11-22T03:12:00.123456Z","command":"peer-gc","args":{"by":"a"}}`, "the time"},
		{`{"version":2,"at":"2026-11-22T03:12:00.12+1Z","command":"peer-gc","args":{"by":"a"}}`, "the time"},
		{`{"version":2,"at":"2026-11-31T03:12:00.123Z","command":"peer-gc","args":{"by":"a"}}`, "the time"},
		{
			`{"version":2,"who":"` + strings.Repeat("ä", 33) + `","command":"peer-gc","args":{"by":"a"}}`,
			`"who" has 66 bytes`,
		},
		{`{"version":2,"at":7,"command":"peer-gc","args":{"by":"a"}}`, "number"},
		{`{"version":2,"command":"leave-cluster","args":{"member":"a","why":"bored"}}`, `"bored"`},
		{`{"version":2,"command":"leave-cluster","args":{"member":"a","why":"left","by":"b","x":1}}`, `"x"`},
		{`{"version":2,"command":"expel","args":{"member":"a"}}`, `"by" is missing`},
		{`{"version":2,"command":"ask-clocks","args":{}}`, `"by" is missing`},
		{`{"version":2,"command":"move","args":{"sequencer":"s","to":"a"}}`, `"node" is missing`},
		{`{"version":2,"command":"move","args":{"sequencer":"s","to":"a","node":-1}}`, "node ID -1"},
		{`{"version":2,"command":"move","args":{"sequencer":"s","to":"a","node":1,"x":1}}`, `"x"`},
		{`{"version":2,"command":"allocate","args":{"sequencer":"s"}}`, `"allocation" is missing`},
		{`{"version":2,"command":"allocate","args":{"sequencer":"s","allocation":{"kind":"few"}}}`, `"few"`},
		{`{"version":2,"command":"set-policy","args":{}}`, `"shares" is missing`},
		{`{"version":2,"command":"set-policy","args":{"shares":[{"sequencer":"s","part":1}]}}`, `"part"`},
		{
			`{"version":2,"command":"set-policy","args":{"shares":[{"sequencer":"s","percent":75}]}}`,
			"75 percent together; want 100",
		},
		{`{"version":1,"command":"create-sequencer","args":{"sequencer":"s"}}`, `"definition" is missing`},
		{`{"version":1,"command":"create-sequencer","args":{"sequencer":"s","definition":{"nodes":0}}}`, "0 nodes"},
		{`{"version":1,"command":"create-sequencer","args":{"sequencer":"","definition":{"nodes":1}}}`, `name ""`},
		{
			`{"version":1,"command":"create-sequencer","args":{"sequencer":"s","definition":{"nodes":1,"colour":"x"}}`,
			"unexpected EOF",
		},
	} {
		text, why := c[0], c[1]
		e, err := Decode(1, []byte(text))
		var unreadable *UnreadableError
		if !errors.As(err, &unreadable) || !strings.Contains(err.Error(), why) || e != (Entry{}) {
			t.Errorf("%s: %v, %v; want an UnreadableError with %q", text, e, err, why)
		}
	}
	for text, why := range map[string]string{
		`{"command":"peer-gc","args":{"by":"a"}}`:                            `"position" is missing`,
		`{"position":-1,"command":"peer-gc","args":{"by":"a"}}`:              "position -1",
		`{"position":1,"version":3,"command":"peer-gc","args":{"by":"a"}}`:   "version 3",
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
		Leave{Member: "\xff"},
		PeerGC{strings.Repeat("x", 101)},
		DestroySequencer{"UPPER", 0},
		CreateSequencer{Sequencer: "s"},
		CreateSequencer{Sequencer: "s", Definition: small(-1, Allocation{})},
		CreateSequencer{Sequencer: "s", Definition: small(1, Allocation{Kind: 9})},
		CreateSequencer{Sequencer: "s", Definition: small(8, Allocation{}), Start: 8},
		CreateSequencer{Sequencer: "s", Definition: small(8, Allocation{}), Start: -1},
		CreateSequencer{Sequencer: "s", Definition: small(8, Allocation{}), Region: Region{Number: 1, Of: 4}, Start: 4},
		CreateSequencer{Sequencer: "s", Definition: small(8, Allocation{}), Region: Region{Number: 1, Of: 16}},
		CreateSequencer{Sequencer: "s", Definition: small(8, Allocation{}), Region: Region{Number: 4, Of: 4}},
		CreateSequencer{Sequencer: "s", Definition: small(8, Allocation{}), Region: Region{Number: 0, Of: 3}},
		CreateSequencer{Sequencer: "s", Definition: small(8, Allocation{}), SolePrefix: true},
		CreateSequencer{Sequencer: "s", Definition: small(8, Allocation{}), Quotas: []Quota{{nil, 0}}},
		CreateSequencer{Sequencer: "s", Definition: small(8, Allocation{}), Quotas: []Quota{{[]string{"a[b"}, 1}}},
		CreateSequencer{Sequencer: "s", Definition: small(8, Allocation{}), Quotas: []Quota{{[]string{""}, 1}}},
		CreateSequencer{
			Sequencer: "s", Definition: small(8, Allocation{}),
			Quotas: []Quota{{[]string{strings.Repeat("a", MaxQuotaNames)}, 1}, {[]string{"b"}, 1}},
		},
		Attach{"s", "a", &Range{From: -1, To: 0}},
		Attach{"s", "", nil},
		Detach{"", "a"},
		Decline{"s", "a", -1},
		Leave{"a", "bored", "b"},
		Leave{"a", CauseLeft, "\xff"},
		Expel{"a", ""},
		AskClocks{},
		Drain{"s", ""},
		Undrain{"S", "a"},
		Move{"s", -1, "a"},
		Move{"s", 1, ""},
		Allocate{"s", -1, Allocation{}},
		Allocate{"s", 0, Allocation{Kind: AllocateCount}},
		SetPolicy{[]Share{{"S", 100}}},
		SetPolicy{[]Share{{"s", 101}}},
		SetPolicy{[]Share{{"s", -1}, {"r", 0}}},
		SetPolicy{[]Share{{"s", 50}, {"s", 50}}},
		SetPolicy{[]Share{{"s", 60}, {"r", 50}}},
		SetPolicy{[]Share{{"s", 60}, {"r", 30}}},
		SetPolicy{[]Share{{"s", 0}, {"r", 0}}},
	} {
		if data, err := Encode(c, time.Time{}); err == nil {
			t.Errorf("%+v: %s", c, data)
		}
	}
}

func FuzzParseEntry(f *testing.F) {
	for _, c := range everyCommand {
		data, err := json.Marshal(Entry{Position: 5, Command: c})
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
		stored, err := Encode(e.Command, e.At)
		if err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
		if back, err := Decode(e.Position, stored); err != nil || !reflect.DeepEqual(back, e) {
			t.Fatalf("%s: %+v %v, want %+v", stored, back, err, e)
		}
		v := sample(t)
		e.Position = max(e.Position, v.position+1)
		if v, _ = Apply(v, e); inconsistency(v) != "" {
			t.Fatalf("%s leads to %s: %s", again, v, inconsistency(v))
		}
	})
}
