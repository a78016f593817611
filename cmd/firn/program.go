package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/doctor"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// program is what a command gets from outside.
type program struct {
	env            map[string]string
	stdin          io.Reader
	stdout, stderr io.Writer
	completing     bool // a shell asks what could follow
	warned         bool // about variables that no command reads
}

// environment reads variables as "NAME=value".
func environment(list []string) map[string]string {
	env := make(map[string]string, len(list))
	for _, variable := range list {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = value
	}
	return env
}

// report prints an error for people, on one line. Whoever interrupted a command knows that.
func (p *program) report(err error) {
	var interrupted signalError
	if err == nil || errors.Is(err, errReported) || errors.As(err, &interrupted) {
		return
	}
	fmt.Fprintln(p.stderr, p.paint(p.stderr, console.Red, "firn:"), err)
}

// warnf prints a warning for people, on one line.
func (p *program) warnf(format string, args ...any) {
	fmt.Fprintln(p.stderr, p.paint(p.stderr, console.Yellow, "firn: warning:"), fmt.Sprintf(format, args...))
}

// notef prints something for people to know, on one line.
func (p *program) notef(format string, args ...any) {
	fmt.Fprintf(p.stderr, "firn: note: "+format+"\n", args...)
}

// paint returns a text in a colour, where w shows colours.
func (p *program) paint(w io.Writer, c console.Colour, text string) string {
	if !console.Coloured(w, p.env) {
		return text
	}
	return c.Paint(text)
}

// colours gives a column of a table colours, where stdout shows them.
func (p *program) colours(of func(value string) console.Colour) func(string) console.Colour {
	if !console.Coloured(p.stdout, p.env) {
		return nil
	}
	return of
}

// printf prints to stdout. An error ends the command.
func (p *program) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(p.stdout, format, args...)
	return err
}

// keepOrder lists the flags of a command, and of those below it, as they were added.
func keepOrder(c *cobra.Command) {
	c.Flags().SortFlags = false
	for _, sub := range c.Commands() {
		keepOrder(sub)
	}
}

// flagError says of a wrong flag what would be right.
func flagError(c *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return usagef("--%s: %w", invalid.GetFlag().Name, invalid.Unwrap())
	}
	if args := c.Flags().Args(); len(args) > 0 && c.HasAvailableSubCommands() {
		return noArguments(c, args) // the flag is most likely that of another command
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if meant := setting.Nearest(unknown.GetSpecifiedName(), names); meant != "" {
			return usagef("%w; did you mean --%s?", err, meant)
		}
	}
	return usagef("%w; %s --help lists the flags", err, c.CommandPath())
}

// noArguments refuses arguments of a command that takes none, or only the name of one below it.
func noArguments(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case !c.HasAvailableSubCommands():
		return usagef("%q: %s takes no arguments; %[2]s --help shows what it takes", args[0], c.CommandPath())
	}
	var names []string
	meant := ""
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		names = append(names, sub.Name())
		if slices.Contains(sub.SuggestFor, args[0]) {
			meant = sub.Name()
		}
	}
	if meant = cmp.Or(meant, setting.Nearest(args[0], names)); meant != "" {
		return usagef("there is no command %q; did you mean %q?", c.CommandPath()+" "+args[0],
			c.CommandPath()+" "+meant)
	}
	return usagef("there is no command %q; want one of %s", c.CommandPath()+" "+args[0], strings.Join(names, ", "))
}

// fromEnvironment sets the flags with these names that the command line did not set, and warns about variables that no
// command reads.
func (p *program) fromEnvironment(flags *pflag.FlagSet, names ...string) error {
	p.warnUnknown()
	if err := (setting.Sources{}).FromEnvironment(flags, p.env, names...); err != nil {
		return usageError{err}
	}
	return nil
}

// warnUnknown warns, once, about variables that no command reads.
func (p *program) warnUnknown() {
	if p.warned {
		return
	}
	p.warned = true
	for _, w := range p.unknownVariables() {
		p.warnf("%s %s; %s", w.About, w.Found, w.Do)
	}
}

// unknownVariables warn about variables that begin with FIRN_ and that no command reads.
func (p *program) unknownVariables() (all []doctor.Finding) {
	var public, admin pflag.FlagSet
	new(serverFlags).addPublic(&public)
	new(serverFlags).addAdmin(&admin)
	for _, v := range setting.Unknowns(p.env, new(serveOptions).apart(), &public, &admin) {
		do := "remove it, or correct its name"
		if v.Meant != "" {
			do = "did you mean " + v.Meant + "?"
		}
		all = append(all, doctor.Finding{Level: doctor.Warn, About: v.Given, Found: "is not used", Do: do})
	}
	return all
}
