package cluster

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Command is what a member appends to the log: one of the types below. Decode and ParseEntry return valid ones
// only.
type Command interface {
	Name() string // in the log
	apply(v *Value) Outcome
	validate() error
}

// The commands of membership. Each ID is that of a member, in 1 to 100 bytes of UTF-8.
type (
	// PrepareJoin asks for a target. The joiner sends it. When the cluster has no member, the joiner becomes one
	// at once.
	PrepareJoin struct {
		Joiner string `json:"joiner"`
	}

	// NotifyWatchers says that the joiner watches its target. The joiner sends it.
	NotifyWatchers struct {
		Joiner string `json:"joiner"`
	}

	// AcceptJoin makes the joiner a member. The watcher of the target sends it, once it watches the joiner.
	AcceptJoin struct {
		Joiner string `json:"joiner"`
	}

	// AbortJoin cancels a pending join. The joiner sends it, or a member that finds the joiner dead.
	AbortJoin struct {
		Joiner string `json:"joiner"`
	}

	// Leave removes a member or a joiner. That one sends it, or its watcher, or a member that finds it dead. Why
	// and By are for people, and may be absent.
	Leave struct {
		Member string `json:"member"`
		Why    Cause  `json:"why,omitempty"`
		By     string `json:"by,omitempty"` // the member that sends it
	}

	// Expel removes a member or a joiner for good: the cluster does not take in its ID again. The value remembers
	// the last 256 such IDs, so that a process that reads of it late does not join again under another one.
	Expel struct {
		Member string `json:"member"`
		By     string `json:"by"` // the member that was asked to do it
	}

	// PeerGC changes nothing. A joiner that can't join sends it, and those that Called returns write their pulses at
	// once. The joiner removes all that have no pulse, and those that were called and are silent.
	PeerGC struct {
		By string `json:"by"`
	}

	// AskClocks changes nothing. A member or joiner that must compare its clock sends it, and those that Asked
	// returns write at once what their clocks say.
	AskClocks struct {
		By string `json:"by"`
	}

	// Skipped stands for an entry that no member of the cluster could read, and that an operator had all pass over. It
	// changes nothing but what Value.Skipped returns. No log has it: Decode refuses it.
	Skipped struct {
		Entry string `json:"entry"` // the ID of the entry in the log
	}
)

// Cause is why a member left. It is empty where the log does not tell.
type Cause string

// The causes.
const (
	CauseLeft         Cause = "left"          // it said so itself
	CauseSessionEnded Cause = "session-ended" // its watcher saw its pulse go
	CauseFoundDead    Cause = "found-dead"    // a joiner looked, and found no pulse
)

// The commands of sequencers. The name of a sequencer is 1 to 100 of the characters a-z, 0-9, '.', '_' and '-'.
type (
	// CreateSequencer creates a sequencer. It is refused when the name has another definition already, there are
	// sequencers of another region, another sequencer has the prefix and SolePrefix is set, or one of the Quotas is
	// reached. Start is the first of the region's node IDs that a member gets; 0 for the lowest.
	CreateSequencer struct {
		Sequencer  string     `json:"sequencer"`
		Definition Definition `json:"definition"`
		Region     Region     `json:"region,omitzero"`
		Start      int64      `json:"start,omitempty"`
		SolePrefix bool       `json:"sole_prefix,omitempty"` // entries of before did not ask whether it is taken
		Quotas     []Quota    `json:"quotas,omitempty"`

		Reserve []Reserving `json:"reserve,omitempty"` // from the beginning
	}

	// DestroySequencer permanently destroys a sequencer. It is refused while node IDs of it are reserved. Its name may
	// be used again: Created, if not zero, is the position at which the generation was created, so that a late command
	// does not destroy the next one.
	DestroySequencer struct {
		Sequencer string `json:"sequencer"`
		Created   int64  `json:"created,omitempty"`
	}

	// Attach puts a member at the end of the line for a node ID.
	Attach struct {
		Sequencer string
		Member    string
		Nodes     *Range // the node IDs that the member accepts; nil means all
	}

	// Detach removes a member from that line, and frees its node ID.
	Detach struct {
		Sequencer string `json:"sequencer"`
		Member    string `json:"member"`
	}

	// Decline exchanges a node ID that its member can't use for another.
	Decline struct {
		Sequencer string `json:"sequencer"`
		Member    string `json:"member"`
		Node      int64  `json:"node"`
	}

	// Drain detaches a member, and refuses to attach it again until Undrain, or until it leaves.
	Drain struct {
		Sequencer string `json:"sequencer"`
		Member    string `json:"member"`
	}

	// Undrain ends a Drain. It does not attach the member.
	Undrain struct {
		Sequencer string `json:"sequencer"`
		Member    string `json:"member"`
	}

	// Move gives a node ID to an attached member, which returns the one that it has. The former holder gets another
	// one, or waits in its old place in the line. It is refused when that member can't have the node ID.
	Move struct {
		Sequencer string `json:"sequencer"`
		Node      int64  `json:"node"`
		To        string `json:"to"`
	}

	// Allocate changes how many of the attached members get a node ID; the definition stays as it was created.
	// Created is as in DestroySequencer.
	Allocate struct {
		Sequencer  string     `json:"sequencer"`
		Created    int64      `json:"created,omitempty"`
		Allocation Allocation `json:"allocation"`
	}

	// SetPolicy shares the members out among sequencers: each serves one of them. It replaces the policy before;
	// without shares there is none.
	SetPolicy struct {
		Shares []Share `json:"shares"`
	}
)

