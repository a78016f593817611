// Package idtext reads IDs whose encoding nobody names.
package idtext

import (
	"fmt"
	"strings"

	"github.com/firn-id/firn"
)

// shortestGuess is how long a text must be to be taken for an ID, though nobody said so: base58 is as short as the ID is small,
// and IDs have 8 characters or more within hours of their epoch.
const shortestGuess = 8

// Guess reads an ID whose encoding is not told. Digits that are a decimal ID are that. Anything else
// must be an ID in exactly one encoding: where there are several readings, the error lists them.
func Guess(text string) (firn.ID, *firn.Encoding, error) {
	id, decimalErr := firn.Parse(text)
	if decimalErr == nil {
		return id, firn.Decimal, nil
	}
	var readings []string
	var found *firn.Encoding
	for _, e := range firn.Encodings() {
		if reading, err := e.Parse(text); err == nil && len(text) >= shortestGuess {
			id, found = reading, e
			readings = append(readings, fmt.Sprintf("%v (%v)", e, reading))
		}
	}
	switch {
	case len(readings) == 1:
		return id, found, nil
	case len(readings) > 1:
		return 0, nil, fmt.Errorf("%q is an ID in %s; say which with --format", text, strings.Join(readings, " and in "))
	case strings.Trim(text, "0123456789") == "":
		return 0, nil, decimalErr
	}
	short := fmt.Sprintf("%.40q", text)
	if len(text) > 40 {
		short += fmt.Sprintf("... (%d bytes)", len(text))
	}
	return 0, nil, fmt.Errorf("%s is not an ID in any encoding; want decimal digits, 16 characters of hex, 13 of base32, 11 of base62 or 8 to 11 of base58; --format base58 reads shorter ones", short)
}

// Reader returns the function that reads IDs in a format: the name of an encoding, or "auto".
func Reader(format string) (func(string) (firn.ID, *firn.Encoding, error), error) {
	if format == "auto" {
		return Guess, nil
	}
	e, err := firn.EncodingByName(format)
	if err != nil {
		return nil, err
	}
	return func(text string) (firn.ID, *firn.Encoding, error) {
		id, err := e.Parse(text)
		return id, e, err
	}, nil
}

// Encodings are the names of the encodings.
func Encodings() []string {
	var names []string
	for _, e := range firn.Encodings() {
		names = append(names, e.String())
	}
	return names
}
