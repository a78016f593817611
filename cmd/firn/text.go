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

// localFormat is how times of the log are printed, and can be given to flags.
const localFormat = "2006-01-02 15:04:05.000"

func localTime(t time.Time) string { return t.Local().Format(localFormat) }
