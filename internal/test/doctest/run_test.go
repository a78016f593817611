package doctest

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/responsive"
	"github.com/firn-id/firn/internal/test/testenv"
)

// serving are the commands that go on until they are told to end, and what shows that they are ready: a command, in
// which $OUT and $ERR are what they have printed.
var serving = []struct {
	command *regexp.Regexp
	ready   string
}{
	{regexp.MustCompile(`^(\w+=\S+ )*(firn|go run \./cmd/firn) serve\b`), `grep -q 'claimed a node ID' $ERR`},
	{
		regexp.MustCompile(`^(firn|go run \./cmd/firn) demo( --.*)?$`),
		`curl -sf -o /dev/null -X POST localhost:8080/api/v1/id`,
	},
	{regexp.MustCompile(`^firn .* --follow\b`), `test -s $OUT`},
	{
		regexp.MustCompile(`^(etcd|go tool go\.etcd\.io/etcd/server/v3)\b`),
		`curl -sf -o /dev/null localhost:2379/health`,
	},
	{regexp.MustCompile(`^go run \./examples/orders`), `grep -q 'is now attached' $OUT`},
}

// serves tells what shows that a script's last command is ready, if that is one that serves.
func serves(commands []string) (ready string, ok bool) {
	i := len(commands) - 1
	for i >= 0 && (strings.TrimSpace(commands[i]) == "" || strings.HasPrefix(commands[i], "#")) {
		i--
	}
	for i > 0 && strings.HasSuffix(commands[i-1], `\`) {
		i--
	}
	for _, s := range serving {
		if i >= 0 && s.command.MatchString(commands[i]) &&
			!strings.HasSuffix(strings.TrimSpace(commands[len(commands)-1]), "&") {
			return s.ready, true
		}
	}
	return "", false
}

const strict = `set -eEu -o pipefail
trap 'echo "exit status $?: $BASH_COMMAND" >&2' ERR
`

// failure says what went wrong with a block.
func (b block) failure(commands []string, r ran, format string, args ...any) error {
	return fmt.Errorf("%v: %s\n--- commands\n%s\n--- printed\n%s--- and on standard error\n%s",
		b, fmt.Sprintf(format, args...), strings.Join(commands, "\n"), r.out, r.errs)
}

// runPage runs the commands of a page, one block after the other, and tells what is wrong.
func (h *house) runPage(t *testing.T, p page) error {
	t.Helper()
	var last *done // the block before
	for _, b := range p.blocks {
		if b.language == "text" && b.after == "sh" && last != nil {
			if err := h.printed(*last, b); err != nil {
				return err
			}
		}
		last = nil
		if !b.hasCommands() {
			continue
		}
		if b.notRun != "" {
			t.Logf("%v: not run: %s", b, b.notRun)
			if err := h.checkFlags(t, b); err != nil {
				return err
			}
			continue
		}
		if b.end {
			if _, err := h.order("end"); err != nil {
				return fmt.Errorf("%v: ending what runs: %w", b, err)
			}
		}
		for _, command := range b.first {
			if _, err := h.runBlock(t, b, []string{command}); err != nil {
				return err
			}
		}
		var err error
		began := time.Now()
		if b.language == "console" {
			err = h.runConsole(t, b)
		} else {
			last, err = h.runBlock(t, b, b.lines)
		}
		if late := lateSince(began); err != nil && b.prompt && late > responsive.Limit {
			t.Logf("not judged, since this machine was late by up to %v: %v", late.Round(time.Millisecond), err)
			last, err = nil, nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lateSince is how late this machine has been at most.
var lateSince = responsive.Late

// checkFlags asks the commands of firn in a block that is not run for help: they are there, with these flags. Those
// that print a file need nothing, and are run.
func (h *house) checkFlags(t *testing.T, b block) error {
	t.Helper()
	for _, line := range b.commands() {
		at := firnCommand.FindStringIndex(line)
		if at == nil {
			continue
		}
		command, _, _ := strings.Cut(line[at[0]:], " |")
		if !strings.Contains(command, "firn gen ") {
			command += " --help"
		}
		if _, r, err := h.run(t, "run", strict+command+" >/dev/null\n"); err != nil || r.status != "0" {
			return b.failure([]string{command}, r, "its flags: %v", err)
		}
	}
	return nil
}

// done is a block that was run.
type done struct {
	block
	name   string
	serves bool
	ran
}

// runBlock runs commands; if the last one serves, until it is ready.
func (h *house) runBlock(t *testing.T, b block, commands []string) (*done, error) {
	t.Helper()
	script := strict + strings.Join(commands, "\n") + "\n"
	ready, ok := serves(commands)
	if !ok {
		name, r, err := h.run(t, "run", script)
		if err == nil && r.status != "0" {
			err = fmt.Errorf("it ends with status %s", r.status)
		}
		if err != nil {
			return nil, b.failure(commands, r, "%v", err)
		}
		if err := prints(commands, r.out); err != nil {
			return nil, b.failure(commands, r, "%v", err)
		}
		return &done{b, name, false, r}, nil
	}
	name, r, err := h.run(t, "serve", script)
	if err != nil {
		return nil, b.failure(commands, r, "%v", err)
	}
	check := strings.NewReplacer("$OUT", "/mnt/page/"+name+".out", "$ERR", "/mnt/page/"+name+".err").Replace(ready)
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		_, c, err := h.run(t, "run", check)
		if err == nil && c.status == "0" {
			return &done{b, name, true, r}, nil
		}
		r.out, r.errs = h.read(name+".out"), h.read(name+".err")
		if status := h.read(name + ".ended"); status != "" {
			return nil, b.failure(commands, r, "it ended with status %s", status)
		}
		if err == nil && time.Since(began) > patience {
			err = fmt.Errorf("it is not ready after %v: %s", patience, ready)
		}
		if err != nil {
			return nil, b.failure(commands, r, "%v", err)
		}
	}
}

// prints checks the comments in commands that say what they print.
func prints(commands []string, out string) error {
	var shown []string
	for _, command := range commands {
		if _, line, ok := strings.Cut(command, "# prints "); ok {
			shown = append(shown, strings.TrimSpace(line))
		}
	}
	return compareSome(shown, linesOf(out))
}

// printed checks a block that shows what the one before printed. One that serves has time to do so.
func (h *house) printed(d done, shown block) error {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if d.serves {
			d.out, d.errs = h.read(d.name+".out"), h.read(d.name+".err")
		}
		compare := compareAll
		if d.serves {
			compare = compareSome
		}
		err := compare(shown.lines, linesOf(d.out))
		if err == nil {
			return nil
		}
		if !d.serves || time.Since(began) > patience {
			return shown.failure(d.lines, d.ran, "%v", err)
		}
	}
}

// runConsole runs the commands of a console, one by one, and compares what each prints.
func (h *house) runConsole(t *testing.T, b block) error {
	t.Helper()
	var commands, shown []string
	finish := func() error {
		if len(commands) == 0 {
			return nil
		}
		d, err := h.runBlock(t, b, commands)
		if err == nil {
			d.lines = commands // of this block, the ones that printed it
			err = h.printed(*d, block{page: b.page, line: b.line, lines: shown})
		}
		commands, shown = nil, nil
		return err
	}
	for _, line := range b.lines {
		command, ok := strings.CutPrefix(line, "$ ")
		switch {
		case ok:
			if err := finish(); err != nil {
				return err
			}
			commands = []string{command}
		case len(commands) == 0:
			return fmt.Errorf("%v: %q: a console begins with $ and a command", b, line)
		case len(shown) == 0 && strings.HasSuffix(commands[len(commands)-1], `\`):
			commands = append(commands, strings.TrimPrefix(line, "> "))
		default:
			shown = append(shown, line)
		}
	}
	return finish()
}

// debian has the packages of programs that pages use and the repository does not build.
var debian = map[string]string{
	"haproxy": "haproxy", "nginx": "nginx", "promtool": "prometheus",
	"redis-cli": "redis-tools",
}

// lacks says what a page needs and is not here; nothing, if all is.
func lacks(p page) string {
	for _, b := range p.blocks {
		for _, line := range b.commands() {
			for word := range strings.FieldsSeq(line) {
				if name, ok := debian[word]; ok && b.hasCommands() && b.notRun == "" {
					if _, err := exec.LookPath(word); err != nil {
						return "apt-get install " + name
					}
				}
				if word == "sudo" && b.hasCommands() && b.notRun == "" && os.Getuid() != 0 {
					return "it has commands for root"
				}
			}
		}
	}
	return ""
}

// Every command in the documentation works as it stands there.
func TestEveryCommandWorks(t *testing.T) {
	testenv.Slow(t)
	for _, p := range pages(t) {
		t.Run(p.name, func(t *testing.T) {
			if !slices.ContainsFunc(p.blocks, block.hasCommands) {
				return
			}
			if what := lacks(p); what != "" {
				t.Skip(what)
			}
			began := time.Now()
			if err := build(t).runPage(t, p); err != nil {
				t.Error(err)
			}
			t.Logf("the whole page takes %v", time.Since(began).Round(time.Millisecond))
		})
	}
}
