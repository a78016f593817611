package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/ops/setting"
)

const commandsHead = `# Commands

` + remake + `
` + "`firn help`" + ` and ` + "`firn help COMMAND`" + ` say the same. Flags go before variables, and
variables before the file that ` + "`--config`" + ` names, in which a flag of ` + "`firn serve`" + ` is a key without
its dashes: ` + "`http-addr: :8080`" + `. A command that reads variables warns of one that begins with
` + "`FIRN_`" + ` and that no command reads. ` + "`firn completion`" + ` prints completions for shells.
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
	page.WriteString(commandsHead + "\n| command | |\n|---|---|\n")
	for _, c := range commands()[1:] {
		fmt.Fprintf(&page, "| [`%s`](#%s) | %s |\n", c.CommandPath(), strings.ReplaceAll(c.CommandPath(), " ", "-"), c.Short)
	}
	for _, c := range commands() {
		fmt.Fprintf(&page, "\n## %s\n\n%s", c.CommandPath(), asMarkdown(c.Long))
		if c.Runnable() && c.HasParent() {
			fmt.Fprintf(&page, "\n```\n%s\n```\n", c.UseLine())
		}
		if c.Example != "" {
			fmt.Fprintf(&page, "\nExamples:\n\n```\n%s\n```\n", dedent(c.Example))
		}
		if rows := flagRows(c); len(rows) > 0 {
			fmt.Fprintf(&page, "\n| flag | variable | default | |\n|---|---|---|---|\n%s", strings.Join(rows, ""))
		}
	}
	return page.String()
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

func flagRows(c *cobra.Command) (rows []string) {
	path := c.CommandPath()
	every := path == "firn serve"
	some := path == "firn gen sql" || !strings.HasPrefix(path, "firn gen") && path != "firn layout" && path != "firn doctor"
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "version" {
			return
		}
		name, fromVariable, standard := "`--"+f.Name+"`", "", ""
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		if kind := f.Value.Type(); kind != setting.KindBool {
			name += " " + kind
		}
		if every || path == "firn doctor" && f.Name == "config" || some && slices.Contains(also, f.Name) {
			fromVariable = "`" + setting.Variable(f.Name) + "`"
		}
		usage := strings.ReplaceAll(f.Usage, "\n", " ")
		if m := regexp.MustCompile(`^(.*) \(default: (.*)\)$`).FindStringSubmatch(usage); m != nil {
			usage, standard = m[1], m[2]
		} else if f.DefValue != "" && f.DefValue != "false" {
			standard = "`" + f.DefValue + "`"
		}
		usage = strings.NewReplacer("|", `\|`, "*", `\*`, "<", `\<`).Replace(usage)
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |\n", name, fromVariable, standard, usage))
	})
	return rows
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
				if len(words) < 2 || words[0] != "firn" || strings.HasSuffix(command, `\`) || strings.Contains(command, "$(") {
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
