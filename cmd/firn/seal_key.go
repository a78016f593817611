package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/base/files"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/idtext"
)

const sealKeyHelp = `Seal-key makes a key with which servers seal IDs that strangers see. Write it to a file,
and give all servers a copy, with firn serve --seal-key-file. Keep it secret, and keep
it: without it nobody can open what was sealed. With --output, seal-key makes a file that
only its owner can read. It prints to no file that others may open.

Each line of the file is a version and a key. The first key seals, and all of them open:
a sealed ID begins with the version.

With --add, seal-key prints the contents of the next file: the keys of a file, and a new
one at the end. Replace the file by the next one on all servers. When all have it, move
the new key to the first line, in the same way: from then on it seals. Leave out a key
when nobody holds an ID that it sealed.`

const sealKeyExamples = `  firn seal-key --output seal.keys
  firn seal-key --add seal.keys --output next.keys`

func (p *program) sealKeyCommand() *cobra.Command {
	var add, output string
	c := &cobra.Command{
		Use:     "seal-key",
		Short:   "Make a key to seal IDs that strangers see",
		Long:    sealKeyHelp,
		Example: sealKeyExamples,
		Args:    noArguments,
	}
	setting.Text(c.Flags(), &add, "add", "file", "print the keys of this file and one more")
	secretFile(c, &output, "the key")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var before []byte
		var keys *idtext.Keys
		if c.Flags().Changed("add") {
			var err error
			if before, err = files.Read(add); err == nil {
				keys, err = idtext.ParseKeys(before)
			}
			if err != nil {
				return usagef("--add: %w", err)
			}
			if before[len(before)-1] != '\n' {
				before = append(before, '\n')
			}
		}
		key, err := idtext.NewKey(keys)
		if err != nil {
			return usagef("--add: %w", err)
		}
		return p.printSecret(output, string(before)+key)
	}
	return c
}
