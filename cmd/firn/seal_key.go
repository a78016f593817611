package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/base/files"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/idtext"
)

const sealKeyHelp = `Seal-key makes a key with which servers seal IDs, so that strangers can't read
them. Give each server a copy, with firn serve --seal-key-file. Keep the key
secret, and keep it: without it nobody can open sealed IDs. With --output,
seal-key writes a file that only its owner can read. It refuses to print to a
file that others may open.

Each line of the file is a version and a key. The first key seals, and every key
opens: a sealed ID begins with the version of its key.

With --add, seal-key prints the keys of a file, and a new one at the end. To
change the key, replace the file on all servers; then, in the same way, move the
new key to the first line: it seals from then on. Remove a key when nobody holds
an ID that it sealed.`

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
	setting.Text(c.Flags(), &add, "add", "file", "print the keys of this file and a new one")
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
