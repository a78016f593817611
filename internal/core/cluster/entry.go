package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Version is the version of the format in which commands and checkpoints are written. A program reads this one and
// the one before, which has no times, causes and verbs of an operator. It does not guess at others: that could lead
// it to another value than the other members.
const Version = 2

// readable reports whether this program reads a version of the format.
func readable(version int) bool { return version == 1 || version == Version }

// Entry is a command at its position in the log.
type Entry struct {
	Position int64     // 0 or more; positions ascend, with gaps
	At       time.Time // when it was sent, by its sender's clock, in milliseconds; zero if unknown. It decides nothing
	// which operator asked for it, in at most MaxWho bytes; empty: none did, or that is unknown. It decides nothing
	Who     string
	Command Command
}

// entryJSON is an entry as JSON. In the store, which gives it its position, that field is absent.
type entryJSON struct {
	Version  *int            `json:"version,omitempty"`
	Position *int64          `json:"position,omitempty"`
	At       stampJSON       `json:"at,omitzero"`
	Who      string          `json:"who,omitempty"`
	Command  string          `json:"command"`
	Args     json.RawMessage `json:"args"`
}

// stampJSON is the time of an entry, which is written in UTC, in milliseconds.
type stampJSON time.Time

const stampLayout = "2006-01-02T15:04:05.000Z"

// newStamp returns a time as it is written. One that has no such form is unknown: a time decides nothing, so it is
// no reason not to send a command.
func newStamp(t time.Time) stampJSON {
	t = t.UTC().Truncate(time.Millisecond)
	if y := t.Year(); y < 0 || y > 9999 {
		t = time.Time{}
	}
	return stampJSON(t)
}

// IsZero reports whether the time is unknown, and left out in JSON.
func (s stampJSON) IsZero() bool { return time.Time(s).IsZero() }

// MarshalText writes a time like 2026-11-22T03:12:00.123Z.
func (s stampJSON) MarshalText() ([]byte, error) {
	return []byte(time.Time(s).Format(stampLayout)), nil
}

// UnmarshalText reads what MarshalText wrote. An error is returned when text is anything else.
func (s *stampJSON) UnmarshalText(text []byte) error {
	const point = len(stampLayout) - len(".000Z")
	if len(text) == len(stampLayout) && text[point] == '.' && text[len(text)-1] == 'Z' {
		if t, err := time.Parse(time.RFC3339, string(text)); err == nil { // faster than with a layout of our own
			*s = stampJSON(t)
			return nil
		}
	}
	return fmt.Errorf("the time %.60q; want one like %s", text, stampLayout)
}

// Encode returns a command as members append it to the log, with the time at which it is sent, unless that is
// zero. An error is returned when the command is invalid.
func Encode(c Command, at time.Time) ([]byte, error) { return Entry{At: at, Command: c}.Encode() }

// Encode returns an entry as members append it to the log, which gives it its position. Of Who only printable
// characters are written, in the first MaxWho bytes. An error is returned when the command is invalid.
func (e Entry) Encode() ([]byte, error) {
	if err := e.Command.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", e.Command.Name(), err)
	}
	version := Version
	return e.write(entryJSON{Version: &version})
}

func (e Entry) write(w entryJSON) ([]byte, error) {
	args, err := json.Marshal(e.Command)
	if err != nil {
		return nil, err
	}
	w.At, w.Who, w.Command, w.Args = newStamp(e.At), newWho(e.Who), e.Command.Name(), args
	return json.Marshal(w)
}

// MaxWho is the length of Entry.Who in bytes at which it is cut off.
const MaxWho = 64

// newWho returns Who as it is written. It decides nothing, so it is no reason not to send a command.
func newWho(who string) string {
	who = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, who)
	for len(who) > MaxWho {
		_, last := utf8.DecodeLastRuneInString(who)
		who = who[:len(who)-last]
	}
	return who
}

