package console

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"firn: all is well\n\tand more: ä, 漢\n": "firn: all is well\n\tand more: ä, 漢\n",
		Red.Paint("firn:") + " no":              Red.Paint("firn:") + " no",
		"\x1b[2J\x1b[H\x1b]0;owned\a":           `\x1b[2J\x1b[H\x1b]0;owned\x07`,
		"failed\r\x1b[Kno problems":             `failed\x0d\x1b[Kno problems`,
		"\u009b2J":                              `\u009b2J`,
		"\x9b2J":                                `\x9b2J`,
		"abc\u202edef":                          `abc\u202edef`,
		"\x1b[31":                               `\x1b[31`,
	} {
		var b bytes.Buffer
		if n, err := fmt.Fprint(Plain(&b), text); n != len(text) || err != nil || b.String() != want {
			t.Errorf("%q: %q, %d, %v; want %q", text, b.String(), n, err, want)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }

func TestPlainTellsOfErrors(t *testing.T) {
	if _, err := fmt.Fprint(Plain(broken{}), "x"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v, want that of the writer below", err)
	}
}
