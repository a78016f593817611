package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/base/files"
	"github.com/firn-id/firn/internal/ops/setting"
)

// secretFile adds --output to a command that prints a secret.
func secretFile(c *cobra.Command, output *string, what string) {
	setting.Text(c.Flags(), output, "output", "file",
		"write "+what+" to this new file, which only its owner\ncan read (default: print it)")
	must(c.MarkFlagFilename("output"))
}

// printSecret writes a text with a secret to a new file, or prints it if output is empty.
func (p *program) printSecret(output, text string) error {
	if output != "" {
		return writeSecret(output, text)
	}
	if err := notForOthers(p.stdout); err != nil {
		return err
	}
	return p.printf("%s", text)
}

// notForOthers returns an error when w is a file that others may open. It is too late to take it away from them: a
// shell has made the file, and who has opened it since reads what is written later.
func notForOthers(w io.Writer) error {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() && files.ForOthers(info) {
		return usagef("standard output is a file that others may open (mode %04o), and this is a secret; want "+
			"--output FILE, which makes a file for its owner alone", info.Mode().Perm())
	}
	return nil
}

// writeSecret makes a file that only its owner can read.
func writeSecret(path, text string) error {
	if err := files.CheckWriters(path); err != nil {
		return usagef("--output: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return usagef("--output: %s exists; want the name of a new file", path)
	case err != nil:
		return usagef("--output: %w", err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, errors.Join(err, os.Remove(path)))
	}
	return nil
}
