package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manual is the manual page of a command in roff, from the same text as its help. That text is laid out for a
// terminal already: paragraphs are filled anew, and lines that are indented stay as they are.
func manual(c *cobra.Command, v version) string {
	var b strings.Builder
	date := ""
	if t, err := time.Parse(time.RFC3339, v.Time); err == nil {
		date = t.UTC().Format(time.DateOnly)
	}
	fmt.Fprintf(&b, ".TH %s 1 %q %s %s\n", argument(strings.ToUpper(pageName(c))), date, argument("firn "+v.Version), argument("Manual of firn"))
	b.WriteString(".SH NAME\n" + roff(pageName(c)) + ` \- ` + roff(c.Short) + "\n")
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
		others = append(others, pageName(c.Parent()))
	}
	for _, sub := range subcommands(c) {
		others = append(others, pageName(sub))
	}
	for i, name := range others {
		others[i] = fmt.Sprintf(".BR %s (1)", roff(name))
	}
	b.WriteString(".SH SEE ALSO\n" + strings.Join(others, " ,\n") + "\n")
	return b.String()
}

// pageName is the name of a command's page, such as firn-cluster-status.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// subcommands are those that have pages.
func subcommands(c *cobra.Command) (all []*cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			all = append(all, sub)
		}
	}
	return all
}

func synopsis(c *cobra.Command) string {
	name, arguments, _ := strings.Cut(c.Use, " ")
	path := name
	if c.HasParent() {
		path = c.Parent().CommandPath() + " " + name
	}
	line := ".B " + roff(path) + "\n"
	if c.HasAvailableSubCommands() {
		line += ".I command\n"
	}
	if c.HasAvailableLocalFlags() {
		line += ".RI [ flags ]\n"
	}
	if arguments != "" {
		line += ".I " + roff(arguments) + "\n"
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
		b.WriteString(`\fB\-\-` + roff(f.Name) + `\fR`)
		if kind, _ := pflag.UnquoteUsage(f); f.Value.Type() != kindBool && kind != "" {
			b.WriteString(` \fI` + roff(kind) + `\fR`)
		}
		text := f.Usage
		if f.DefValue != "" && f.Value.Type() != kindBool {
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
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = roff(strings.TrimPrefix(line, "  "))
	}
	return ".RS 4\n.nf\n" + strings.Join(lines, "\n") + "\n.fi\n.RE\n"
}

// filled are lines that belong together.
func filled(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = roff(strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

// roff is a line of text that roff prints as it is.
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(line)
	if strings.HasPrefix(line, ".") {
		line = `\&` + line
	}
	return line
}

// argument is an argument of a request.
func argument(text string) string { return `"` + strings.ReplaceAll(roff(text), `"`, `\(dq`) + `"` }
