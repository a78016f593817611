// Package idtext writes IDs as text, in every form that callers can ask for, and reads them back. It knows no protocol.
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
	"github.com/firn-id/firn/sequencer"
)

// Form is how an ID is written as text. The zero value is Decimal.
type Form uint8

// The forms. The first ones are the encodings of package firn.
const (
	Decimal Form = iota
	Hex
	Base32
	Base58
	Base62
	Checked
	Prefixed        // ord_038aj5d574005: the sequencer's prefix, and Base32 in lower case
	PrefixedDecimal // ORD117465411174400005: the prefix in upper case, and Decimal
	PrefixedChecked // ORD117465411174400005-03: that with check digits, which protect the prefix, too
	UUID            // 019b76da-a800-7000-8000-000000000001: version 7, see firn.Layout.UUID
	Sealed          // 1-0Z8XHYq9t0Y: the key's version, and Base62 of the sealed ID, see firn.Sealer
)

var names = [...]string{
	"decimal", "hex", "base32", "base58", "base62", "checked", "prefixed", "prefixed-decimal", "prefixed-checked",
	"uuid", "sealed",
}

// String returns the name: "decimal", "hex", and so on.
func (f Form) String() string { return names[f] }

// Encoding returns the encoding of which the form is, or nil if it is of none.
func (f Form) Encoding() *firn.Encoding {
	if all := firn.Encodings(); int(f) < len(all) {
		return all[f]
	}
	return nil
}

// NeedsServer reports whether a text depends on a prefix or a key, which only servers know.
func (f Form) NeedsServer() bool { return f.Encoding() == nil && f != UUID }

// Names returns the names of all forms.
func Names() []string { return slices.Clone(names[:]) }

// ParseForm reads the name of a form. When there is none, the error lists the names.
func ParseForm(name string) (Form, error) {
	if i := slices.Index(names[:], name); i >= 0 {
		return Form(i), nil
	}
	return 0, fmt.Errorf("no form of IDs is named %.40q; want one of %s", name, strings.Join(names[:], ", "))
}

// Sequencer is what the texts of a sequencer's IDs depend on.
type Sequencer struct {
	Name      string // empty: unknown, so that every prefix is read, and nothing sealed
	Kind      cluster.Kind
	Layout    firn.Layout // a counter has none
	Dated     sequencer.Dated
	Prefix    string // empty: none
	Scattered bool
	Keys      *Keys // nil: nothing can be sealed or opened
}

// Of returns the sequencer of a definition. Keys may be nil.
func Of(name string, d cluster.Definition, keys *Keys) Sequencer {
	return Sequencer{name, d.Kind, d.IDLayout(), d.Dated, d.Prefix, d.Scattered, keys}
}

// Made returns an ID as its generator made it, before it was scattered: one of the Layout.
func (s Sequencer) Made(id firn.ID) firn.ID {
	if s.Scattered {
		return firn.Gather(id)
	}
	return id
}

// Append appends the text of an ID. An error is returned when the ID has no text in the form: a UUID of an ID that the
// layout does not have.
type Append func(b []byte, id firn.ID) ([]byte, error)

// In returns what writes IDs of the sequencer in a form. An error is returned when they have none: they have no prefix,
// there is no key to seal them, or they are numbers of a counter, which have no UUID.
func (s Sequencer) In(f Form) (Append, error) {
	switch f {
	case Prefixed, PrefixedDecimal, PrefixedChecked:
		if s.Prefix == "" {
			return nil, fmt.Errorf("the sequencer %q was created without a prefix; want another form than %v", s.Name,
				f)
		}
		if f != Prefixed {
			return s.numbered(f)
		}
		return s.appendPrefixed, nil
	case UUID:
		if err := s.hasTime("UUID"); err != nil {
			return nil, err
		}
		return s.appendUUID, nil
	case Sealed:
		if s.Keys == nil {
			return nil, errNoKeys
		}
		return s.Keys.appendSealed(s.Name), nil
	}
	e := f.Encoding()
	return func(b []byte, id firn.ID) ([]byte, error) { return e.Append(b, id), nil }, nil
}

func (s Sequencer) appendPrefixed(b []byte, id firn.ID) ([]byte, error) {
	b = append(append(b, s.Prefix...), '_')
	at := len(b)
	b = firn.Base32.Append(b, id)
	for i := at; i < len(b); i++ {
		b[i] |= 'a' - 'A' // which digits have already
	}
	return b, nil
}

func (s Sequencer) appendUUID(b []byte, id firn.ID) ([]byte, error) {
	u, err := s.Layout.UUID(s.Made(id))
	if err != nil {
		return b, err
	}
	return u.Tagged(s.Name).AppendText(b)
}

// bom begins a text that a program of Windows has written. It is in no form.
const bom = "\ufeff"

// Read reads the text of an ID in any form, and says in which. An *AmbiguousError is returned when the sequencer may
// have made two IDs with that text in different forms, as far as can be said now; an error is returned when the text is
// an ID in no form, and when it is one of another sequencer.
func (s Sequencer) Read(text string, now time.Time) (firn.ID, Form, error) {
	text = strings.TrimPrefix(text, bom)
	f, ok := marked(text)
	if !ok {
		return s.guess(text, now)
	}
	id, err := s.ReadIn(f, text)
	return id, f, err
}

