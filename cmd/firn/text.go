package main

import (
	"strconv"
	"strings"
	"time"
)

// sections puts an empty line before each that is not empty.
func sections(all ...string) string {
	var text strings.Builder
	for _, s := range all {
		if s != "" {
			text.WriteString("\n" + s)
		}
	}
	return text.String()
}

// shownText is shown for what may have spaces in it.
func shownText(text string) string {
	if shown(strings.ReplaceAll(text, " ", "")) == strings.ReplaceAll(text, " ", "") {
		return text
	}
	return strconv.QuoteToASCII(text)
}

// shown is a name for people: as it is, unless a terminal would show it as something else.
func shown(name string) string {
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f || c == '"' {
			return strconv.QuoteToASCII(name)
		}
	}
	return name
}

// moment is an instant for people.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