// Decode reads what Encode wrote, at its position in the log. An *UnreadableError is returned when data is anything
// else, such as a version or a command that this program does not know.
func Decode(position int64, data []byte) (Entry, error) {
	if e, ok := decodePlain(data); ok {
		e.Position = position
		return e, nil
	}
	var r entryJSON
	err := strictJSON(data, &r)
	if err == nil && r.Position != nil {
		err = errors.New(`"position" is given; only the store assigns it`)
	}
	if err == nil && r.Version == nil {
		err = errors.New(`"version" is missing`)
	}
	if err != nil {
		return Entry{}, &UnreadableError{Err: err}
	}
	if r.Command == (Skipped{}).Name() {
		return Entry{}, &UnreadableError{Err: fmt.Errorf("the command %s; no log has it", r.Command)}
	}
	r.Position = &position
	return r.entry()
}

// plain lists the commands whose only argument is a member ID, or which are mostly sent so: almost all of those in
// a log. Only the time and the ID differ in what Encode writes for one of them, so decodePlain needs no JSON parser;
// with a thousand members in one process that halves the cost of replay.
var plain = []plainForm{
	plainly("joiner", func(id string) Command { return PrepareJoin{id} }),
	plainly("joiner", func(id string) Command { return NotifyWatchers{id} }),
	plainly("joiner", func(id string) Command { return AcceptJoin{id} }),
	plainly("joiner", func(id string) Command { return AbortJoin{id} }),
	plainly("member", func(id string) Command { return Leave{Member: id} }),
	plainly("by", func(id string) Command { return PeerGC{id} }),
	plainly("by", func(id string) Command { return AskClocks{id} }),
}

type plainForm struct {
	begin string
	make  func(id string) Command
}

func plainly(field string, of func(id string) Command) plainForm {
	return plainForm{fmt.Sprintf(`"command":%q,"args":{%q:"`, of("").Name(), field), of}
}

// plainVersion is how a plain command begins.
var plainVersion = fmt.Appendf(nil, `{"version":%d,`, Version)

// decodePlain reads a plain command as Encode writes it, if the ID has only the characters a-z and 0-9.
func decodePlain(data []byte) (e Entry, ok bool) {
	data, ok = bytes.CutPrefix(data, plainVersion)
	if !ok {
		return Entry{}, false
	}
	if rest, timed := bytes.CutPrefix(data, []byte(`"at":"`)); timed {
		at, rest, ends := bytes.Cut(rest, []byte(`",`))
		var stamp stampJSON
		if !ends || stamp.UnmarshalText(at) != nil {
			return Entry{}, false
		}
		e.At, data = time.Time(stamp), rest
	}
	for _, form := range plain {
		rest, begins := bytes.CutPrefix(data, []byte(form.begin))
		if !begins {
			continue
		}
		id, end := plainID(rest)
		e.Command = form.make(id)
		leave, leaves := e.Command.(Leave)
		if leaves {
			leave.Why, leave.By, end = plainCause(end)
			e.Command = leave
		}
		return e, id != "" && string(end) == `"}}`
	}
	return Entry{}, false
}

