package console

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain writes text for people: see Plain.
type plain struct{ to io.Writer }

// Plain returns a writer of text for people, which a terminal shows as it is: what comes from servers, stores and files
// can neither move the cursor nor hide or fake what else is there. Line ends, tabs and the colours of this package
// pass; anything else that does not print is written out, such as \x1b. What is written at once must end with a whole
// character. It is safe for concurrent use if to is.
func Plain(to io.Writer) io.Writer { return plain{to} }

func (p plain) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.to, printable(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// printable is what a plain writer makes of a text.
func printable(text string) string {
	if !strings.ContainsFunc(text, hidden) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for text != "" {
		r, n := utf8.DecodeRuneInString(text)
		colour := colourAt(text)
		switch {
		case colour != "":
			b.WriteString(colour)
			n = len(colour)
		case r == utf8.RuneError && n == 1, r < utf8.RuneSelf && hidden(r):
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

func hidden(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }

// colourAt returns the colour with which a text begins, if it does.
func colourAt(text string) string {
	for _, c := range []string{string(Red), string(Green), string(Yellow), noColour} {
		if strings.HasPrefix(text, c) {
			return c
		}
	}
	return ""
}
