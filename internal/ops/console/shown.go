package console

import (
	"strconv"
	"strings"
)

// ShownText is Shown for text that may contain spaces.
func ShownText(text string) string {
	if Shown(strings.ReplaceAll(text, " ", "")) == strings.ReplaceAll(text, " ", "") {
		return text
	}
	return strconv.QuoteToASCII(text)
}

// Shown returns a name for people: quoted if a terminal would show it as something else.
func Shown(name string) string {
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f || c == '"' {
			return strconv.QuoteToASCII(name)
		}
	}
	return name
}
