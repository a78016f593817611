package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/replay"
)

const replayHelp = `Replay reads the entries of a log, beginning with an empty cluster, and prints
what each leads to. It asks no server: it is how to try out what a cluster would do,
or to see how one came to be what it is.

An entry is a line of FILE, or of standard input when there is none or it is "-":

  {"position":7,"command":"attach","args":{"sequencer":"orders","member":"b"}}

Positions are 0 or more and ascend; there may be gaps. Empty lines are skipped.
For each entry one line is printed:

  {"position":7,"outcome":"applied","value":{"members":["a","b"],
   "pairs":{"a":"b","b":"a"},"prepared":{},"accepted":{},
   "sequencers":{"orders":{"nodes":{"0":"a"},"waiting":["b"]}}}}

The outcome is "applied", "unchanged" when there was nothing to do, or "refused".
In the pairs each member watches the other; prepared and accepted are the pending
joins, by joiner, with the member that each is to watch.

A line that is no entry ends it: what is wrong is told on standard error with the
number of the line, and the exit status is 1. The lines before it are printed.`

const replayExamples = `  firn cluster replay entries.jsonl
  firn cluster replay < entries.jsonl | tail -n 1`

func (p *program) replayCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "replay [FILE]",
		Short:   "Show what the entries of a log lead to",
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
