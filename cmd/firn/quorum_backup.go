package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/base/files"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/ops/setting"
)

const quorumBackupHelp = `Backup writes all the data of the quorum to a file, while the machines run. Ask
any node. firn quorum restore makes a new cluster from the file, and the new
cluster repeats no ID, whatever was written after the backup.

It writes FILE.part first, which only its owner can read, and renames it when it
is complete and on disk. With - it writes to standard output; check the exit
status, because nothing else tells an incomplete backup there.`

const quorumBackupExamples = `  firn quorum backup ids.backup
  firn quorum backup - | ssh vault "cat > ids.backup"`

func (p *program) quorumBackupCommand() *cobra.Command {
	var o lookOptions
	var force bool
	c := &cobra.Command{
		Use:     "backup FILE",
		Short:   "Make a backup while the machines run",
		Long:    quorumBackupHelp,
		Example: quorumBackupExamples,
		Args:    oneFile,
	}
	setting.Bool(c.Flags(), &force, "force", "overwrite FILE if it exists")
	o.server.addAdmin(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		file := args[0]
		if file == "-" && console.IsTerminal(p.stdout) {
			return usagef("a backup is not text, and standard output is a terminal; name a file, or send it to a " +
				"program")
		}
		if _, err := os.Lstat(file); err == nil && file != "-" && !force {
			return usagef("%s exists; add --force to overwrite it, or name another file", file)
		}
		if file == "-" {
			if err := notForOthers(p.stdout); err != nil {
				return err
			}
		}
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			return p.backup(ctx, ask, file)
		})
	}
	return c
}

// oneFile is for commands whose argument is a file.
func oneFile(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usagef("%s needs the name of a file", c.CommandPath())
	case len(args) > 1:
		return usagef("%q: %s takes one file", args[1], c.CommandPath())
	}
	return nil
}

// backup writes a backup to a file; "-": to standard output.
func (p *program) backup(ctx context.Context, ask remote.Client, file string) error {
	response, err := ask.Do(ctx, http.MethodGet, quorumPath+"/backup", nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	from := &counted{r: response.Body}
	stop := console.NewStatusLine(p.stderr).Progress(func() string { return size(from.n.Load()) })
	if file == "-" {
		_, err = io.Copy(p.stdout, from)
	} else {
		err = writeBackup(file, from)
	}
	stop()
	if from.err != nil {
		return fmt.Errorf("the backup is incomplete: the server %s broke it off after %s; its log may say why: %w",
			ask.Base, size(from.n.Load()), from.err)
	}
	if err != nil || file == "-" {
		return err
	}
	return p.printf("%s has a backup of %s\n", file, size(from.n.Load()))
}

// writeBackup writes a file under another name until it is complete and on the disk.
func writeBackup(file string, from io.Reader) (err error) {
	if err := files.CheckWriters(file); err != nil {
		return err
	}
	part := file + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) { // of an earlier try
		return err
	}
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(part)
		}
	}()
	_, err = io.Copy(f, from)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(part, file); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// counted counts what is read, and keeps the error that ends it early.
type counted struct {
	r   io.Reader
	n   atomic.Int64
	err error
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	if err != nil && err != io.EOF { //nolint:errorlint // readers return it as it is
		c.err = err
	}
	return n, err
}
