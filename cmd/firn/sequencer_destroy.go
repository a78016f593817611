package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/calls"
)

const destroyHelp = `Destroy permanently destroys a sequencer on every node, and returns once no node
can make more of its IDs. A new sequencer can take its name; its IDs then exceed
all earlier ones.

On a terminal destroy shows the sequencer's nodes, the rate at which the asked
server and all nodes give its IDs, and its share by the policy, and asks for its
name. If standard input is not a terminal, --yes is required.

A node that has crashed, or can't reach the store, may use up the time that it
has reserved. Destroy then says until when; the exit status is still 0.`

func (p *program) destroyCommand() *cobra.Command {
	var o lookOptions
	var yes bool
	c := &cobra.Command{
		Use:        "destroy NAME",
		SuggestFor: []string{"delete", "remove", "rm"},
		Short:      "Permanently destroy a sequencer on every node",
		Long:       destroyHelp,
		Example:    "  firn sequencer destroy orders\n  firn sequencer destroy orders --yes",
		Args:       oneName,
	}
	setting.Bool(c.Flags(), &yes, "yes", "do not ask whether to destroy it")
	o.add(c.Flags(), "print a JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		name := args[0]
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			if !yes && name != peer.DefaultSequencer { // which no server destroys
				if err := p.confirmDestroy(ctx, ask, name); err != nil {
					return err
				}
			}
			var d calls.Destroyed
			body, err := ask.Call(ctx, http.MethodDelete, remote.SequencerPath(name, ""), nil, &d)
			return p.answer(body, err, o.json, func() string { return destroyedText(name, d) })
		})
	}
	return c
}

// mostHolders is how many holders of node IDs are listed before a sequencer is destroyed.
const mostHolders = 20

// confirmDestroy shows who uses a sequencer, and returns an error unless its name is typed.
func (p *program) confirmDestroy(ctx context.Context, ask remote.Client, name string) error {
	unasked := usagef("firn sequencer destroy asks whether to destroy %s, and standard input is not a terminal; add "+
		"--yes to destroy it without asking", name)
	if !console.IsTerminal(p.stdin) {
		return unasked
	}
	var s calls.StatusSequencer
	if _, err := ask.Call(ctx, http.MethodGet, remote.SequencerPath(name, ""), nil, &s); err != nil {
		return err
	}
	text, err := holdersText(ctx, ask, name, s)
	if err != nil {
		return err
	}
	if rate, ok := givenPerSecond(ctx, ask, name); ok {
		text += fmt.Sprintf("\nThe server %s gives %s of it a second; other nodes may give more.\n", ask.Base,
			console.Plural(rate, "ID"))
	}
	if rate, ok := together(ctx, ask, name); ok {
		text += fmt.Sprintf("By their latest pulses all nodes together give %s of it a second.\n",
			console.Plural(rate, "ID"))
	} else {
		text += "How many IDs of it all nodes give is not known.\n"
	}
	if s.Share != nil {
		text += "The policy has members serve it; without it they serve the others.\n"
	}
	fmt.Fprintf(p.stderr,
		"%s\nDestroying it is permanent, on every node: calls for its IDs then fail.\nType its name to destroy it: ",
		text)
	typed, err := p.typed(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		fmt.Fprintln(p.stderr)
		return unasked
	case typed != name:
		return fmt.Errorf("%s is not destroyed: %.80q is not its name", name, typed)
	}
	return nil
}

// holdersText shows which nodes hold the node IDs of a sequencer.
func holdersText(ctx context.Context, ask remote.Client, name string, s calls.StatusSequencer) (string, error) {
	if s.Definition.Claimed() {
		return fmt.Sprintf("%s has no node IDs: %s\n", name, s.Definition.Shape()), nil
	}
	var nodes calls.Owners
	if _, err := ask.Call(ctx, http.MethodGet, remote.SequencerPath(name, "/nodes"), nil, &nodes); err != nil {
		return "", err
	}
	columns := []console.Column{{Head: "NODE ID", Right: true}, {Head: "OWNER"}, {Head: "SINCE"}}
	var rows [][]string
	for _, n := range nodes.Nodes {
		if n.Live {
			rows = append(rows, []string{strconv.FormatInt(n.Node, 10), console.ShownText(n.Owner), ""})
			if n.Since != nil {
				rows[len(rows)-1][2] = moment(*n.Since)
			}
		}
	}
	text := fmt.Sprintf("%s: %d of %d node IDs are held\n%s", name, len(rows), s.Capacity,
		sections(console.Table(columns, rows[:min(len(rows), mostHolders)])))
	if more := len(rows) - mostHolders; more > 0 {
		text += fmt.Sprintf("and %d more\n", more)
	}
	return text, nil
}

// typed returns the next line of standard input. An error is returned when there is none, or when ctx ends before it.
func (p *program) typed(ctx context.Context) (string, error) {
	var line string
	read := make(chan error, 1)
	go func() {
		var err error
		line, err = bufio.NewReader(io.LimitReader(p.stdin, 1<<10)).ReadString('\n')
		read <- err
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case err := <-read:
		return strings.TrimSpace(line), err
	}
}

// givenPerSecond measures for a second how many IDs of a sequencer a server gives. It is not ok where the server does
// not tell.
func givenPerSecond(ctx context.Context, ask remote.Client, name string) (rate int64, ok bool) {
	given := func() (n float64, ok bool) {
		_, body, err := ask.Read(ctx, http.MethodGet, "/metrics", nil)
		for line := range bytes.Lines(body) {
			if text, found := bytes.CutPrefix(line,
				fmt.Appendf(nil, "firn_ids_given_total{sequencer=%q} ", name)); found {
				n, err = strconv.ParseFloat(string(bytes.TrimSpace(text)), 64)
				return n, err == nil
			}
		}
		return 0, err == nil
	}
	before, ok := given()
	if !ok {
		return 0, false
	}
	began := time.Now()
	select {
	case <-ctx.Done():
		return 0, false
	case <-time.After(time.Second):
	}
	after, ok := given()
	return int64((after - before) / time.Since(began).Seconds()), ok
}

// together is how many IDs of a sequencer all nodes give a second, by their latest pulses; false: unknown.
func together(ctx context.Context, ask remote.Client, name string) (rate int64, ok bool) {
	var s calls.Status
	if _, err := ask.Call(ctx, http.MethodGet, "/api/v1/cluster", nil, &s); err != nil {
		return 0, false
	}
	for _, q := range s.Sequencers {
		if q.Name == name && q.Given != nil {
			return int64(math.Ceil(*q.Given)), true
		}
	}
	return 0, false
}

func destroyedText(name string, d calls.Destroyed) string {
	switch {
	case d.Until != nil:
		return name + " is destroyed; nodes that are out of reach may still make IDs of it until " + moment(*d.Until) +
			"\n"
	case d.Message != "":
		return name + " is destroyed; nodes that are out of reach may still make IDs of it for a while\n"
	default:
		return name + " is destroyed\n"
	}
}
