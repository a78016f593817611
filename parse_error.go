package firn

import (
	"fmt"
	"strings"
)

// ParseError is the error for input that is not an ID. Everything that reads an ID
// returns it: [Parse], [Encoding.Parse], [ParseUUID], [Layout.FromUUID] and the Unmarshal and
// Scan methods of [ID]. [errors.AsType] finds it in a wrapped error.
type ParseError struct {
	Encoding string // what was expected: the name of an [Encoding], "binary", "SQL" or "UUID"
	Input    string // the whole input, however long
	Reason   string // what is wrong with the input, and what would be right
}

// Error returns all three parts on one line. It quotes the input, and cuts a long
// input after 40 characters.
func (e *ParseError) Error() string {
	input := fmt.Sprintf("%.40q", e.Input)
	if len(e.Input) > 40 {
		input += fmt.Sprintf("... (%d bytes)", len(e.Input))
	}
	return fmt.Sprintf("%s is not a %s ID: %s", input, e.Encoding, e.Reason)
}

// reject returns the error for an input. It copies the input, so that the caller's
// own copy need not be on the heap while all goes well.
func reject[T string | []byte](encoding string, input T, format string, args ...any) error {
	return &ParseError{
		Encoding: encoding,
		Input:    strings.Clone(string(input)),
		Reason:   fmt.Sprintf(format, args...),
	}
}