// ReadIn reads the text of an ID in one form. It reads base32 in lower case, too.
func (s Sequencer) ReadIn(f Form, text string) (firn.ID, error) {
	text = strings.TrimPrefix(text, bom)
	switch f {
	case Base32:
		if id, err := firn.Base32.Parse(strings.ToUpper(text)); err == nil && strings.ToLower(text) == text {
			return id, nil
		}
	case Prefixed:
		return s.readPrefixed(text)
	case PrefixedDecimal, PrefixedChecked:
		return s.readNumbered(f, text)
	case UUID:
		return s.readUUID(text)
	case Sealed:
		return s.readSealed(text)
	}
	return f.Encoding().Parse(text)
}

// IsSealed reports whether Read takes a text for a sealed ID.
func IsSealed(text string) bool {
	f, ok := marked(strings.TrimPrefix(text, bom))
	return ok && f == Sealed
}

// marked returns the form of a text that has a character which is in no encoding.
func marked(text string) (Form, bool) {
	version, rest, hyphen := strings.Cut(text, "-")
	switch {
	case strings.Contains(text, "_"):
		return Prefixed, true
	case hyphen && len(rest) <= 2 && version != "" && strings.Trim(version, digits) == "":
		return Checked, true
	case hyphen && len(rest) <= 2 && isNumbered(strings.ToUpper(version)):
		return PrefixedChecked, true
	case hyphen && len(text) == len("00000000-0000-0000-0000-000000000000"), text != "" && text[0] == '{',
		strings.Contains(text, ":"),
		len(text) == 32 && strings.Trim(text, "0123456789abcdefABCDEF") == "":
		return UUID, true
	case hyphen && version != "" && strings.Trim(version, digits) == "":
		return Sealed, true
	}
	return 0, false
}

func (s Sequencer) readPrefixed(text string) (firn.ID, error) {
	prefix, number, ok := strings.Cut(text, "_")
	switch {
	case !ok:
		return 0, reject(text, "a prefixed",
			"it has no underscore; want a prefix, an underscore and 13 characters, such as ord_038aj5d574005")
	case s.Name != "" && s.Prefix == "":
		return 0, reject(text, "a prefixed", "the sequencer %q has no prefix", s.Name)
	case s.Name != "" && prefix != s.Prefix:
		return 0, reject(text, "a prefixed", "its prefix is %.40q, and the sequencer %q has %q", prefix,
			s.Name, s.Prefix)
	case strings.ToLower(number) != number:
		return 0, reject(text, "a prefixed",
			"it has an upper-case letter; want only 0123456789abcdefghjkmnpqrstvwxyz behind the prefix")
	}
	id, err := firn.Base32.Parse(strings.ToUpper(number))
	if parse, ok := errors.AsType[*firn.ParseError](err); ok {
		return 0, reject(text, "a prefixed", "behind the prefix, in lower case: %s", parse.Reason)
	}
	return id, err
}

// hasTime returns an error when the sequencer's IDs have no time, and so nothing that follows from it.
func (s Sequencer) hasTime(what string) error {
	if s.Kind == cluster.Counter {
		return fmt.Errorf("the sequencer %q is a counter: its numbers have no time, and so no %s", s.Name, what)
	}
	return nil
}

func (s Sequencer) readUUID(text string) (firn.ID, error) {
	if err := s.hasTime("UUID"); err != nil {
		return 0, err
	}
	u, err := firn.ParseUUID(text)
	if err != nil {
		return 0, err
	}
	id, err := s.Layout.FromUUID(u)
	switch {
	case err != nil:
		return 0, err
	case s.Name != "" && u != u.Tagged(s.Name):
		return 0, fmt.Errorf("%s is a UUID of another sequencer than %q: it has another tag", quoted(text), s.Name)
	case s.Scattered:
		return firn.Scatter(id), nil
	}
	return id, nil
}

// reject returns the error for a text, in the words of firn.ParseError.
func reject(text, what, format string, args ...any) error {
	return fmt.Errorf("%s is not %s ID: %s", quoted(text), what, fmt.Sprintf(format, args...))
}

func quoted(text string) string {
	short := fmt.Sprintf("%.40q", text)
	if len(text) > 40 {
		short += fmt.Sprintf("... (%d bytes)", len(text))
	}
	return short
}

// readSealed opens a sealed ID. Every well-formed text of a known key opens to some ID.
func (s Sequencer) readSealed(text string) (firn.ID, error) {
	number, sealed, _ := strings.Cut(text, "-")
	version, err := strconv.ParseUint(number, 10, 16)
	if err != nil || version == 0 || number[0] == '0' {
		return 0, reject(text, "a sealed", "it begins with %.40q; want the version of a key, 1 to %d, and a hyphen",
			number, maxVersion)
	}
	if s.Keys == nil {
		return 0, errNoKeys
	}
	id, err := firn.Base62.Parse(sealed)
	if parse, ok := errors.AsType[*firn.ParseError](err); ok {
		return 0, reject(text, "a sealed", "behind the hyphen: %s", parse.Reason)
	}
	return s.Keys.open(s.Name, uint16(version), id)
}