// Share is a sequencer's share of the members.
type Share struct {
	Sequencer string `json:"sequencer"`
	Percent   int64  `json:"percent,omitempty"` // 1 to 100; 0 is what the others leave
}

// Name returns prepare-join-cluster.
func (PrepareJoin) Name() string { return "prepare-join-cluster" }

// Name returns notify-watchers.
func (NotifyWatchers) Name() string { return "notify-watchers" }

// Name returns accept-join-cluster.
func (AcceptJoin) Name() string { return "accept-join-cluster" }

// Name returns abort-join-cluster.
func (AbortJoin) Name() string { return "abort-join-cluster" }

// Name returns leave-cluster.
func (Leave) Name() string { return "leave-cluster" }

// Name returns peer-gc.
func (PeerGC) Name() string { return "peer-gc" }

// Name returns expel.
func (Expel) Name() string { return "expel" }

// Name returns the name of the command.
func (Skipped) Name() string { return "skipped" }

// Name returns ask-clocks.
func (AskClocks) Name() string { return "ask-clocks" }

// Name returns create-sequencer.
func (CreateSequencer) Name() string { return "create-sequencer" }

// Name returns destroy-sequencer.
func (DestroySequencer) Name() string { return "destroy-sequencer" }

// Name returns attach.
func (Attach) Name() string { return "attach" }

// Name returns detach.
func (Detach) Name() string { return "detach" }

// Name returns decline.
func (Decline) Name() string { return "decline" }

// Name returns drain.
func (Drain) Name() string { return "drain" }

// Name returns undrain.
func (Undrain) Name() string { return "undrain" }

// Name returns move.
func (Move) Name() string { return "move" }

// Name returns allocate.
func (Allocate) Name() string { return "allocate" }

// Name returns set-policy.
func (SetPolicy) Name() string { return "set-policy" }

func (c PrepareJoin) validate() error    { return checkID("joiner", c.Joiner) }
func (c NotifyWatchers) validate() error { return checkID("joiner", c.Joiner) }
func (c AcceptJoin) validate() error     { return checkID("joiner", c.Joiner) }
func (c AbortJoin) validate() error      { return checkID("joiner", c.Joiner) }
func (c PeerGC) validate() error         { return checkID("by", c.By) }
func (c AskClocks) validate() error      { return checkID("by", c.By) }

func (c Leave) validate() error {
	switch c.Why {
	case "", CauseLeft, CauseSessionEnded, CauseFoundDead:
	default:
		return fmt.Errorf("the cause %.40q; want left, session-ended or found-dead", c.Why)
	}
	if c.By != "" {
		if err := checkID("by", c.By); err != nil {
			return err
		}
	}
	return checkID("member", c.Member)
}

