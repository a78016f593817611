package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/store/quorum"
)

const quorumReplaceHelp = `Replace gives the place of a machine that is lost for good to another. Ask any
node; a majority of the machines must be reachable. LOST is the lost machine's
address, or the name of its node.

The new machine joins when you start firn serve there, catches up, and becomes a
voter; firn quorum status shows its progress. The quorum does not admit the lost
machine again, unless it replaces another. Do not replace a machine that only
lost its data: start it again, and it gets the data from the others.

On a terminal replace shows the machines, and asks for the lost one's address.
If standard input is not a terminal, --yes is required.`

const quorumRemoveHelp = `Remove takes machines out of the quorum for good, so that 1 or 3 are left. Ask
any node; a majority of the machines must be reachable. MACHINE is an address,
or the name of a node.

A smaller quorum survives fewer losses: three machines survive the loss of one,
one machine none. Processes on removed machines continue as clients of the
others.

On a terminal remove shows the machines, and asks for the addresses. If standard
input is not a terminal, --yes is required.`

func (p *program) quorumReplaceCommand() *cobra.Command {
	return p.quorumChange(quorumChange{
		name: "replace", args: "LOST INSTEAD", short: "Replace a machine that is lost for good",
		long:     quorumReplaceHelp,
		examples: "  firn quorum replace ids-2:7420 ids-4:7420",
		check: func(args []string) error {
			if len(args) != 2 {
				return usagef("firn quorum replace takes two addresses, not %d: that of the lost machine and that of "+
					"the new one", len(args))
			}
			return nil
		},
		body:    func(args []string) any { return httpapi.Replacement{Lost: args[0], Instead: args[1]} },
		typed:   func(args []string) []string { return args[:1] },
		ask:     func(args []string) string { return fmt.Sprintf("replace %s by %s", args[0], args[1]) },
		warning: "The quorum does not admit the lost machine again.",
		text: func(args []string, s quorum.Status) string {
			return fmt.Sprintf("%s takes the place of %s once it is started:\n\n  firn serve --quorum %s ...\n\n"+
				"Give the other nodes this list, too, before their next start.\n",
				args[1], args[0], strings.Join(machinesLeft(s, args[:1], args[1:]), ","))
		},
	})
}

func (p *program) quorumRemoveCommand() *cobra.Command {
	return p.quorumChange(quorumChange{
		name: "remove", args: "MACHINE...", short: "Remove machines, so that fewer keep the data",
		long:     quorumRemoveHelp,
		examples: "  firn quorum remove ids-2:7420 ids-3:7420",
		check: func(args []string) error {
			if len(args) == 0 {
				return usagef("firn quorum remove needs the addresses of the machines to remove")
			}
			return nil
		},
		body:    func(args []string) any { return httpapi.Removal{Machines: args} },
		typed:   func(args []string) []string { return args },
		ask:     func(args []string) string { return "remove " + strings.Join(args, " and ") },
		warning: "Fewer machines survive fewer losses.",
		text: func(args []string, s quorum.Status) string {
			return fmt.Sprintf("%s no longer keep data; the machines that do are now\n\n  --quorum %s\n\n"+
				"Give all nodes this list before their next start.\n",
				strings.Join(args, " and "), strings.Join(machinesLeft(s, args, nil), ","))
		},
	})
}

// quorumChange is a command that changes which machines keep the data.
type quorumChange struct {
	name, args, short, long, examples string

	check   func(args []string) error
	body    func(args []string) any      // of the call
	typed   func(args []string) []string // what a person must type
	ask     func(args []string) string   // what the command asks whether to do
	warning string
	text    func(args []string, after quorum.Status) string
}

func (p *program) quorumChange(d quorumChange) *cobra.Command {
	var o lookOptions
	var yes bool
	c := &cobra.Command{
		Use:     d.name + " " + d.args,
		Short:   d.short,
		Long:    d.long,
		Example: d.examples,
		Args:    func(_ *cobra.Command, args []string) error { return d.check(args) },
	}
	setting.Bool(c.Flags(), &yes, "yes", "do not ask whether to "+d.name+" it")
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			if !yes && !console.IsTerminal(p.stdin) {
				return d.unasked(args)
			}
			var s quorum.Status
			if _, err := ask.Call(ctx, http.MethodGet, quorumPath, nil, &s); err != nil {
				return err
			}
			args := slices.Clone(args) // by addresses
			for i, text := range args {
				var err error
				if args[i], err = calls.MeantMachine(text, s); err != nil {
					return err
				}
			}
			if !yes {
				if err := p.confirmChange(ctx, d, args, s); err != nil {
					return err
				}
			}
			body, err := ask.Call(ctx, http.MethodPost, quorumPath+"/"+d.name, marshal(d.body(args)), &s)
			return p.answer(body, err, o.json, func() string { return d.text(args, s) })
		})
	}
	return c
}

// unasked is the error where nobody can be asked.
func (d quorumChange) unasked(args []string) error {
	return usagef("firn quorum %s asks whether to %s, and standard input is not a terminal; add --yes to do it "+
		"without asking", d.name, d.ask(args))
}

// confirmChange shows the machines, and returns an error unless the right addresses are typed.
func (p *program) confirmChange(ctx context.Context, d quorumChange, args []string, s quorum.Status) error {
	want := d.typed(args)
	fmt.Fprintf(p.stderr, "%s\n%s\nType %s to %s: ", p.quorumText(s), d.warning, strings.Join(want, " "), d.ask(args))
	typed, err := p.typed(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		fmt.Fprintln(p.stderr)
		return d.unasked(args)
	case !slices.Equal(strings.Fields(typed), want):
		return fmt.Errorf("nothing changed: %.80q is not %q", typed, strings.Join(want, " "))
	}
	return nil
}

// machinesLeft are the machines that keep the data when some have left and others have come. The node that was asked
// may not know yet that they have.
func machinesLeft(s quorum.Status, left, come []string) []string {
	all := slices.Clone(come)
	for _, address := range s.Record {
		if !slices.Contains(left, address) {
			all = append(all, address)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
