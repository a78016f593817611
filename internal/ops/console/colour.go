package console

import (
	"io"
	"runtime"
)

// Colour is a colour of terminals. The zero value is the terminal's default.
type Colour string

// Colours of states.
const (
	Red    Colour = "\x1b[31m"
	Green  Colour = "\x1b[32m"
	Yellow Colour = "\x1b[33m"
)

const noColour = "\x1b[0m"

// Paint returns a text in the colour.
func (c Colour) Paint(text string) string {
	if c == "" || text == "" {
		return text
	}
	return string(c) + text + noColour
}

// Coloured reports whether w shows colours: it is a terminal, and NO_COLOR and TERM allow it, see
// https://no-color.org.
func Coloured(w io.Writer, env map[string]string) bool {
	return env["NO_COLOR"] == "" && env["TERM"] != "dumb" && runtime.GOOS != "windows" && IsTerminal(w)
}