func (c Skipped) validate() error { return checkID("entry", c.Entry) }

func (c Expel) validate() error { return errors.Join(checkID("member", c.Member), checkID("by", c.By)) }

func (c CreateSequencer) validate() error {
	if err := CheckName(c.Sequencer); err != nil {
		return err
	}
	if c.Definition == (Definition{}) {
		return errors.New(`"definition" is missing`)
	}
	if err := c.Definition.Validate(); err != nil {
		return err
	}
	if c.SolePrefix && c.Definition.Prefix == "" {
		return errors.New(`"sole_prefix" without a prefix in the definition`)
	}
	if err := checkQuotas(c.Quotas); err != nil {
		return err
	}
	if len(c.Reserve) > 0 && c.Definition.Claimed() {
		return errors.New(noNodeIDs)
	}
	for _, r := range c.Reserve {
		if err := r.Validate(); err != nil {
			return err
		}
	}
	nodes, err := c.Region.Nodes(c.Definition)
	if err == nil && c.Definition.Claimed() && c.Start != 0 {
		return fmt.Errorf("IDs are claimed, and it starts at the node ID %d; want 0, as it has none", c.Start)
	}
	if err == nil && c.Start != 0 && !nodes.Holds(c.Start) {
		err = fmt.Errorf("it starts at the node ID %d; want %d to %d, or 0 for the lowest", c.Start,
			nodes.From, nodes.To)
	}
	return err
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
	return checkPlace(c.Sequencer, "member", c.Member)
}

func (c Detach) validate() error  { return checkPlace(c.Sequencer, "member", c.Member) }
func (c Drain) validate() error   { return checkPlace(c.Sequencer, "member", c.Member) }
func (c Undrain) validate() error { return checkPlace(c.Sequencer, "member", c.Member) }
func (c Decline) validate() error {
	return errors.Join(checkNode(c.Node), checkPlace(c.Sequencer, "member", c.Member))
}

func (c Move) validate() error {
	return errors.Join(checkNode(c.Node), checkPlace(c.Sequencer, "to", c.To))
}

func (c Allocate) validate() error {
	return errors.Join(DestroySequencer{c.Sequencer, c.Created}.validate(), c.Allocation.Validate())
}

func (c SetPolicy) validate() error {
	if err := checkShares(c.Shares); err != nil || len(c.Shares) == 0 {
		return err
	}
	total := int64(0)
	for _, s := range c.Shares {
		if total += s.Percent; s.Percent == 0 {
			return nil
		}
	}
	if total < 100 {
		return fmt.Errorf("shares of %d percent together; want 100, or a share of 0 percent for the rest", total)
	}
	return nil
}

// checkShares checks all that must be true of shares, also after one of them is gone.
func checkShares(shares []Share) error {
	names, total, rest := map[string]bool{}, int64(0), false
	for _, s := range shares {
		switch err := CheckName(s.Sequencer); {
		case err != nil:
			return err
		case names[s.Sequencer]:
			return fmt.Errorf("two shares for the sequencer %q; want one", s.Sequencer)
		case s.Percent < 0 || s.Percent > 100:
			return fmt.Errorf("a share of %d percent for the sequencer %q; want 1 to 100, or 0 for the rest",
				s.Percent, s.Sequencer)
		case s.Percent == 0 && rest:
			return errors.New("two shares of 0 percent, the rest; want at most one")
		}
		names[s.Sequencer] = true
		total += s.Percent
		rest = rest || s.Percent == 0
	}
	if total > 100 {
		return fmt.Errorf("shares of %d percent together; want at most 100", total)
	}
	return nil
}

// checkPlace checks the names of a sequencer and of a member, which is the value of a field.
func checkPlace(sequencer, field, id string) error {
	return errors.Join(CheckName(sequencer), checkID(field, id))
}

func checkNode(node int64) error {
	if node < 0 {
		return fmt.Errorf("node ID %d; want 0 or more", node)
	}
	return nil
}

func checkID(field, id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%q is missing", field)
	case len(id) > maxName || !utf8.ValidString(id):
		return fmt.Errorf("%q is %.120q; want 1 to %d bytes of text", field, id, maxName)
	}
	return nil
}
