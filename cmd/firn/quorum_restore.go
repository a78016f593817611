package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/node"
	"github.com/firn-id/firn/store/quorum"
)

const quorumRestoreHelp = `Restore makes the data directory of a new cluster's first machine, after the
loss of the former cluster's machines. FILE is a backup by firn quorum backup,
or the unused data directory of a former machine. Restore asks no node for data.

The directory is for the machine that --as names: no other can use it, and a
copy of it forms no second cluster. The new cluster forms when all machines of
--quorum answer, the others with empty directories: name only machines that run.

The new cluster repeats no ID, whatever was written after the backup: it first
waits for the longest window of the former nodes and 10 s, until they have used
up the time that they had reserved.

The keys of a quorum sign its backups. Restore accepts a backup only if a key of
--quorum-key-file has signed it: a forged file could give the new cluster
anything. With --trust it accepts an unsigned one, such as a snapshot by etcd's
tools or of a quorum with certificates: for files that nobody else could write.
Of a directory it checks that nobody else could.

Stop the former cluster first. With --quorum-key-file restore asks its machines
whether they run, and refuses if one does. It lists machines that do not answer.`

const quorumRestoreExamples = `  firn quorum restore ids.backup --as ids-1:7420 --data-dir /var/lib/firn \
    --quorum-key-file firn.key
  firn quorum restore /mnt/old/firn-data --as ids-1:7420`

func (p *program) quorumRestoreCommand() *cobra.Command {
	r := quorum.RestoreConfig{Dir: node.Defaults().DataDir}
	c := &cobra.Command{
		Use:     "restore FILE",
		Short:   "Make a new cluster from a backup",
		Long:    quorumRestoreHelp,
		Example: quorumRestoreExamples,
		Args:    oneFile,
	}
	flags := c.Flags()
	setting.Add(flags, &r.As, "as", "address", "", "the machine that the directory is for, as in --quorum; required",
		parseAddress)
	setting.Text(flags, &r.Dir, "data-dir", "directory", "the data directory to make; it must be empty or missing")
	setting.Text(flags, &r.KeyFile, "quorum-key-file", "file",
		"the former cluster's key: restore checks the backup's signature\n"+
			"with it, and asks the machines whether they run")
	setting.Bool(flags, &r.Trust, "trust", "accept a backup without a signature, which anyone can have made")
	c.RunE = func(c *cobra.Command, args []string) error {
		if r.As == "" {
			return usagef("%s needs the address of the machine that the directory is for; want --as such as ids-1:7420",
				c.CommandPath())
		}
		r.Backup, r.Logger = args[0], newLogger(p.stderr, "text", slog.LevelWarn)
		ctx := untilSignal(c.Context())
		found, err := quorum.Restore(ctx, r)
		if err != nil {
			return interrupted(ctx, err)
		}
		return p.printf("%s", restoredText(r, found))
	}
	return c
}

func restoredText(c quorum.RestoreConfig, r quorum.Restored) string {
	var text strings.Builder
	line := func(name, value string) { fmt.Fprintf(&text, "%-12s%s\n", name, value) }
	dir := c.Dir
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	line("directory", console.ShownText(dir))
	line("for", console.ShownText(c.As))
	line("former", cmp.Or(console.Shown(r.Former), "a quorum of one"))
	line("machines", cmp.Or(console.ShownText(strings.Join(r.Machines, ", ")), "-"))
	text.WriteString(`
After its start the new cluster makes no ID until former nodes have used up what they
reserved: for the longest window that a node had, by default 30s, and 10s for clocks that
are ahead. They can't reserve more here: it refuses whoever belongs to another cluster.
`)
	switch {
	case len(r.Silent) > 0:
		fmt.Fprintf(&text, "\nThese former machines did not answer whether they run: %s.\n"+
			"Make sure that they do not: a majority of them could continue.\n",
			console.ShownText(strings.Join(r.Silent, ", ")))
	case len(r.Machines) > 0:
		text.WriteString("\nAll former machines were asked, and none keeps a cluster that runs.\n")
	}
	fmt.Fprintf(&text, `
Next, start %[1]s with this directory, and the others with empty ones. The new cluster
begins when all that --quorum names answer:

  firn serve --data-dir %[2]s --quorum %[1]s,OTHER:7420,OTHER:7420 ...
`, console.Shown(c.As), console.Shown(c.Dir))
	return text.String()
}
