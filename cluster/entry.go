package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Version is that of the format in which commands and checkpoints are written. A program reads none
// but its own: one that guessed could come to another value than the rest.
const Version = 1

// Entry is a command at its position in the log.
type Entry struct {
	Position int64 // not negative, and ascending with gaps
	Command  Command
}

// Command is what a member writes to the log: one of the types below. Those that Parse returned are valid.
type Command interface {
	Name() string // as it is written in the log
	apply(v *Value) Outcome
	validate() error
}

// The commands of membership. IDs are those of members, 1 to 100 bytes each.
type (
	// PrepareJoin asks for a target. It is sent by the joiner. While there is no member the joiner
	// becomes one at once.
	PrepareJoin struct {
		Joiner string `json:"joiner"`
	}

	// NotifyWatchers tells that the joiner watches its target. It is sent by the joiner.
	NotifyWatchers struct {
		Joiner string `json:"joiner"`
	}

	// AcceptJoin tells that the watcher of the target watches the joiner: it is a member now. It is
	// sent by that watcher.
	AcceptJoin struct {
		Joiner string `json:"joiner"`
	}

	// AbortJoin has a pending join forgotten. It is sent by the joiner, or by whoever finds it dead.
	AbortJoin struct {
		Joiner string `json:"joiner"`
	}

	// Leave takes a member or a joiner out. It is sent by itself, its watcher, or whoever finds it dead.
	Leave struct {
		Member string `json:"member"`
	}

	// PeerGC changes nothing. A joiner that can't get in sends it, and having seen it takes out
	// everybody who is dead.
	PeerGC struct {
		By string `json:"by"`
	}
)

// The commands of sequencers. Their names are 1 to 100 of the characters a-z, 0-9, '.', '_' and '-'.
type (
	// CreateSequencer creates a sequencer, or finds that it is there already.
	CreateSequencer struct {
		Sequencer  string     `json:"sequencer"`
		Definition Definition `json:"definition"`
	}

	// DestroySequencer ends a sequencer. The name may be created anew.
	DestroySequencer struct {
		Sequencer string `json:"sequencer"`
	}

	// Attach puts a member in the line of those that want a node ID.
	Attach struct {
		Sequencer string
		Member    string
		Nodes     *Range // which it wants one of; nil: of any
	}

	// Detach takes a member out of that line, and its node ID back.
	Detach struct {
		Sequencer string `json:"sequencer"`
		Member    string `json:"member"`
	}

	// Decline exchanges the node ID that a member has for another, since it can't use this one.
	Decline struct {
		Sequencer string `json:"sequencer"`
		Member    string `json:"member"`
		Node      int64  `json:"node"`
	}
)

// Range is the node IDs from From to To, both included.
type Range struct{ From, To int64 }

// Name is prepare-join-cluster.
func (PrepareJoin) Name() string { return "prepare-join-cluster" }

// Name is notify-watchers.
func (NotifyWatchers) Name() string { return "notify-watchers" }

// Name is accept-join-cluster.
func (AcceptJoin) Name() string { return "accept-join-cluster" }

// Name is abort-join-cluster.
func (AbortJoin) Name() string { return "abort-join-cluster" }

// Name is leave-cluster.
func (Leave) Name() string { return "leave-cluster" }

// Name is peer-gc.
func (PeerGC) Name() string { return "peer-gc" }

// Name is create-sequencer.
func (CreateSequencer) Name() string { return "create-sequencer" }

// Name is destroy-sequencer.
func (DestroySequencer) Name() string { return "destroy-sequencer" }

// Name is attach.
func (Attach) Name() string { return "attach" }

// Name is detach.
func (Detach) Name() string { return "detach" }

// Name is decline.
func (Decline) Name() string { return "decline" }

func (c PrepareJoin) validate() error      { return checkID("joiner", c.Joiner) }
func (c NotifyWatchers) validate() error   { return checkID("joiner", c.Joiner) }
func (c AcceptJoin) validate() error       { return checkID("joiner", c.Joiner) }
func (c AbortJoin) validate() error        { return checkID("joiner", c.Joiner) }
func (c Leave) validate() error            { return checkID("member", c.Member) }
func (c PeerGC) validate() error           { return checkID("by", c.By) }
func (c DestroySequencer) validate() error { return CheckName(c.Sequencer) }

func (c CreateSequencer) validate() error {
	if err := CheckName(c.Sequencer); err != nil {
		return err
	}
	if c.Definition == (Definition{}) {
		return errors.New(`"definition" is missing`)
	}
	return c.Definition.Validate()
}

func (c Attach) validate() error {
	if r := c.Nodes; r != nil && (r.From < 0 || r.To < r.From) {
		return fmt.Errorf(`node IDs from %d to %d; want 0 <= "from" <= "to"`, r.From, r.To)
	}
	return errors.Join(CheckName(c.Sequencer), checkID("member", c.Member))
}

func (c Detach) validate() error {
	return errors.Join(CheckName(c.Sequencer), checkID("member", c.Member))
}

