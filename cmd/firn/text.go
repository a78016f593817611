package main

import (
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

// moment is an instant for people.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
