package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/setting"
	"github.com/firn-id/firn/store/quorum"
)

const quorumKeyHelp = `Key makes a key for the machines of a quorum. Write it to a file, and give all machines
and their clients a copy, with --quorum-key-file. Keep it secret: the key is all that
anyone needs to join the quorum. With --output, key makes a file that only its owner can
read. It prints to no file that others may open.

The key contains the time at which it was made. A cluster that is formed within an hour
of it gives out IDs at once. A later one may follow one that was lost, and waits until
nodes of that one have stopped.

With --add, key prints the contents of the next key file: the keys of a file and one
more. To change the key without an outage, restart all machines with these contents, and
then with the new key alone.`

const quorumKeyExamples = `  firn quorum key --output firn.key
  firn quorum key --add firn.key --output next.key`

func (p *program) quorumKeyCommand() *cobra.Command {
	var add, output string
	c := &cobra.Command{
		Use:     "key",
		Short:   "Make a key for the machines of a quorum",
		Long:    quorumKeyHelp,
		Example: quorumKeyExamples,
		Args:    noArguments,
	}
	setting.Text(c.Flags(), &add, "add", "file", "print the keys of this file and one more")
	secretFile(c, &output, "the key")
	c.RunE = func(c *cobra.Command, _ []string) error {
		text := quorum.NewKey() + "\n"
		if c.Flags().Changed("add") {
			var err error
			if text, err = quorum.AddKey(add); err != nil {
				return usagef("--add: %w", err)
			}
		}
		return p.printSecret(output, text)
	}
	return c
}
