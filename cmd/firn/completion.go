package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
)

const completionHelp = `Completion prints a script that lets a shell complete commands, flags and
values, and the sequencers of a running server. The deb and rpm packages install
it.

For this shell only:

  bash        source <(firn completion bash)
  zsh         source <(firn completion zsh)
  fish        firn completion fish | source
  powershell  firn completion powershell | Out-String | Invoke-Expression

For all new shells, see the examples. Bash needs the package bash-completion.`

const completionExamples = `  firn completion bash > /etc/bash_completion.d/firn
  firn completion zsh > "${fpath[1]}/_firn"
  firn completion fish > ~/.config/fish/completions/firn.fish`

func (p *program) completionCommand() *cobra.Command {
	scripts := map[string]func(*cobra.Command, io.Writer) error{
		"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh":        func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) },
		"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": func(root *cobra.Command, w io.Writer) error { return root.GenPowerShellCompletionWithDesc(w) },
	}
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Print a script that lets a shell complete commands",
		Long:      completionHelp,
		Example:   completionExamples,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || scripts[args[0]] == nil {
				return usagef("%q: firn completion takes the name of one shell; want one of %v",
					strings.Join(args, " "), shells)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return scripts[args[0]](c.Root(), p.stdout) },
	}
}

// completeKinds has shells offer files only where files are wanted, and the sequencers of a running server where one is
// wanted, for a command and those below it. Other values are offered where a command says which there are.
func (p *program) completeKinds(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		_, known := c.GetFlagCompletionFunc(f.Name)
		switch kind := f.Value.Type(); {
		case known || kind == "file":
		case f.Name == "sequencer":
			must(c.RegisterFlagCompletionFunc(f.Name, p.completeSequencer))
		case kind == "directory":
			must(c.MarkFlagDirname(f.Name))
		default:
			must(c.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions))
		}
	})
	if c.HasParent() && c.Parent().Name() == "sequencer" && c.Name() != "create" && strings.HasSuffix(c.Use, " NAME") {
		c.ValidArgsFunction = p.completeSequencer
	}
	if c.ValidArgsFunction == nil && c.ValidArgs == nil && !strings.Contains(c.Use, "FILE") {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, sub := range c.Commands() {
		p.completeKinds(sub)
	}
}

// completeSequencer offers the sequencers of a running server, each with its layout, or as a counter. It offers nothing
// where no server answers soon.
func (p *program) completeSequencer(c *cobra.Command, args []string, _ string) (names []string,
	_ cobra.ShellCompDirective,
) {
	if len(args) > 0 && !strings.Contains(c.Use, "ID") {
		return nil, cobra.ShellCompDirectiveNoFileComp // it has its name
	}
	for _, s := range p.sequencers(c) {
		what := s.Definition.IDLayout().String()
		if s.Definition.Kind == cluster.Counter {
			what = s.Definition.String()
		}
		names = append(names, cobra.CompletionWithDesc(console.Shown(s.Name), what))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// sequencersWithin is how long a server may take to tell its sequencers to who has not asked for them.
const sequencersWithin = 500 * time.Millisecond

// sequencers are those of the server that the flags of a command, or variables, name for administrators. They are none
// where that server does not tell them soon.
func (p *program) sequencers(c *cobra.Command) []calls.StatusSequencer {
	var s serverFlags
	flags := &pflag.FlagSet{}
	s.addAdmin(flags)
	for _, name := range s.names() {
		if given := c.Flags().Lookup(name); given != nil && given.Changed &&
			flags.Set(name, given.Value.String()) != nil {
			return nil
		}
	}
	if (setting.Sources{}).FromEnvironment(flags, p.env) != nil {
		return nil
	}
	ask, err := s.client()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.Context(), sequencersWithin)
	defer cancel()
	var all httpapi.SequencerList
	_, _ = ask.Call(ctx, http.MethodGet, "/api/v1/sequencers", nil, &all) // all is empty then
	return all.Sequencers
}
