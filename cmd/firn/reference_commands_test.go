package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/ops/setting"
)

const commandsHead = `# Commands

` + remake + `
` + "`firn help COMMAND`" + ` shows the same text. A flag overrides its variable, and a variable overrides the
file that ` + "`--config`" + ` names. Every flag of ` + "`firn serve`" + ` has a variable and a key in that file:
` + "`--http-addr`" + ` has ` + "`FIRN_HTTP_ADDR` and `http-addr`" + `. Other flags have a variable only if this page
names it. Commands that read variables warn of a variable that begins with ` + "`FIRN_`" + ` and that no
command reads.
`

const sharedHead = `
## Flags of many commands

Each flag here means the same in every command that lists it. ` + "`firn doctor` and `firn layout`" + ` read
none of these variables.

`

// commands are those that can be used, each before those below it.
func commands() (all []*cobra.Command) {
	var add func(*cobra.Command)
	add = func(c *cobra.Command) {
		if c.IsAvailableCommand() && c.Name() != "help" && c.Name() != "completion" {
			all = append(all, c)
		}
		for _, sub := range c.Commands() {
			add(sub)
		}
	}
	add(new(program).root(new(bool)))
	return all
}

func commandsPage() string {
	var page strings.Builder
	page.WriteString(commandsHead)
	for _, group := range commandGroups {
		links := []string{"\n" + group.Title}
		for _, c := range commands() {
			if path := strings.Fields(c.CommandPath()); len(path) > 1 && groupOf(c) == group.ID {
				links = append(links, fmt.Sprintf("[%s](#%s),", strings.Join(path[1:], " "), strings.Join(path, "-")))
			}
		}
		page.WriteString(strings.TrimSuffix(wrapped(links, ""), ",\n") + ".\n")
	}
	shared := sharedFlags()
	page.WriteString(sharedHead + strings.Join(shared, ""))
	for _, c := range commands() {
		fmt.Fprintf(&page, "\n## %s\n\n%s", c.CommandPath(), asMarkdown(c.Long))
		var code []string
		if _, arguments, _ := strings.Cut(c.Use, " "); arguments != "" {
			code = append(code, c.UseLine()+"\n")
		}
		if c.Example != "" {
			code = append(code, dedent(c.Example)+"\n")
		}
		if len(code) > 0 {
			fmt.Fprintf(&page, "\n```\n%s```\n", strings.Join(code, "\n"))
		}
		page.WriteString(flagList(c, shared))
	}
	return page.String()
}

// groupOf is the group that the help of firn lists a command in.
func groupOf(c *cobra.Command) string {
	for c.Parent().HasParent() {
		c = c.Parent()
	}
	return c.GroupID
}

// sharedFlags are the entries that at least three commands have, in the order in which these name them.
func sharedFlags() (shared []string) {
	count, ofFlag := map[string]int{}, map[string]string{}
	for _, c := range commands() {
		for _, f := range shownFlags(c) {
			plain := flagEntry(f, "")
			if count[plain]++; count[plain] == 3 {
				shared = append(shared, plain)
			}
			if v := variable(c, f); v != "" {
				ofFlag[plain] = flagEntry(f, v)
			}
		}
	}
	for i, plain := range shared {
		shared[i] = cmp.Or(ofFlag[plain], plain)
	}
	return shared
}

// flagList lists the flags of a command: the shared ones by name.
func flagList(c *cobra.Command, shared []string) string {
	var own strings.Builder
	var names []string
	for _, f := range shownFlags(c) {
		i := slices.IndexFunc(serveGroups, func(g serveGroup) bool { return g.first == f.Name })
		if c.CommandPath() == "firn serve" && i >= 0 {
			fmt.Fprintf(&own, "\n**%s**\n\n", serveGroups[i].title)
		}
		entry := flagEntry(f, "")
		is := slices.ContainsFunc(shared, func(s string) bool {
			return s == entry || s == flagEntry(f, setting.Variable(f.Name))
		})
		switch {
		case is && c.CommandPath() != "firn serve":
			names = append(names, "`--"+f.Name+"`")
		case c.CommandPath() == "firn serve":
			own.WriteString(entry)
		default:
			own.WriteString(flagEntry(f, variable(c, f)))
		}
	}
	list := strings.TrimPrefix(own.String(), "\n")
	if list != "" {
		list = "\n" + list
	}
	if len(names) > 0 {
		list += "\n" + wrapped(append([]string{"[Also](#flags-of-many-commands)"},
			strings.Fields(strings.Join(names, ", "))...), "")
	}
	return list
}

