package main

import (
	"context"
	"os"
	"path/filepath"
)

// runServe measures the service: how long from its start to its first ID, and what memory it then holds.
func runServe(ctx context.Context, s settings) ([]table, error) {
	t := table{
		Title:   "serve: firn serve with nothing but an empty data directory",
		columns: []column{{"value", "value", "%.0f"}},
	}
	dir, err := os.MkdirTemp("", "firn-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	s.tell("building firn")
	binary, err := build(ctx, dir, filepath.Join("..", "cmd", "firn"))
	if err != nil {
		s.tell("skipping serve: %v", err)
		t.Note = "Skipped: " + err.Error()
		return []table{t}, nil
	}
	s.tell("starting firn serve")
	p, address, err := startFirn(ctx, binary, dir)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	first, err := p.await(ctx, func() error {
		_, err := askOnce(ctx, address)
		return err
	})
	if err != nil {
		return nil, err
	}
	t.rows = append(t.rows, row{"ms to the first ID", []float64{float64(first) / 1e6}})
	memory, err := p.residentMemory()
	if err != nil {
		t.Note = "Resident memory is not known here: " + err.Error()
	} else {
		t.rows = append(t.rows, row{"resident memory then, MiB", []float64{memory / (1 << 20)}})
	}
	return []table{t}, nil
}
