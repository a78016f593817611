package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const completionHelp = `Completion prints a script by which a shell completes commands, flags and, where
they can be listed, values. The deb and rpm packages have installed it already.

For the shell that runs now:

  bash        source <(firn completion bash)
  zsh         source <(firn completion zsh)
  fish        firn completion fish | source
  powershell  firn completion powershell | Out-String | Invoke-Expression

For all shells from then on, see the examples. Bash needs the package
bash-completion.`

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
		Short:     "Print a script by which a shell completes commands",
		Long:      completionHelp,
		Example:   completionExamples,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || scripts[args[0]] == nil {
				return usagef("%q: firn completion takes the name of one shell; want one of %v", strings.Join(args, " "), shells)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return scripts[args[0]](c.Root(), p.stdout) },
	}
}

// completeKinds has shells offer files only where files are wanted, for a command and those below it. Other
// values are offered where a command says which there are.
func completeKinds(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		_, known := c.GetFlagCompletionFunc(f.Name)
		switch kind := f.Value.Type(); {
		case known || kind == "file":
		case kind == "directory":
			must(c.MarkFlagDirname(f.Name))
		default:
			must(c.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions))
		}
	})
	if c.ValidArgsFunction == nil && c.ValidArgs == nil && !strings.Contains(c.Use, "FILE") {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, sub := range c.Commands() {
		completeKinds(sub)
	}
}
