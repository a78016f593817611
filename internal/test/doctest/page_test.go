package doctest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

// page is a file of the documentation.
type page struct {
	name   string // from the repository's root
	text   string
	blocks []block
}

// block is fenced text in a page.
type block struct {
	page     string
	line     int // of the fence
	language string
	lines    []string
	first    []string // commands to run before it
	end      bool     // end what runs before it
	notRun   string   // why it is left out
	prompt   bool     // it works on a responsive machine alone
	after    string   // the language of the block before, if at most a sentence that ends with a colon is between
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }
func (b block) text() string   { return strings.Join(b.lines, "\n") + "\n" }

// pages are all of the documentation.
func pages(t *testing.T) (all []page) {
	t.Helper()
	for _, pattern := range []string{
		"README.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md",
		"bench/README.md", "internal/ops/deploy/README.md", "examples/*/README.md",
	} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			all = append(all, readPage(t, name))
		}
	}
	return all
}

func readPage(t *testing.T, name string) page {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := parse(strings.TrimPrefix(filepath.ToSlash(name), root+"/"), string(data))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var (
	fence       = regexp.MustCompile("^( *)```([a-z]*) *$")
	indented    = regexp.MustCompile(`^ {4,}\S`)
	listed      = regexp.MustCompile(`^ *([-*]|\d+\.) `)
	instruction = regexp.MustCompile(`^<!-- doctest: (.*) -->$`)
)

// parse reads a page.
func parse(name, text string) (page, error) {
	p := page{name: name, text: text}
	lines := strings.Split(text, "\n")
	pending, previous, inList := block{page: name}, "", false
	wrong := func(i int, format string, args ...any) (page, error) {
		return page{}, fmt.Errorf("%s:%d: %s", name, i+1, fmt.Sprintf(format, args...))
	}
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if m := instruction.FindStringSubmatch(line); m != nil {
			if err := pending.instruct(m[1]); err != nil {
				return wrong(i, "%v", err)
			}
			continue
		}
		m := fence.FindStringSubmatch(lines[i])
		switch {
		case m != nil:
		case strings.HasPrefix(line, "```"):
			return wrong(i, "%s: want three backticks and a language, such as sh", line)
		case line == "":
			continue
		case indented.MatchString(lines[i]) && (i == 0 || strings.TrimSpace(lines[i-1]) == "") && !inList:
			return wrong(i, "code by indentation; want a fenced block, which says what it is")
		case pending.instructed():
			return wrong(i, "between an instruction for doctest and its block there is %q", line)
		default:
			inList = listed.MatchString(lines[i]) || inList && lines[i][0] == ' '
			pending = block{page: name}
			if strings.HasSuffix(line, ":") {
				pending.after = previous
			}
			continue
		}
		b := pending
		b.line, b.language = i+1, m[2]
		for i++; i < len(lines) && strings.TrimSpace(lines[i]) != "```"; i++ {
			b.lines = append(b.lines, strings.TrimPrefix(lines[i], m[1]))
		}
		if i == len(lines) {
			return wrong(b.line-1, "this block does not end")
		}
		if err := b.check(); err != nil {
			return page{}, err
		}
		p.blocks = append(p.blocks, b)
		previous = b.language
		pending = block{page: name, after: previous}
	}
	if pending.instructed() {
		return wrong(len(lines)-1, "an instruction for doctest has no block")
	}
	return p, nil
}

func (b *block) instruct(text string) error {
	switch what, rest, _ := strings.Cut(text, ": "); {
	case text == "end":
		b.end = true
	case text == "prompt":
		b.prompt = true
	case what == "first" && rest != "":
		b.first = append(b.first, rest)
	case what == "not run" && rest != "":
		b.notRun = rest
	default:
		return fmt.Errorf("doctest: %q is not an instruction; want end, prompt, \"first: COMMAND\" or \"not run: "+
			"REASON\"", text)
	}
	return nil
}

func (b *block) instructed() bool { return b.end || b.prompt || b.notRun != "" || len(b.first) > 0 }

func (b block) hasCommands() bool { return b.language == "sh" || b.language == "console" }

// reasons are those for which a block may be left out.
var reasons = []string{
	"needs a Kubernetes cluster",
	"needs Docker",
	"needs PostgreSQL",
	"needs spin",
	"needs systemd",
	"needs ZooKeeper",
	"needs machines of its own",
	"needs the network",
	"takes minutes",
}

// stores are the reasons for which commands of firn may be left out too. Their flags are checked; tests of whole
// programs run them with such a store.
var stores = []string{"needs PostgreSQL", "needs ZooKeeper"}

// command is what a line with a command begins with. The page of commands has examples from the help, which another
// test reads.
var command = regexp.MustCompile(`^(\$ )?(sudo ` +
	`)?(firn|curl|go|git|etcd|etcdctl|haproxy|nginx|keepalived|kubectl|docker|systemctl|apt-get|promtool) `)

var firnCommand = regexp.MustCompile(`(^|[|;&(]|\$\(|\bsudo )\s*(\S*/)?firn `)

// check says what is wrong with what a block says of itself.
func (b block) check() error {
	switch {
	case slices.Contains([]string{"bash", "shell", "zsh", "terminal", "golang", "yml"}, b.language):
		return fmt.Errorf("%v: %q is not a language that doctest runs; want sh, console, go or yaml", b, b.language)
	case b.language == "" && b.page != "docs/commands.md" && slices.ContainsFunc(b.lines, command.MatchString):
		return fmt.Errorf("%v: commands in a block of another language; want sh or console", b)
	case !b.hasCommands() && b.instructed():
		return fmt.Errorf("%v: instructions for doctest go with sh and console", b)
	case b.notRun == "":
		return nil
	case !slices.Contains(reasons, b.notRun):
		return fmt.Errorf("%v: %q is not a reason to skip it; want one of %q", b, b.notRun, reasons)
	case slices.Contains(stores, b.notRun):
		return nil
	case slices.ContainsFunc(b.lines, firnCommand.MatchString) ||
		slices.ContainsFunc(b.commands(), firnCommand.MatchString):
		return fmt.Errorf("%v: commands of firn are run whatever the reason not to", b)
	}
	return nil
}

// commands are those of a console, without their prompts; or all lines of sh.
func (b block) commands() (all []string) {
	if b.language != "console" {
		return b.lines
	}
	for _, line := range b.lines {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, command)
		}
	}
	return all
}
