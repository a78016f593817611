package respapi

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/metrics"
	"github.com/firn-id/firn/internal/test/servertest"
)

func newMetered(t testing.TB, f calls.Issuer, m calls.Meter) *Server {
	t.Helper()
	return New(calls.New(servertest.Join(t), calls.Options{Meter: m, Default: f}), &auth.Policy{}, nil)
}

// Commands are counted by what they came to, those for IDs by their names; as many as were answered together are timed
// once.
func TestCommandsAreCounted(t *testing.T) {
	m := servertest.NewMeter()
	s := newMetered(t, newCounting(), m)
	says := strings.Repeat(array("INCR", "default"), 5) + array("PING") + array("INCR", "orders") + array("INCRBY",
		"default", "1") +
		array("INCRBY", "default", "x") + array("firn.next", "default",
		"7") + strings.Repeat(array("firn.id", "default"), 4) + array("FIRN.IDS", "default", "2") + array("FIRN.DECODE",
		"5") + array("INCR") + array("GET", "x") + array("hello", "9")
	talk(s, says, len(says))
	m.Wants(t, map[string]int{
		"redis INCR ok": 5, "redis INCR unknown_sequencer": 1, "redis INCR bad_request": 1, "redis INCRBY ok": 1,
		"redis INCRBY bad_request": 1,
		"redis FIRN.NEXT ok":       1, "redis FIRN.ID ok": 4, "redis FIRN.IDS ok": 1, "redis FIRN.DECODE ok": 1,
		"redis other ok": 1, "redis other bad_request": 2,
	}, map[string]int{
		"redis INCR": 3, "redis INCRBY": 2, "redis FIRN.NEXT": 1, "redis FIRN.ID": 1, "redis FIRN.IDS": 1,
		"redis FIRN.DECODE": 1,
	})
}

// When many are refused at once, each is; when they are tried one by one, each counts for itself.
func TestRefusedRunsAreCounted(t *testing.T) {
	for err, want := range map[error]map[string]int{
		peer.ErrNotReady: {"redis INCR not_ready": 6}, calls.ErrCrowded: {"redis INCR overloaded": 6},
	} {
		m := servertest.NewMeter()
		f := newCounting()
		f.Err = err
		talk(newMetered(t, f, m), strings.Repeat(array("INCR", "default"), 6), 1<<20)
		timed := 1
		if err == calls.ErrCrowded {
			timed = 6
		}
		m.Wants(t, want, map[string]int{"redis INCR": timed})
	}
}

// Where a token is wanted, commands without one are counted as such.
func TestCommandsWithoutATokenAreCounted(t *testing.T) {
	m := servertest.NewMeter()
	s := New(calls.New(servertest.Join(t), calls.Options{Meter: m, Default: newCounting()}),
		&auth.Policy{Tokens: nobodys{}}, nil)
	talk(s, array("INCR", "default")+array("PING")+array("AUTH", "x"), 1<<20)
	m.Wants(t, map[string]int{"redis INCR unauthenticated": 1, "redis other unauthenticated": 2},
		map[string]int{"redis INCR": 1})
}

type nobodys struct{}

func (nobodys) Identify(string) (*auth.Caller, error) { return nil, auth.ErrUnauthenticated }

func BenchmarkCounted(b *testing.B) {
	line := func(commands ...string) []byte { return []byte(array(commands...)) }
	for _, commands := range []struct {
		name  string
		lines []byte
		times int
	}{
		{"one", line("INCR", "default"), 1},
		{"run-of-128", bytes.Repeat(line("INCR", "default"), 128), 128},
		{"16-in-turn", bytes.Repeat(append(line("INCR", "default"), line("INCRBY", "default", "1")...), 8), 16},
		{"16-pings", bytes.Repeat(line("PING"), 16), 16},
	} {
		for name, meter := range map[string]calls.Meter{"no": nil, "yes": metrics.New(metrics.Build{})} {
			b.Run(fmt.Sprintf("%s/%s", commands.name, name), func(b *testing.B) {
				s := newMetered(b, newGenerated(b, firn.Default), meter)
				b.ReportAllocs()
				newConn(s, &repeating{line: commands.lines, times: b.N/commands.times + 1}, 1).serve()
			})
		}
	}
}
