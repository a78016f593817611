package idtext

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
)

// AmbiguousError is returned when a text is an ID in several forms, and nobody said which it has.
type AmbiguousError struct {
	Text     string
	Readings []Reading // two or more
}

// Reading is an ID that a text may mean.
type Reading struct {
	Form Form
	ID   firn.ID
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q is an ID in %s; say which form it has", e.Text,
		e.join(" and in ", func(r Reading) string { return fmt.Sprintf("%v (%v)", r.Form, r.ID) }))
}

func (e *AmbiguousError) join(between string, text func(Reading) string) string {
	var all []string
	for _, r := range e.Readings {
		all = append(all, text(r))
	}
	return strings.Join(all, between)
}

// Explain adds to an AmbiguousError how the caller says which form a text has: by what stands in front of the form's
// name, such as "as=". It returns other errors as they are.
func Explain(err error, how string) error {
	e, ok := errors.AsType[*AmbiguousError](err)
	if !ok {
		return err
	}
	return fmt.Errorf("%w: %s", err, e.join(" or ", func(r Reading) string { return how + r.Form.String() }))
}

// shortestGuess is how long a text must be to be taken for an ID in another form than decimal, though nobody said so:
// base58 is as short as the ID is small, and IDs have 8 characters or more within hours of their epoch.
const shortestGuess = 8

// ahead is how many years an ID may be later than the clock of the process that reads it. Clocks are wrong by less,
// even those that have lost their time, so that none makes a text mean another ID; and most texts mean later times in
// other forms.
const ahead = 10

// guess reads an ID whose encoding is not known. The text must have one reading, or one alone that the sequencer may
// have made.
func (s Sequencer) guess(text string, now time.Time) (firn.ID, Form, error) {
	var all []Reading
	for _, f := range []Form{Decimal, Hex, Base32, Base58, Base62, PrefixedDecimal} { // the others are marked
		if !fits(f, text) {
			continue
		}
		r := Reading{Form: f}
		var err error
		if r.ID, err = s.ReadIn(f, text); err != nil {
			continue
		}
		all = append(all, r)
	}
	if len(all) > 1 {
		unlikely := func(r Reading) bool { return !s.mayHaveMade(r.ID, now) }
		if likely := slices.DeleteFunc(slices.Clone(all), unlikely); len(likely) > 0 {
			all = likely
		}
	}
	switch {
	case len(all) == 1:
		return all[0].ID, all[0].Form, nil
	case len(all) > 1:
		return 0, 0, &AmbiguousError{text, all}
	case strings.Trim(text, digits) == "", '0' <= text[0] && text[0] <= '9' && isFloat(text):
		_, err := firn.Parse(text)
		return 0, 0, err
	case isNumbered(text):
		_, err := s.ReadIn(PrefixedDecimal, text)
		return 0, 0, err
	}
	return 0, 0,
		fmt.Errorf("%s is not an ID in any form; want decimal digits, 16 characters of hex, 13 of base32, 11 of "+
			"base62, 8 to 11 of base58 (say so if there are fewer), a UUID, or a text such as ord_038aj5d574005, "+
			"ORD117465411174400005, 117465411174400005-32 or 1-0Z8XHYq9t0Y", quoted(text))
}

// fits reports whether a text is long enough to be guessed, and as long as those of a form. It rules most forms out for
// less than the error of ReadIn costs.
func fits(f Form, text string) bool {
	text = strings.TrimPrefix(text, bom)
	n := len(text)
	switch f {
	case Hex:
		return n == 16
	case Base32:
		return n == 13
	case Base58:
		return shortestGuess <= n && n <= 11
	case Base62:
		return n == 11
	case PrefixedDecimal:
		return isNumbered(text)
	}
	return true
}

func isFloat(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// mayHaveMade reports whether an ID is one of the sequencer's layout, and not of a time to come. A sequencer that is
// not known may have made any: perhaps it scatters them.
func (s Sequencer) mayHaveMade(id firn.ID, now time.Time) bool {
	if s.Name == "" || s.Kind == cluster.Counter {
		return true
	}
	at, err := s.Layout.Time(s.Made(id))
	return err == nil && at.Before(now.AddDate(ahead, 0, 0))
}

// Rounded reports whether an ID is one that JavaScript writes for numbers near it, and for none of its own: 53 bits do
// not hold it. Of IDs of our time, that is so by chance for one of 16 at most, and for none that is the first of its
// tick.
func Rounded(id firn.ID) bool {
	if id >= 1e17 && id%10 != 0 { // a double has 17 digits, and zeros
		return false
	}
	f := float64(id)
	return firn.ID(f) != id && strconv.FormatFloat(f, 'f', -1, 64) == id.String()
}
