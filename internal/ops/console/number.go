package console

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Number formats a whole number with its digits in groups of three: 1 234 567. It drops a fraction.
func Number(n float64) string {
	text := strconv.FormatFloat(math.Floor(n), 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return text
}

// Plural formats a count of things: 1 node, 2 nodes.
func Plural(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return Number(float64(n)) + " " + what
}

// Brief formats a duration without trailing zeros: 1h and not 1h0m0s.
func Brief(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if short, ok := strings.CutSuffix(text, zero); ok {
			text = short + zero[:1]
		}
	}
	return text
}

// Signed formats a duration with its sign.
func Signed(d time.Duration) string {
	if d >= 0 {
		return "+" + Brief(d)
	}
	return Brief(d)
}

// Wrap breaks a text into lines of at most so many bytes.
func Wrap(text string, width int) []string {
	var lines []string
	for word := range strings.FieldsSeq(text) {
		if last := len(lines) - 1; last >= 0 && len(lines[last])+1+len(word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
