package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// lookOptions are the flags of what looks at a cluster.
type lookOptions struct {
	server serverFlags
	json   bool
}

func (o *lookOptions) add(fs *pflag.FlagSet, json string) {
	o.server.addAdmin(fs)
	setting.Bool(fs, &o.json, "json", json)
}

// look asks the server of the flags, until the command is interrupted.
func (p *program) look(c *cobra.Command, o *lookOptions, ask func(context.Context, remote.Client) error) error {
	if err := p.fromEnvironment(c.Flags(), o.server.names()...); err != nil {
		return err
	}
	client, err := o.server.client()
	if err != nil {
		return err
	}
	client.Answered = p.sayRemembered
	ctx := untilSignal(c.Context())
	return interrupted(ctx, ask(ctx, client))
}

// sayRemembered says on standard error that an answer is from what the node remembers, where its header says so.
func (p *program) sayRemembered(header http.Header) {
	asOf := header.Get(httpapi.LogAsOf)
	if asOf == "" {
		return
	}
	at := "an unknown time"
	if t, err := time.Parse(time.RFC3339Nano, asOf); err == nil {
		at = localTime(t)
	}
	fmt.Fprintf(p.stderr, "firn: the store does not answer: this is from the node's memory, as of %s\n", at)
}

// show prints the JSON that a server answers: as it is, or as text that is made from what was read into
// answer.
func (p *program) show(ctx context.Context, ask remote.Client, path string, answer any, asJSON bool,
	text func() string,
) error {
	body, err := ask.Call(ctx, http.MethodGet, path, nil, answer)
	return p.answer(body, err, asJSON, text)
}

// answer prints what a server answers: as it is, or as text.
func (p *program) answer(body []byte, err error, asJSON bool, text func() string) error {
	switch {
	case err != nil:
		return err
	case asJSON:
		return p.printf("%s", body)
	default:
		return p.printf("%s", text())
	}
}

// oneName is for commands whose argument is the name of a sequencer.
func oneName(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usagef("%s needs the name of a sequencer", c.CommandPath())
	case len(args) > 1:
		return usagef("%q: %s takes one name", args[1], c.CommandPath())
	}
	_, err := parseSequencer(args[0])
	if err != nil {
		return usageError{err}
	}
	return nil
}

// parseSequencer reads the name of a sequencer.
func parseSequencer(name string) (string, error) {
	if name == "." || name == ".." { // these would be other paths
		return name, fmt.Errorf("the sequencer's name %q; a URL can't have it; want another", name)
	}
	return name, cluster.CheckName(name)
}

// addSequencer adds the flag that names a sequencer.
func addSequencer(fs *pflag.FlagSet, into *string, usage string) {
	setting.Add(fs, into, "sequencer", "name", "", usage, parseSequencer)
}

// marshal is for values that can be written as JSON.
func marshal(v any) []byte {
	data, err := json.Marshal(v)
	must(err)
	return data
}
