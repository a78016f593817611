package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/replay"
)

const replayHelp = `Replay reads log entries and prints the state after each, from an empty cluster
on. It asks no server. Use it to try what a cluster would do, or to see how a
cluster came to its state.

An entry is a line of FILE, or of standard input if FILE is missing or "-":

  {"position":7,"command":"attach","args":{"sequencer":"orders","member":"b"}}

Positions ascend from 0 or more; gaps are allowed. Replay skips empty lines. It
prints one line for each entry:

  {"position":7,"outcome":"applied","value":{"members":["a","b"],
   "pairs":{"a":"b","b":"a"},"prepared":{},"accepted":{},
   "sequencers":{"orders":{"nodes":{"0":"a"},"waiting":["b"]}}}}

The outcome is "applied", "unchanged" if there was nothing to do, or "refused".
In "pairs" each member watches the other. "prepared" and "accepted" are pending
joins: each joiner, and the member that it is going to watch.

Replay stops at a line that is not an entry, reports its number and what is
wrong on standard error, and exits with status 1.`

const replayExamples = `  firn cluster replay entries.jsonl
  firn cluster replay < entries.jsonl | tail -n 1`

func (p *program) replayCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "replay [FILE]",
		Short:   "Show the state after each entry of a log",
		Long:    replayHelp,
		Example: replayExamples,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%q: firn cluster replay takes one file at most", args[1])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "-" {
				return replay.Run(p.stdin, "standard input", p.stdout)
			}
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			return replay.Run(file, args[0], p.stdout)
		},
	}
}