// asMarkdown is a help text: what is indented is code.
func asMarkdown(text string) string {
	var made strings.Builder
	inCode := false
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		indented := strings.HasPrefix(line, "  ")
		if indented != inCode && line != "" {
			if indented && i > 0 && lines[i-1] != "" {
				made.WriteString("\n")
			}
			made.WriteString("```\n")
			if inCode = indented; !inCode {
				made.WriteString("\n")
			}
		}
		if inCode && line == "" && (i+1 == len(lines) || !strings.HasPrefix(lines[i+1], "  ")) {
			continue // the block ends with its text
		}
		if inCode {
			line = strings.TrimPrefix(line, "  ")
		} else {
			line = strings.NewReplacer("*", `\*`, "<", `\<`).Replace(line)
		}
		made.WriteString(line + "\n")
	}
	if inCode {
		made.WriteString("```\n")
	}
	return made.String()
}

func dedent(text string) string {
	return strings.ReplaceAll(strings.TrimPrefix(text, "  "), "\n  ", "\n")
}

// also are the flags of other commands than firn serve that variables can set.
var also = append((&serverFlags{name: "server"}).names(), "admin", "layout", "epoch")

// variable is the environment variable that sets a flag of a command, if there is one.
func variable(c *cobra.Command, f *pflag.Flag) string {
	path := c.CommandPath()
	some := path == "firn gen sql" ||
		!strings.HasPrefix(path, "firn gen") && path != "firn layout" && path != "firn doctor"
	if path == "firn serve" || path == "firn doctor" && f.Name == "config" || some && slices.Contains(also, f.Name) {
		return setting.Variable(f.Name)
	}
	return ""
}

func shownFlags(c *cobra.Command) (shown []*pflag.Flag) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" && f.Name != "version" {
			shown = append(shown, f)
		}
	})
	return shown
}

// flagEntry is an item of a list of flags.
func flagEntry(f *pflag.Flag, variable string) string {
	name, usage := "`--"+f.Name+"`", strings.ReplaceAll(f.Usage, "\n", " ")
	if f.Shorthand != "" {
		name = "`-" + f.Shorthand + "`, " + name
	}
	if kind := f.Value.Type(); kind != setting.KindBool {
		name += " " + kind
	}
	if variable != "" {
		name += ", `" + variable + "`"
	}
	if f.DefValue != "" && f.DefValue != "false" {
		usage += " (default: `" + f.DefValue + "`)"
	}
	usage = strings.NewReplacer("*", `\*`, "<", `\<`).Replace(usage)
	return wrapped(strings.Fields("- "+name+": "+usage), "  ")
}

// wrapped are words in lines of at most 100 columns, each but the first behind an indent.
func wrapped(words []string, indent string) string {
	var made strings.Builder
	width := 0
	for i, word := range words {
		switch n := utf8.RuneCountInString(word); {
		case i == 0:
			width = n
		case width+1+n > 100:
			word, width = "\n"+indent+word, len(indent)+n
		default:
			word, width = " "+word, width+1+n
		}
		made.WriteString(word)
	}
	return made.String() + "\n"
}

// Every example in the help is one that the command takes.
func TestExamplesInTheHelp(t *testing.T) {
	for _, c := range commands() {
		for line := range strings.Lines(c.Long + "\n" + c.Example) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
			for command := range strings.SplitSeq(line, "|") {
				words := strings.Fields(command)
				for len(words) > 0 && strings.HasPrefix(words[0], "FIRN_") && strings.Contains(words[0], "=") {
					words = words[1:]
				}
				if len(words) < 2 || words[0] != "firn" || strings.HasSuffix(command, `\`) ||
					strings.Contains(command, "$(") {
					continue
				}
				found, rest, err := new(program).root(new(bool)).Find(words[1:])
				if err == nil {
					err = found.ParseFlags(rest)
				}
				if err != nil {
					t.Errorf("help of %s: %s: %v", c.CommandPath(), command, err)
				}
			}
		}
	}
}
