package firn

import (
	"fmt"
	"strings"
)

// ParseError is the one error for input that is no ID. It is returned by
// everything that reads one: [Parse], [Encoding.Parse] and the Unmarshal and Scan
// methods of [ID]. [errors.AsType] finds it in a wrapped error.
type ParseError struct {
	Encoding string // what was expected: the name of an [Encoding], "binary" or "SQL"
	Input    string // the input in full, however long it was
	Reason   string // what is wrong with the input, and what would be right
}

// Error gives all three parts on one line. It quotes the input, and cuts a long
// one after 40 characters.
func (e *ParseError) Error() string {
	input := fmt.Sprintf("%.40q", e.Input)
	if len(e.Input) > 40 {
		input += fmt.Sprintf("... (%d bytes)", len(e.Input))
	}
	return fmt.Sprintf("%s is not a %s ID: %s", input, e.Encoding, e.Reason)
}

// reject is the error for an input that was not accepted. The input is copied, so
// that the caller's own copy need not be on the heap while all goes well.
func reject[T string | []byte](encoding string, input T, format string, args ...any) error {
	return &ParseError{
		Encoding: encoding,
		Input:    strings.Clone(string(input)),
		Reason:   fmt.Sprintf(format, args...),
	}
}
