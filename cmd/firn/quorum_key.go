package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/setting"
	"github.com/firn-id/firn/store/quorum"
)

const quorumKeyHelp = `Key makes a key for the machines of a quorum. Write it to a file, and give all machines
and their clients a copy, with --quorum-key-file. Keep it secret: the key is all that
anyone needs to join the quorum. A file that key writes to becomes its owner's alone.

The key contains the time at which it was made. A cluster that is formed within an hour
of it gives out IDs at once. A later one may follow one that was lost, and waits until
nodes of that one have stopped.

With --add, key prints the contents of the next key file: the keys of a file and one
more. To change the key without an outage, restart all machines with these contents, and
then with the new key alone. Do not write to the file that --add reads.`

const quorumKeyExamples = `  firn quorum key > firn.key
  firn quorum key --add firn.key > next.key`

func (p *program) quorumKeyCommand() *cobra.Command {
	var add string
	c := &cobra.Command{
		Use:     "key",
		Short:   "Make a key for the machines of a quorum",
		Long:    quorumKeyHelp,
		Example: quorumKeyExamples,
		Args:    noArguments,
	}
	setting.Text(c.Flags(), &add, "add", "file", "print the keys of this file and one more")
	c.RunE = func(c *cobra.Command, _ []string) error {
		text := quorum.NewKey() + "\n"
		if c.Flags().Changed("add") {
			var err error
			if text, err = quorum.AddKey(add); err != nil {
				return usagef("--add: %w", err)
			}
		}
		if err := ownersAlone(p.stdout); err != nil {
			return err
		}
		return p.printf("%s", text)
	}
	return c
}

// ownersAlone takes a regular file away from all but its owner: a shell makes one that everybody can read.
func ownersAlone(w io.Writer) error {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := f.Chmod(info.Mode().Perm() &^ 0o077); err != nil {
		return fmt.Errorf("standard output: others could read the key: %w", err)
	}
	return nil
}
