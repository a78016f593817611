// Package manpage writes manual pages of commands in roff, from the same text as their help. It knows nothing of what
// the commands do.
package manpage

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Release is what the pages belong to.
type Release struct {
	Version string
	Date    time.Time // zero: not known
}

// Write writes the page of a command and of those below it to a directory, and returns how many there are.
func Write(c *cobra.Command, dir string, r Release) (count int, err error) {
	c.InitDefaultHelpFlag()
	if err := os.WriteFile(filepath.Join(dir, Name(c)+".1"), []byte(Page(c, r)), 0o644); err != nil {
		return 0, fmt.Errorf("the page of %s: %w", c.CommandPath(), err)
	}
	count = 1
	for _, sub := range subcommands(c) {
		n, err := Write(sub, dir, r)
		if err != nil {
			return count, err
		}
		count += n
	}
	return count, nil
}

// Page is the page of a command. The text of its help is laid out for a terminal: paragraphs are filled again, and
// lines that are indented stay as they are.
func Page(c *cobra.Command, r Release) string {
	var b strings.Builder
	date := ""
	if !r.Date.IsZero() {
		date = r.Date.UTC().Format(time.DateOnly)
	}
	fmt.Fprintf(&b, ".TH %s 1 %q %s %s\n", argument(strings.ToUpper(Name(c))), date, argument("firn "+r.Version),
		argument("Manual of firn"))
	b.WriteString(".SH NAME\n" + Escape(Name(c)) + ` \- ` + Escape(c.Short) + "\n")
	b.WriteString(".SH SYNOPSIS\n" + synopsis(c))
	b.WriteString(".SH DESCRIPTION\n" + paragraphs(cmp.Or(c.Long, c.Short+".")))
	if flags := c.LocalFlags(); flags.HasAvailableFlags() {
		b.WriteString(".SH OPTIONS\n" + options(flags))
	}
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n" + asItIs(c.Example))
	}
	var others []string
	if c.HasParent() {
		others = append(others, Name(c.Parent()))
	}
	for _, sub := range subcommands(c) {
		others = append(others, Name(sub))
	}
	for i, name := range others {
		others[i] = fmt.Sprintf(".BR %s (1)", Escape(name))
	}
	b.WriteString(".SH SEE ALSO\n" + strings.Join(others, " ,\n") + "\n")
	return b.String()
}

// Name is the name of a command's page, such as firn-cluster-status.
func Name(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// subcommands are those that have pages.
func subcommands(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(c.Commands()), func(sub *cobra.Command) bool {
		return !sub.IsAvailableCommand()
	})
}

func synopsis(c *cobra.Command) string {
	name, arguments, _ := strings.Cut(c.Use, " ")
	path := name
	if c.HasParent() {
		path = c.Parent().CommandPath() + " " + name
	}
	line := ".B " + Escape(path) + "\n"
	if c.HasAvailableSubCommands() {
		line += ".I command\n"
	}
	if c.HasAvailableLocalFlags() {
		line += ".RI [ flags ]\n"
	}
	if arguments != "" {
		line += ".I " + Escape(arguments) + "\n"
	}
	return line
}

// options lists flags with their kinds, and defaults as the help has them.
func options(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		b.WriteString(".TP\n")
		if f.Shorthand != "" {
			b.WriteString(`\fB\-` + f.Shorthand + `\fR, `)
		}
		b.WriteString(`\fB\-\-` + Escape(f.Name) + `\fR`)
		if kind, _ := pflag.UnquoteUsage(f); f.Value.Type() != "bool" && kind != "" {
			b.WriteString(` \fI` + Escape(kind) + `\fR`)
		}
		text := f.Usage
		if f.DefValue != "" && f.Value.Type() != "bool" {
			text += " (default: " + f.DefValue + ")"
		}
		b.WriteString("\n" + filled(text) + "\n")
	})
	return b.String()
}

// paragraphs are those of a text, and in them what is filled and what stays as it is.
func paragraphs(text string) string {
	var blocks []string
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		lines := strings.Split(paragraph, "\n")
		for len(lines) > 0 {
			kept := strings.HasPrefix(lines[0], "  ")
			n := 1
			for n < len(lines) && strings.HasPrefix(lines[n], "  ") == kept {
				n++
			}
			block := strings.Join(lines[:n], "\n")
			if kept {
				blocks = append(blocks, asItIs(block))
			} else {
				blocks = append(blocks, filled(block)+"\n")
			}
			lines = lines[n:]
		}
	}
	return strings.Join(blocks, ".PP\n")
}

// asItIs are lines that are not filled.
func asItIs(text string) string {
	return ".RS 4\n.nf\n" + escaped(text, func(line string) string {
		return strings.TrimPrefix(line, "  ")
	}) + "\n.fi\n.RE\n"
}

// filled are lines that belong together.
func filled(text string) string { return escaped(text, strings.TrimSpace) }

func escaped(text string, trim func(line string) string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Escape(trim(line))
	}
	return strings.Join(lines, "\n")
}

// Escape returns a line of text that roff prints as it is.
func Escape(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(line)
	if strings.HasPrefix(line, ".") {
		line = `\&` + line
	}
	return line
}

// argument is an argument of a request.
func argument(text string) string { return `"` + strings.ReplaceAll(Escape(text), `"`, `\(dq`) + `"` }
