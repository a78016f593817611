package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// runServe measures the service: how long from its start to its first ID, and what memory it then holds.
func runServe(ctx context.Context, s settings, c *contest) ([]table, error) {
	s.tell("starting firn serve")
	if err := c.addFirn(ctx, "firn serve", "http", nil); err != nil {
		return nil, err
	}
	p := c.rivals[0]
	t := table{
		Title:   "serve: firn serve with nothing but an empty data directory",
		columns: []column{{"value", "value", "%.0f"}},
	}
	t.add("ms to the first ID", p.first.Seconds()*1e3)
	if memory, err := p.residentMemory(); err != nil {
		t.Note = "Resident memory is not known here: " + err.Error()
	} else {
		t.add("resident memory then, MiB", memory/(1<<20))
	}
	return []table{t}, nil
}

// residentMemory returns what the process holds, in bytes.
func (p *process) residentMemory() (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, "VmRSS:"); found {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			return kib * 1024, err
		}
	}
	return 0, errors.New("no VmRSS")
}
