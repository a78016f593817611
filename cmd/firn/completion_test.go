package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/test/testenv"
)

// completionScript writes the script of a shell into a file.
func completionScript(t *testing.T, shell string) string {
	t.Helper()
	var script, errors bytes.Buffer
	if status := run(t.Context(), []string{"completion", shell}, nil, nil, &script, &errors); status != statusOK {
		t.Fatalf("status %d: %s", status, &errors)
	}
	path := filepath.Join(t.TempDir(), "firn."+shell)
	if err := os.WriteFile(path, script.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each shell that is here can read its script.
func TestShellsReadTheirScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			path := testenv.Program(t, shell, shell)
			if out, err := exec.Command(path, "-n", completionScript(t, shell)).CombinedOutput(); err != nil ||
				len(out) > 0 {
				t.Errorf("%s -n: %v %s", shell, err, out)
			}
		})
	}
	if completionScript(t, "powershell") == "" {
		t.Error("powershell has no script")
	}
}

// Commands that read the configuration of serve offer its flags, which their help does not repeat.
func TestBorrowedFlagsAreCompleted(t *testing.T) {
	offered := func(args ...string) (names []string) {
		t.Helper()
		var out, errors bytes.Buffer
		if status := run(t.Context(), append([]string{cobra.ShellCompNoDescRequestCmd}, args...), nil, nil, &out,
			&errors); status != statusOK {
			t.Fatalf("status %d: %s", status, &errors)
		}
		return strings.Fields(out.String())
	}
	for _, borrower := range [][]string{{"health"}, {"doctor"}, {"gen", "config"}} {
		got := offered(append(borrower, "--")...)
		serveFlags().VisitAll(func(f *pflag.Flag) {
			if want := f.Name != "config" ||
				borrower[0] != "gen"; !f.Hidden && slices.Contains(got, "--"+f.Name) != want {
				t.Errorf("firn %v offers --%s: %v; want %v", borrower, f.Name, !want, want)
			}
		})
		if got := offered(append(borrower, "--data-d")...); !slices.Equal(got, []string{"--data-dir", ":4"}) {
			t.Errorf("firn %v --data-d: %q", borrower, got)
		}
	}
}

// What bash offers at the end of a line, with its package bash-completion.
func TestBashCompletes(t *testing.T) {
	const library = "/usr/share/bash-completion/bash_completion"
	if _, err := os.Stat(library); err != nil {
		t.Skip("bash-completion is not installed; Debian has it in the package bash-completion")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "firn")); err != nil {
		t.Fatal(err)
	}
	script := completionScript(t, "bash")
	for line, want := range map[string][]string{
		"firn ":                     {"serve", "id", "cluster", "completion"},
		"firn cl":                   {"cluster"},
		"firn sequencer ":           {"create", "list", "show", "destroy", "attach", "detach"},
		"firn completion ":          {"bash", "zsh", "fish", "powershell"},
		"firn serve --layout tw":    {"twitter"},
		"firn serve --log-level w":  {"warn"},
		"firn doctor --log-level w": {"warn"},
		"firn doctor --data-d":      {"--data-dir"},
		"firn serve --no-auto":      {"--no-auto-attach"},
	} {
		words := strings.Split(line, " ")
		shell := exec.Command("bash", "--norc", "-c", `
			source `+library+` && source "$1" && shift
			COMP_LINE=$1 COMP_POINT=${#1}; shift
			COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
			compopt() { :; } # it is for a line that is typed
			__start_firn && printf '%s\n' "${COMPREPLY[@]}"`, "bash", script, line)
		shell.Args = append(shell.Args, words...)
		shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := shell.CombinedOutput()
		offered := map[string]bool{}
		for one := range strings.Lines(string(out)) {
			word, _, _ := strings.Cut(strings.TrimSpace(one), " ")
			offered[word] = true
		}
		for _, word := range want {
			if err != nil || !offered[word] {
				t.Errorf("%q: bash offers %q, %v; want %s in it", line, out, err, word)
			}
		}
	}
}