func (c Decline) validate() error {
	if c.Node < 0 {
		return fmt.Errorf("node ID %d; want 0 or more", c.Node)
	}
	return errors.Join(CheckName(c.Sequencer), checkID("member", c.Member))
}

const maxName = 100

func checkID(field, id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%q is missing", field)
	case len(id) > maxName || !utf8.ValidString(id):
		return fmt.Errorf("%q is %.120q; want 1 to %d bytes of text", field, id, maxName)
	}
	return nil
}

// CheckName returns an error when a sequencer can't have this name: it takes 1 to 100 of the
// characters a-z, 0-9, '.', '_' and '-'.
func CheckName(name string) error {
	ok := name != "" && len(name) <= maxName
	for _, c := range []byte(name) {
		ok = ok && ('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-')
	}
	if !ok {
		return fmt.Errorf("the sequencer's name %.120q; want 1 to %d of a-z, 0-9, '.', '_' and '-'", name, maxName)
	}
	return nil
}

// attachJSON is how an Attach is written.
type attachJSON struct {
	Sequencer string `json:"sequencer"`
	Member    string `json:"member"`
	From      *int64 `json:"from,omitempty"`
	To        *int64 `json:"to,omitempty"`
}

// MarshalJSON writes the range as "from" and "to".
func (c Attach) MarshalJSON() ([]byte, error) {
	w := attachJSON{Sequencer: c.Sequencer, Member: c.Member}
	if c.Nodes != nil {
		w.From, w.To = &c.Nodes.From, &c.Nodes.To
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote. An error is returned when only one of "from" and "to" is there.
func (c *Attach) UnmarshalJSON(data []byte) error {
	var r attachJSON
	if err := strictJSON(data, &r); err != nil {
		return err
	}
	*c = Attach{Sequencer: r.Sequencer, Member: r.Member}
	if (r.From == nil) != (r.To == nil) {
		return errors.New(`"from" without "to", or the other way round; give both or neither`)
	}
	if r.From != nil {
		c.Nodes = &Range{*r.From, *r.To}
	}
	return nil
}

// UnmarshalJSON reads a decline. An error is returned when "node" is missing: it would be taken for 0.
func (c *Decline) UnmarshalJSON(data []byte) error {
	var r struct {
		Sequencer string `json:"sequencer"`
		Member    string `json:"member"`
		Node      *int64 `json:"node"`
	}
	if err := strictJSON(data, &r); err != nil {
		return err
	}
	if r.Node == nil {
		return errors.New(`"node" is missing`)
	}
	*c = Decline{r.Sequencer, r.Member, *r.Node}
	return nil
}

// entryJSON is an entry as it is written; in the store, where the position is the store's, without it.
type entryJSON struct {
	Version  *int            `json:"version,omitempty"`
	Position *int64          `json:"position,omitempty"`
	Command  string          `json:"command"`
	Args     json.RawMessage `json:"args"`
}

// Encode writes a command as it is appended to the log. An error is returned when it is not valid.
func Encode(c Command) ([]byte, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("cluster: %s: %w", c.Name(), err)
	}
	args, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	version := Version
	return json.Marshal(entryJSON{Version: &version, Command: c.Name(), Args: args})
}

// Decode reads what Encode wrote. An *UnreadableError is returned for everything else: for a version or a
// command that this program does not know, for one.
func Decode(data []byte) (Command, error) {
	if c, ok := decodePlain(data); ok {
		return c, nil
	}
	var e entryJSON
	err := strictJSON(data, &e)
	if err == nil && e.Position != nil {
		err = errors.New(`"position" is the store's to give`)
	}
	if err == nil && e.Version == nil {
		err = errors.New(`"version" is missing`)
	}
	if err != nil {
		return nil, &UnreadableError{Err: err}
	}
	return e.command()
}

// plain are the commands that are about one member and nothing else: almost all of those in a log. What
// Encode makes of them begins and ends alike but for the ID, so that they are read without a JSON
// parser; with a thousand members in one process that halves the cost of replaying.
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

// decodePlain reads a plain command as Encode writes it, if the ID is of small letters and digits.
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

// MarshalJSON writes an entry on its own, as ParseEntry reads it.
func (e Entry) MarshalJSON() ([]byte, error) {
	args, err := json.Marshal(e.Command)
	if err != nil {
		return nil, err
	}
	return json.Marshal(entryJSON{Position: &e.Position, Command: e.Command.Name(), Args: args})
}

// ParseEntry reads an entry as a JSON object: "position", "command", "args", and if it likes "version". An
// *UnreadableError is returned when it is none.
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

// UnreadableError is returned for an entry, or a checkpoint, that this program can't read. It must not
// go on from there: it would come to another value than those that can.
type UnreadableError struct{ Err error }

func (e *UnreadableError) Error() string { return "cluster: unreadable: " + e.Err.Error() }

// Unwrap returns what is wrong.
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

// readers read the arguments of each command.
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

// strictJSON reads exactly one JSON value, and no field that is not known.
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