// plainID cuts an ID of the characters a-z and 0-9 off the beginning. It returns "" when that would be too long.
func plainID(data []byte) (id string, rest []byte) {
	n := bytes.IndexFunc(data, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
	if n < 0 || n > maxName {
		return "", data
	}
	return string(data[:n]), data[n:]
}

// plainCause cuts what may follow the ID in a leave: why, and by whom. It returns all of rest when there is neither.
func plainCause(rest []byte) (Cause, string, []byte) {
	for _, why := range []Cause{CauseSessionEnded, CauseLeft, CauseFoundDead} {
		after, ok := bytes.CutPrefix(rest, []byte(`","why":"`+string(why)+`","by":"`))
		if by, end := plainID(after); ok && by != "" {
			return why, by, end
		}
	}
	return "", "", rest
}

// MarshalJSON writes an entry as ParseEntry reads it, without a version.
func (e Entry) MarshalJSON() ([]byte, error) {
	return e.write(entryJSON{Position: &e.Position})
}

// ParseEntry reads an entry from a JSON object with "position", "command", "args" and optionally "version", and
// "believed", which servers add where they doubt "at", and which says nothing here. An *UnreadableError is returned
// when data is anything else.
func ParseEntry(data []byte) (Entry, error) {
	var r struct {
		entryJSON
		Believed json.RawMessage `json:"believed"`
	}
	err := strictJSON(data, &r)
	switch {
	case err != nil:
	case r.Position == nil:
		err = errors.New(`"position" is missing`)
	case *r.Position < 0:
		err = fmt.Errorf("the position %d; want 0 or more", *r.Position)
	}
	if err != nil {
		return Entry{}, &UnreadableError{Err: err}
	}
	return r.entry()
}

// UnreadableError is returned when this program can't read an entry or a checkpoint. It must not replay further:
// it would reach another value than members that can read it.
type UnreadableError struct{ Err error }

func (e *UnreadableError) Error() string { return "unreadable: " + e.Err.Error() }

// Unwrap returns Err.
func (e *UnreadableError) Unwrap() error { return e.Err }

func (r entryJSON) entry() (Entry, error) {
	fail := func(err error) (Entry, error) { return Entry{}, &UnreadableError{Err: err} }
	if r.Version != nil && !readable(*r.Version) {
		return fail(fmt.Errorf("version %d; this program reads versions 1 to %d", *r.Version, Version))
	}
	read, ok := readers[r.Command]
	switch {
	case r.Command == "":
		return fail(errors.New(`"command" is missing`))
	case !ok:
		return fail(fmt.Errorf("the command %.60q is not known to this program", r.Command))
	case len(r.Args) == 0:
		return fail(fmt.Errorf(`%s: "args" is missing`, r.Command))
	case len(r.Who) > MaxWho: // which characters are printable is not asked: programs disagree about that
		return fail(fmt.Errorf(`%s: "who" has %d bytes; want at most %d`, r.Command, len(r.Who), MaxWho))
	}
	c, err := read(r.Args)
	if err == nil {
		err = c.validate()
	}
	if err != nil {
		return fail(fmt.Errorf("%s: %w", r.Command, err))
	}
	return Entry{Position: *r.Position, At: time.Time(r.At), Who: r.Who, Command: c}, nil
}

// readers holds, by the name of each command, the function that reads its arguments.
var readers = map[string]func(args []byte) (Command, error){
	PrepareJoin{}.Name():      read[PrepareJoin],
	NotifyWatchers{}.Name():   read[NotifyWatchers],
	AcceptJoin{}.Name():       read[AcceptJoin],
	AbortJoin{}.Name():        read[AbortJoin],
	Leave{}.Name():            read[Leave],
	PeerGC{}.Name():           read[PeerGC],
	CreateSequencer{}.Name():  read[CreateSequencer],
	DestroySequencer{}.Name(): read[DestroySequencer],
	Attach{}.Name():           read[Attach],
	Detach{}.Name():           read[Detach],
	Decline{}.Name():          read[Decline],
	Expel{}.Name():            read[Expel],
	Skipped{}.Name():          read[Skipped],
	AskClocks{}.Name():        read[AskClocks],
	Drain{}.Name():            read[Drain],
	Undrain{}.Name():          read[Undrain],
	Move{}.Name():             read[Move],
	Allocate{}.Name():         read[Allocate],
	Reserve{}.Name():          read[Reserve],
	Release{}.Name():          read[Release],
	SetPolicy{}.Name():        read[SetPolicy],
}

func read[C Command](args []byte) (Command, error) {
	var c C
	err := strictJSON(args, &c)
	return c, err
}

// strictJSON reads exactly one JSON value. An error is returned when it has an unknown field.
func strictJSON(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); errors.Is(err, io.EOF) {
		return errors.New("it is empty; want a JSON object")
	} else if err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one JSON value")
	}
	return nil
}

// Reason returns the code of the error, as docs/errors.md has it.
func (*UnreadableError) Reason() string { return "unreadable" }
