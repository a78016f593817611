package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

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

	// AbortJoin has a pending join forgotten. It is sent by the joiner, or by a member that finds it dead.
	AbortJoin struct {
		Joiner string `json:"joiner"`
	}

	// Leave takes a member or a joiner out. It is sent by itself, its watcher, or a member that finds it dead.
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

	// DestroySequencer ends a sequencer. The name may be created again: Created, if it is not zero, says which of
	// its generations is meant, so that a command that comes late does not end the next.
	DestroySequencer struct {
		Sequencer string `json:"sequencer"`
		Created   int64  `json:"created,omitempty"`
	}

	// Attach puts a member in the line of those that want a node ID.
	Attach struct {
		Sequencer string
		Member    string
		Nodes     *Range // which it wants one of; nil: of any
	}

	// Detach removes a member from that line, and frees its node ID.
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

func (c PrepareJoin) validate() error    { return checkID("joiner", c.Joiner) }
func (c NotifyWatchers) validate() error { return checkID("joiner", c.Joiner) }
func (c AcceptJoin) validate() error     { return checkID("joiner", c.Joiner) }
func (c AbortJoin) validate() error      { return checkID("joiner", c.Joiner) }
func (c Leave) validate() error          { return checkID("member", c.Member) }
func (c PeerGC) validate() error         { return checkID("by", c.By) }

func (c CreateSequencer) validate() error {
	if err := CheckName(c.Sequencer); err != nil {
		return err
	}
	if c.Definition == (Definition{}) {
		return errors.New(`"definition" is missing`)
	}
	return c.Definition.Validate()
}

func (c DestroySequencer) validate() error {
	if c.Created < 0 {
		return fmt.Errorf("created at the position %d; want 1 or more, or 0 for any", c.Created)
	}
	return CheckName(c.Sequencer)
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

// NameError is returned when a sequencer can't have a name.
type NameError struct{ Name string }

func (e *NameError) Error() string {
	return fmt.Sprintf("the sequencer's name %.120q; want 1 to %d of a-z, 0-9, '.', '_' and '-'", e.Name, maxName)
}

// CheckName returns a *NameError when a sequencer can't have this name: it takes 1 to 100 of the
// characters a-z, 0-9, '.', '_' and '-'.
func CheckName(name string) error {
	ok := name != "" && len(name) <= maxName
	for _, c := range []byte(name) {
		ok = ok && ('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-')
	}
	if !ok {
		return &NameError{name}
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
