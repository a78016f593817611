package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
)

const reserveHelp = `Reserve keeps node IDs of a sequencer for something else than nodes of firn: a
database that makes IDs, or a generator of another make. No node gets them until
firn sequencer release.

With --count it takes the highest node IDs of those for later (firn sequencer
create --reserve), then the highest that were never used, and then those that
are the longest free; with --nodes those that you name, none of which a node
may have. It prints them, and the time at which IDs under them may begin:
smaller ones may exist.

If it fails half way, run it again, and use the node IDs only after it has
succeeded. Run again with the same --for, it prints the same. Ask any server.`

func (p *program) reserveCommand() *cobra.Command {
	var o lookOptions
	var body httpapi.Reserve
	c := &cobra.Command{
		Use:   "reserve SEQUENCER --count N|--nodes LIST --for PURPOSE",
		Short: "Keep node IDs for something else than nodes",
		Long:  reserveHelp,
		Example: "  firn sequencer reserve orders --count 2 --for \"warehouse database\"\n" +
			"  firn sequencer reserve orders --nodes 900..903 --for bwmarrin",
		Args: named("SEQUENCER"),
	}
	o.add(c.Flags(), "print a JSON object")
	setting.Number(c.Flags(), &body.Count, "count", "", 1, "how many node IDs")
	setting.Add(c.Flags(), &body.Nodes, "nodes", "list", "", "these node IDs, such as 5,900..903", parseNodeIDs)
	setting.Text(c.Flags(), &body.For, "for", "text", "what uses the node IDs")
	c.RunE = func(c *cobra.Command, args []string) error {
		switch count, nodes := c.Flags().Changed("count"), c.Flags().Changed("nodes"); {
		case count == nodes:
			return usagef("want either --count or --nodes")
		case body.For == "":
			return usagef("--for is missing; want what uses the node IDs")
		}
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			var r calls.Reserved
			answer, err := ask.Call(ctx, http.MethodPost, remote.SequencerPath(args[0], "/reserve"), marshal(body), &r)
			return p.answer(answer, err, o.json, func() string {
				return linesText([][2]string{
					{"node IDs", console.Stretches(r.Nodes)}, {"for", console.Shown(r.For)}, {"from", moment(r.From)},
				})
			})
		})
	}
	return c
}

// parseNodeIDs reads node IDs such as 5,900..903.
func parseNodeIDs(text string) (nodes []int64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "..")
		if !isRange {
			to = from
		}
		first, err := strconv.ParseInt(from, 10, 64)
		last, err2 := strconv.ParseInt(to, 10, 64)
		switch {
		case err != nil || err2 != nil || first < 0 || last < first:
			return nil, fmt.Errorf("%.40q is not a list of node IDs; want one such as 5,900..903", text)
		case last-first >= cluster.MaxReserved || len(nodes) >= cluster.MaxReserved:
			return nil, fmt.Errorf("%.40q has more than %d node IDs", text, cluster.MaxReserved)
		}
		for i := range last - first + 1 {
			nodes = append(nodes, first+i)
		}
	}
	return nodes, nil
}

const releaseHelp = `Release ends firn sequencer reserve: nodes get the node IDs again.

First stop whatever makes IDs under them, for good. With --greatest, say the
greatest ID that it made, unless IDs are scattered; or with --used-until a time
after all its IDs, at most a day ahead: nodes get the node IDs back then. If it
made none, say a time in the past. Here now means in a minute: clocks differ,
and a database may have made IDs that are ahead of its clock. Ask any server.`

func (p *program) releaseCommand() *cobra.Command {
	var o lookOptions
	var body httpapi.Release
	var greatest firn.ID
	c := &cobra.Command{
		Use:   "release SEQUENCER --for PURPOSE --greatest ID|--used-until TIME",
		Short: "End a reservation of node IDs",
		Long:  releaseHelp,
		Example: "  firn sequencer release orders --for bwmarrin --greatest 119209834522349568\n" +
			"  firn sequencer release orders --for \"warehouse database\" --used-until now",
		Args: named("SEQUENCER"),
	}
	o.add(c.Flags(), "print a JSON object")
	setting.Text(c.Flags(), &body.For, "for", "text", "what has used the node IDs")
	setting.Add(c.Flags(), &greatest, "greatest", "ID", "", "the greatest ID that it made", firn.Parse)
	setting.Add(c.Flags(), &body.Until, "used-until", "time", "",
		"all its IDs are of times before this one: a date, RFC 3339, or now", parseUsedUntil)
	c.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("greatest") {
			body.Greatest = &greatest
		}
		switch {
		case (body.Greatest == nil) == (body.Until == nil):
			return usagef("want either --greatest or --used-until")
		case body.For == "":
			return usagef("--for is missing; want what has used the node IDs")
		}
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			var q calls.StatusSequencer
			answer, err := ask.Call(ctx, http.MethodPost, remote.SequencerPath(args[0], "/release"), marshal(body), &q)
			return p.answer(answer, err, o.json, func() string {
				return fmt.Sprintf("%s: the node IDs for %s are released\n", args[0], console.Shown(body.For))
			})
		})
	}
	return c
}

func parseUsedUntil(text string) (*time.Time, error) {
	if text == "now" { // clocks differ by up to 10 s, and gen sql --generator is up to 10 s ahead
		return new(time.Now().Add(time.Minute)), nil
	}
	at, err := parseTime(text)
	return &at, err
}
