package replay

import (
	"fmt"
	"strings"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/ops/console"
)

// Words returns a command in plain words.
func Words(c cluster.Command) string {
	switch c := c.(type) {
	case cluster.PrepareJoin:
		return console.Shown(c.Joiner) + " asks to join"
	case cluster.NotifyWatchers:
		return console.Shown(c.Joiner) + " watches its target, and waits to be watched"
	case cluster.AcceptJoin:
		return console.Shown(c.Joiner) + " is watched, and is a member now"
	case cluster.AbortJoin:
		return "the join of " + console.Shown(c.Joiner) + " is aborted"
	case cluster.Leave:
		return leaveWords(c)
	case cluster.Skipped:
		return "an entry that no member could read is passed over"
	case cluster.Expel:
		return fmt.Sprintf("%s is expelled; %s was asked to do it", console.Shown(c.Member), console.Shown(c.By))
	case cluster.PeerGC:
		return console.Shown(c.By) + " looks for dead members"
	case cluster.AskClocks:
		return console.Shown(c.By) + " asks others what their clocks say"
	default:
		return sequencerWords(c)
	}
}

// sequencerWords is Words of what is about sequencers.
func sequencerWords(c cluster.Command) string {
	switch c := c.(type) {
	case cluster.CreateSequencer:
		words := []string{fmt.Sprintf("%s is created: %v", c.Sequencer, c.Definition)}
		for _, r := range c.Reserve {
			words = append(words, fmt.Sprintf("%s for %s", reservingWords(r), console.Shown(r.For)))
		}
		return strings.Join(words, "; ")
	case cluster.DestroySequencer:
		return c.Sequencer + " is destroyed"
	case cluster.Attach:
		return attachWords(c)
	case cluster.Detach:
		return fmt.Sprintf("%s detaches from %s", console.Shown(c.Member), c.Sequencer)
	case cluster.Decline:
		return fmt.Sprintf("%s can't use node ID %d of %s, and wants another", console.Shown(c.Member),
			c.Node, c.Sequencer)
	case cluster.Drain:
		return fmt.Sprintf("%s is drained from %s", console.Shown(c.Member), c.Sequencer)
	case cluster.Undrain:
		return fmt.Sprintf("%s is no longer drained from %s", console.Shown(c.Member), c.Sequencer)
	case cluster.Move:
		return fmt.Sprintf("node ID %d of %s moves to %s", c.Node, c.Sequencer, console.Shown(c.To))
	case cluster.Reserve:
		return fmt.Sprintf("%s reserves %s for %s", c.Sequencer, reservingWords(c.Reserving), console.Shown(c.For))
	case cluster.Release:
		return fmt.Sprintf("%s gets back what was reserved for %s", c.Sequencer, console.Shown(c.For))
	case cluster.Allocate:
		return fmt.Sprintf("node IDs of %s are for %v now", c.Sequencer, c.Allocation)
	case cluster.SetPolicy:
		return policyWords(c.Shares)
	default:
		return c.Name()
	}
}

func reservingWords(r cluster.Reserving) string {
	if r.Nodes != nil {
		return "node IDs " + console.Stretches(r.Nodes)
	}
	return console.Plural(r.Count, "node ID")
}

func leaveWords(c cluster.Leave) string {
	who, by := console.Shown(c.Member), "another member"
	if c.By != "" {
		by = console.Shown(c.By)
	}
	switch c.Why {
	case cluster.CauseLeft:
		return who + " left"
	case cluster.CauseSessionEnded:
		return fmt.Sprintf("%s is removed: its session ended, as %s saw", who, by)
	case cluster.CauseFoundDead:
		return fmt.Sprintf("%s is removed: %s found it dead", who, by)
	default:
		return who + " left, or is removed"
	}
}

func attachWords(c cluster.Attach) string {
	text := fmt.Sprintf("%s wants a node ID of %s", console.Shown(c.Member), c.Sequencer)
	if c.Nodes != nil {
		text += fmt.Sprintf(", from %d to %d", c.Nodes.From, c.Nodes.To)
	}
	return text
}

func policyWords(shares []cluster.Share) string {
	if len(shares) == 0 {
		return "the policy ends: members serve the sequencers that they attach to"
	}
	var parts []string
	for _, s := range shares {
		if s.Percent == 0 {
			parts = append(parts, "the rest for "+s.Sequencer)
		} else {
			parts = append(parts, fmt.Sprintf("%d%% of the members for %s", s.Percent, s.Sequencer))
		}
	}
	return "the policy is now " + strings.Join(parts, ", ")
}
