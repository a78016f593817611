package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/store/quorum"
)

const quorumKeyHelp = `Key makes a key for the machines of a quorum. Give each machine a copy, with
--quorum-key-file. Keep the key secret: anyone with it can join the quorum. With
--output, key writes a file that only its owner can read. It refuses to print to
a file that others may open.

With --client, key derives a client key from a key file. Give it to nodes that
keep no data: they can read and write firn's data, but can't change the
machines, make a backup or be a machine.

The key contains the time of its making. A cluster that forms within an hour of
it gives IDs at once. A later one might follow a lost cluster, so it first waits
until nodes of that one have stopped.

With --add, key prints the keys of a file and a new one. To change the key
without an outage, restart all machines with these contents, and then with the
new key alone.`

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
	setting.Text(c.Flags(), &add, "add", "file", "print the keys of this file and a new one")
	setting.Text(c.Flags(), &client, "client", "file", "print the client key of the key in this file")
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
