package main

import (
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/manpage"
)

const genManHelp = `Man writes a manual page for each command to a directory, and creates the
directory if needed: firn.1, firn-serve.1 and so on, with the text of --help.

The deb and rpm packages contain these pages. Their date is that of the source,
or SOURCE_DATE_EPOCH.`

func (p *program) genMan() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIRECTORY",
		Short:   "Write the manual pages",
		Long:    genManHelp,
		Example: "  firn gen man /usr/local/share/man/man1",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s takes one directory, not %d; want it as in: firn gen man /usr/local/share/man/man1",
					c.CommandPath(), len(args))
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			v := readVersion()
			release := manpage.Release{Version: v.Version}
			release.Date, _ = time.Parse(time.RFC3339, v.Time) // else it is not known
			if epoch, err := strconv.ParseInt(p.env["SOURCE_DATE_EPOCH"], 10, 64); err == nil {
				release.Date = time.Unix(epoch, 0)
			}
			count, err := manpage.Write(c.Root(), args[0], release)
			if err != nil {
				return err
			}
			return p.printf("%d pages in %s\n", count, args[0])
		},
	}
}
