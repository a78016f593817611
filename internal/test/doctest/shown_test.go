package doctest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// changing is what differs from run to run: a time, a rate, an ID, a member ID, spaces, and what is left out.
var changing = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?|\d+ IDs/s|\d{12,` +
	`19}|\b[a-z2-7]{13}\b| +|\.\.\.`)

const timePattern = `(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?)`

// sameLine tells whether a line that came out is the one that is shown.
func sameLine(shown, came string) bool {
	if shown == came {
		return true
	}
	pattern, at := "^", 0
	var times []string
	for _, found := range changing.FindAllStringIndex(shown, -1) {
		pattern += regexp.QuoteMeta(shown[at:found[0]])
		at = found[1]
		switch text := shown[found[0]:found[1]]; {
		case text == "...":
			pattern += ".*"
		case text[0] == ' ':
			pattern += " +"
		case strings.Contains(text, ":"):
			pattern += timePattern
			times = append(times, text)
		case strings.HasSuffix(text, "/s"):
			pattern += `\d+ IDs/s`
		case text[0] >= '0' && text[0] <= '9' && !strings.ContainsAny(text, "abcdefghijklmnopqrstuvwxyz"):
			pattern += `\d{12,19}`
		default:
			pattern += "[a-z2-7]{13}"
		}
	}
	m := regexp.MustCompile(pattern + regexp.QuoteMeta(shown[at:]) + " *$").FindStringSubmatch(came)
	if m == nil {
		return false
	}
	for i, shownTime := range times {
		if m[i+1] != shownTime && !isNow(m[i+1]) {
			return false
		}
	}
	return true
}

// isNow tells whether a time is one of this run.
func isNow(text string) bool {
	for _, layout := range []string{"2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			return time.Since(at).Abs() < 24*time.Hour
		}
	}
	return false
}

// compareAll tells how all that came out differs from what is shown.
func compareAll(shown, came []string) error {
	at, skipping := 0, false
	for _, want := range shown {
		if want == "..." {
			skipping = true
			continue
		}
		for skipping && at < len(came) && !sameLine(want, came[at]) {
			at++
		}
		if at == len(came) {
			return fmt.Errorf("shown, but not printed: %s", want)
		}
		if !sameLine(want, came[at]) {
			return fmt.Errorf("shown:   %s\nprinted: %s", want, came[at])
		}
		at++
		skipping = false
	}
	if at < len(came) && !skipping {
		return fmt.Errorf("printed, but not shown: %s", came[at])
	}
	return nil
}

// compareSome tells which line of those that are shown did not come out.
func compareSome(shown, came []string) error {
	for _, want := range shown {
		if !slices.ContainsFunc(came, func(line string) bool { return sameLine(want, line) }) {
			return fmt.Errorf("shown, but not printed: %s", want)
		}
	}
	return nil
}

func linesOf(text string) []string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
