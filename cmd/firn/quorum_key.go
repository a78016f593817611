package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/store/quorum"
)

const quorumKeyHelp = `Key makes a key for the machines of a quorum. Write it to a file, and give all machines a
copy, with --quorum-key-file. Keep it secret: the key is all that anyone needs to join the
quorum. With --output, key makes a file that only its owner can read. It prints to no file
that others may open.

With --client, key prints the key for clients that follows from that of a file: give it to
nodes that keep nothing. It lets them read and write what firn keeps. It does not let them
change who keeps it, back it up or be a machine.

The key contains the time at which it was made. A cluster that is formed within an hour
of it gives out IDs at once. A later one may follow one that was lost, and waits until
nodes of that one have stopped.

With --add, key prints the contents of the next key file: the keys of a file and one
more. To change the key without an outage, restart all machines with these contents, and
then with the new key alone.`

const quorumKeyExamples = `  firn quorum key --output firn.key
  firn quorum key --client firn.key --output client.key
  firn quorum key --add firn.key --output next.key`

func (p *program) quorumKeyCommand() *cobra.Command {
	var add, client, output string
	c := &cobra.Command{
		Use:     "key",
		Short:   "Make a key for the machines of a quorum",
		Long:    quorumKeyHelp,
		Example: quorumKeyExamples,
		Args:    noArguments,
	}
	setting.Text(c.Flags(), &add, "add", "file", "print the keys of this file and one more")
	setting.Text(c.Flags(), &client, "client", "file", "print the key for clients that follows from the key in this file")
	c.MarkFlagsMutuallyExclusive("add", "client")
	secretFile(c, &output, "the key")
	c.RunE = func(c *cobra.Command, _ []string) error {
		text := quorum.NewKey() + "\n"
		if c.Flags().Changed("add") {
			var err error
			if text, err = quorum.AddKey(add); err != nil {
				return usagef("--add: %w", err)
			}
		}
		if c.Flags().Changed("client") {
			var err error
			if text, err = quorum.ClientKey(client); err != nil {
				return usagef("--client: %w", err)
			}
		}
		return p.printSecret(output, text)
	}
	return c
}
