package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"
)

// runHTTP measures how many requests firn serve answers, beside servers that answer without making an ID.
func runHTTP(ctx context.Context, s settings) ([]table, error) {
	dir, err := os.MkdirTemp("", "firn-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s.tell("building firn, and a server of a constant")
	firn, err := build(ctx, dir, filepath.Join("..", "cmd", "firn"))
	if err != nil {
		s.tell("skipping http: %v", err)
		return []table{{Title: "http", Note: "Skipped: " + err.Error()}}, nil
	}
	constant, err := build(ctx, dir, "constant")
	if err != nil {
		return nil, err
	}
	all := &contest{dir: dir}
	defer all.stop()
	if err := all.start(ctx, firn, constant); err != nil {
		return nil, err
	}
	var tables []table
	for _, connections := range []int{1, 16, 128} {
		if err := all.askInTurn(ctx, s, connections); err != nil {
			return nil, err
		}
		tables = append(tables, all.table(connections))
	}
	return tables, nil
}

// round is what came of one round of one server. What is not known is NaN.
type round struct {
	answers        int
	perSecond      float64
	p50, p99, p999 float64 // µs
	cpu            float64 // µs of the server, in whole clock ticks
}

// askInTurn asks all servers, round after round, each over so many connections.
func (w *contest) askInTurn(ctx context.Context, s settings, connections int) error {
	for _, server := range w.all {
		server.rounds = nil
	}
	for round := range s.loads {
		if round%max(1, s.loads/5) == 0 {
			s.tell("%s: round %d of %d over %d servers", counted(connections, "connection"), round+1, s.loads, len(w.all))
		}
		for i := range w.all { // another goes first each time
			server := w.all[(i+round)%len(w.all)]
			r, err := server.ask(ctx, server, connections, s.load)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", server.name, counted(connections, "connection"), err)
			}
			server.rounds = append(server.rounds, r)
		}
	}
	return ctx.Err()
}

// overHTTP asks with the generator of this program.
func overHTTP(ctx context.Context, server *rival, connections int, d time.Duration) (r round, err error) {
	var before float64
	l, err := ask(ctx, server.address, connections, d, func() { before = server.cpuTime() })
	if err != nil {
		return r, err
	}
	µs := func(part float64) float64 { return l.each.quantile(part).Seconds() * 1e6 }
	return round{l.answers, l.perSecond(), µs(0.5), µs(0.99), µs(0.999), server.cpuTime() - before}, nil
}

// median is that of the rounds.
func (s *rival) median(of func(round) float64) float64 {
	var all []float64
	for _, r := range s.rounds {
		all = append(all, of(r))
	}
	return median(all)
}

// ratioTo is the median over the rounds of the answers per second to those of another server.
func (s *rival) ratioTo(other *rival) float64 {
	var all []float64
	for i, r := range s.rounds {
		all = append(all, r.perSecond/other.rounds[i].perSecond)
	}
	return median(all)
}

// cpuPerAnswer is the CPU time of the server over all rounds, whose ticks would be too coarse for one.
func (s *rival) cpuPerAnswer() float64 {
	var cpu float64
	var answers int
	for _, r := range s.rounds {
		cpu, answers = cpu+r.cpu, answers+r.answers
	}
	return cpu / float64(answers)
}

func (w *contest) table(connections int) table {
	t := table{
		Title: "http: one ID with each request, " + counted(connections, "connection"),
		Note:  "The servers share the CPUs with whoever asks. Medians over the rounds; the CPU time is the server's." + w.notes,
		columns: []column{
			{"per_second", "requests/s", "%.0f"},
			{"ratio", "to the constant", "%.2f"},
			{"p50_us", "p50 µs", "%.0f"},
			{"p99_us", "p99 µs", "%.0f"},
			{"p999_us", "p99.9 µs", "%.0f"},
			{"cpu_us", "CPU µs", "%.1f"},
		},
	}
	firn, constant := w.all[0], w.all[1]
	for _, s := range w.all {
		t.rows = append(t.rows, row{s.name, []float64{
			s.median(func(r round) float64 { return r.perSecond }),
			s.ratioTo(constant),
			s.median(func(r round) float64 { return r.p50 }),
			s.median(func(r round) float64 { return r.p99 }),
			s.median(func(r round) float64 { return r.p999 }),
			s.cpuPerAnswer(),
		}})
	}
	t.Targets = []target{atLeast("requests/s of firn serve to the constant", firn.ratioTo(constant), 0.9)}
	return t
}

// cpuTime is what the server has used, in µs; NaN where that is not known.
func (s *rival) cpuTime() float64 {
	used, err := s.cpu()
	if err != nil {
		return math.NaN()
	}
	return used.Seconds() * 1e6
}
