package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Version is the version of the format of commands and checkpoints. A program reads only its own version: a guess
// could lead it to another value than the other members.
const Version = 1

// Entry is a command at its position in the log.
type Entry struct {
	Position int64 // 0 or more; positions ascend, with gaps
	Command  Command
}

// entryJSON is an entry as JSON. In the store, which gives it its position, that field is absent.
type entryJSON struct {
	Version  *int            `json:"version,omitempty"`
	Position *int64          `json:"position,omitempty"`
	Command  string          `json:"command"`
	Args     json.RawMessage `json:"args"`
}

// Encode returns a command as members append it to the log. An error is returned when it is invalid.
func Encode(c Command) ([]byte, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name(), err)
	}
	args, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	version := Version
	return json.Marshal(entryJSON{Version: &version, Command: c.Name(), Args: args})
}

// Decode reads what Encode wrote. An *UnreadableError is returned when data is anything else, such as a version
// or a command that this program does not know.
func Decode(data []byte) (Command, error) {
	if c, ok := decodePlain(data); ok {
		return c, nil
	}
	var e entryJSON
	err := strictJSON(data, &e)
	if err == nil && e.Position != nil {
		err = errors.New(`"position" is given; only the store assigns it`)
	}
	if err == nil && e.Version == nil {
		err = errors.New(`"version" is missing`)
	}
	if err != nil {
		return nil, &UnreadableError{Err: err}
	}
	return e.command()
}

// plain lists the commands whose only argument is a member ID: almost all of those in a log. Only the ID differs
// in what Encode writes for one of them, so decodePlain needs no JSON parser; with a thousand members in one
// process that halves the cost of replay.
var plain = []plainForm{
	plainly("joiner", func(id string) Command { return PrepareJoin{id} }),
	plainly("joiner", func(id string) Command { return NotifyWatchers{id} }),
	plainly("joiner", func(id string) Command { return AcceptJoin{id} }),
	plainly("joiner", func(id string) Command { return AbortJoin{id} }),
	plainly("member", func(id string) Command { return Leave{id} }),
	plainly("by", func(id string) Command { return PeerGC{id} }),
}

type plainForm struct {
	begin string
	make  func(id string) Command
}

func plainly(field string, of func(id string) Command) plainForm {
	return plainForm{fmt.Sprintf(`{"version":%d,"command":%q,"args":{%q:"`, Version, of("").Name(), field), of}
}

// decodePlain reads a plain command as Encode writes it, if the ID has only the characters a-z and 0-9.
func decodePlain(data []byte) (Command, bool) {
	const end = `"}}`
	for _, form := range plain {
		rest, begins := bytes.CutPrefix(data, []byte(form.begin))
		if !begins {
			continue
		}
		id, ends := bytes.CutSuffix(rest, []byte(end))
		ok := ends && len(id) > 0 && len(id) <= maxName
		for _, c := range id {
			ok = ok && ('a' <= c && c <= 'z' || '0' <= c && c <= '9')
		}
		return form.make(string(id)), ok
	}
	return nil, false
}

// MarshalJSON writes an entry as ParseEntry reads it, without a version.
func (e Entry) MarshalJSON() ([]byte, error) {
	args, err := json.Marshal(e.Command)
	if err != nil {
		return nil, err
	}
	return json.Marshal(entryJSON{Position: &e.Position, Command: e.Command.Name(), Args: args})
}

// ParseEntry reads an entry from a JSON object with "position", "command", "args" and optionally "version". An
// *UnreadableError is returned when data is anything else.
func ParseEntry(data []byte) (Entry, error) {
	var r entryJSON
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
	command, err := r.command()
	return Entry{Position: *r.Position, Command: command}, err
}

// UnreadableError is returned when this program can't read an entry or a checkpoint. It must not replay further:
// it would reach another value than members that can read it.
type UnreadableError struct{ Err error }

func (e *UnreadableError) Error() string { return "unreadable: " + e.Err.Error() }

// Unwrap returns Err.
func (e *UnreadableError) Unwrap() error { return e.Err }

func (r entryJSON) command() (Command, error) {
	fail := func(err error) (Command, error) { return nil, &UnreadableError{Err: err} }
	if r.Version != nil && *r.Version != Version {
		return fail(fmt.Errorf("version %d; this program reads version %d", *r.Version, Version))
	}
	read, ok := readers[r.Command]
	switch {
	case r.Command == "":
		return fail(errors.New(`"command" is missing`))
	case !ok:
		return fail(fmt.Errorf("the command %.60q is not known to this program", r.Command))
	case len(r.Args) == 0:
		return fail(fmt.Errorf(`%s: "args" is missing`, r.Command))
	}
	c, err := read(r.Args)
	if err == nil {
		err = c.validate()
	}
	if err != nil {
		return fail(fmt.Errorf("%s: %w", r.Command, err))
	}
	return c, nil
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
