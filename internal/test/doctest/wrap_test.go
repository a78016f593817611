package doctest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const columns = 100

// word is what is never broken: a link, code, or anything without a space.
var word = regexp.MustCompile("(?:!?\\[[^]]*\\]\\([^)]*\\)|`[^`]*`|\\S)+")

// Prose ends at 100 columns; tables, code, pictures and comments are as wide as they are.
func TestProseIsWrapped(t *testing.T) {
	list := exec.Command("git", "ls-files", "--", "*.md")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Skipf("no list of pages: %v", err)
	}
	for name := range strings.FieldsSeq(string(names)) {
		if strings.Contains(name, "testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range tooWide(string(text)) {
			t.Errorf("%s:%d is wider than %d columns; wrap it", name, i, columns)
		}
	}
	long := strings.Repeat("word ", columns)
	for text, want := range map[string]int{
		long: 1, "- " + long: 1, "| " + long: 0, "```\n" + long + "\n```": 0, "<!-- " + long + "-->": 0,
		"[" + long + "](x)": 0, "see [" + long + "](x)": 1, "![" + long + "](x.svg)": 0,
	} {
		if got := tooWide(text); len(got) != want {
			t.Errorf("of %.20q lines %v are too wide, want %d", text, got, want)
		}
	}
}

// tooWide returns the lines that could have been wrapped, from 1.
func tooWide(text string) (lines []int) {
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		body := strings.TrimLeft(line, " ")
		if strings.HasPrefix(body, "```") {
			fenced = !fenced
		}
		if fenced || utf8.RuneCountInString(line) <= columns || strings.HasPrefix(body, "|") ||
			strings.HasPrefix(body, "<") {
			continue
		}
		if len(word.FindAllString(strings.TrimLeft(body, "-*0123456789. "), -1)) > 1 {
			lines = append(lines, i+1)
		}
	}
	return lines
}

// What to do when something is lost is on the first screen of a phone: in 18 lines, without a table, with its commands.
func TestWhatToDoComesFirst(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/recover.md"))
	if err != nil {
		t.Fatal(err)
	}
	first := strings.SplitAfterN(string(text), "\n", 19)
	screen := strings.Join(first[:18], "")
	if strings.Contains(screen, "\n|") || strings.Contains(screen, "\n## ") {
		t.Errorf("the first 18 lines hold a table or a heading:\n%s", screen)
	}
	for _, want := range []string{
		"`firn cluster status`", "`firn quorum status`", "`firn quorum replace ",
		"quorum.md#back-up-and-restore", "A quorum of one", "clock",
	} {
		if !strings.Contains(screen, want) {
			t.Errorf("the first 18 lines don't have %s:\n%s", want, screen)
		}
	}
}
