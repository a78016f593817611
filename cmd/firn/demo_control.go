package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/demo"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/codes"
)

// demoControl are the flags of the commands to a demo that runs.
type demoControl struct {
	server serverFlags
	json   bool
}

// demoCommands are the commands to a demo that runs.
func (p *program) demoCommands() []*cobra.Command {
	onNode := func(do, short string) *cobra.Command {
		return p.demoControl(do+" N", short, 1, func(args []string) (string, error) {
			n, err := parseDemoNode(args[0])
			return demo.NodesPath + n + "/" + do, err
		})
	}
	onStore := func(do, short string) *cobra.Command {
		return p.demoControl(do+"-store", short, 0, func([]string) (string, error) { return demo.StorePath + do, nil })
	}
	step := p.demoControl("step-clock N|all STEP", "Set a clock, or all, by a step such as +5s or -1h", 2,
		func(args []string) (string, error) {
			n, err := args[0], error(nil)
			if n != demo.All {
				n, err = parseDemoNode(args[0])
			}
			if err != nil {
				return "", err
			}
			d, err := time.ParseDuration(args[1])
			if err != nil || d == 0 {
				return "", usagef("%.40q is not a step of a clock; want one such as +5s or -1h", args[1])
			}
			return demo.NodesPath + n + "/step-clock?step=" + url.QueryEscape(d.String()), nil
		})
	step.Flags().SetInterspersed(false) // or -1h would be flags
	return []*cobra.Command{
		p.demoStatusCommand(),
		onNode("kill", "Kill a node, as kill -9 does"),
		onNode("start", "Start a node that was killed"),
		onNode("pause", "Make a node hang, as kill -STOP does"),
		onNode("resume", "Let a hanging node continue"),
		step,
		onStore("stop", "Stop the store for all nodes"),
		onStore("start", "Bring the store back"),
	}
}

func parseDemoNode(text string) (string, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return "", usagef("%.40q is not a node; want its number, from 1", text)
	}
	return strconv.FormatUint(n, 10), nil
}

// demoControl is a command to a demo with so many arguments, from which path makes what is sent.
func (p *program) demoControl(use, short string, arguments int,
	path func(args []string) (string, error),
) *cobra.Command {
	var o demoControl
	c := &cobra.Command{
		Use:     use,
		Short:   short,
		Long:    short + ", in the running demo.\n\nIt prints what to look at next.",
		Example: "  firn demo " + strings.NewReplacer(" N|all", " 2", " N", " 2", "STEP", "-1h").Replace(use),
		Args:    cobra.ArbitraryArgs, // the flags may be among them
	}
	o.add(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > arguments {
			// those that came after arguments that look like flags
			if err := c.Flags().Parse(args[arguments:]); err != nil {
				return flagError(c, err)
			}
			args = append(args[:arguments:arguments], c.Flags().Args()...)
		}
		if len(args) != arguments {
			return usagef("%s takes %s; want firn demo %s", c.CommandPath(),
				console.Plural(int64(arguments), "argument"), use)
		}
		to, err := path(args)
		if err != nil {
			return err
		}
		return p.askDemo(c, &o, func(ctx context.Context, ask remote.Client) error {
			var a demo.Answer
			_, err := ask.Call(ctx, http.MethodPost, to, nil, &a)
			if err != nil {
				return err
			}
			return p.printf("%s", a.Text)
		})
	}
	return c
}

func (o *demoControl) add(c *cobra.Command) {
	o.server.name = "admin"
	setting.Add(c.Flags(), &o.server.url, "admin", "URL", "http://"+demo.DefaultAdminAddr,
		"the server to ask, at its address for administrators", remote.ParseURL)
}

func (p *program) demoStatusCommand() *cobra.Command {
	var o demoControl
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the nodes and the load of the running demo",
		Long: `Status shows the nodes and the load of the running demo: how many IDs,
calls without an ID, and duplicates.`,
		Example: "  firn demo status",
		Args:    noArguments,
	}
	o.add(c)
	setting.Bool(c.Flags(), &o.json, "json", "print a JSON object")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return p.askDemo(c, &o, func(ctx context.Context, ask remote.Client) error {
			var s demo.Status
			body, err := ask.Call(ctx, http.MethodGet, demo.StatusPath, nil, &s)
			return p.answer(body, err, o.json, s.String)
		})
	}
	return c
}

// askDemo asks the demo of the flags.
func (p *program) askDemo(c *cobra.Command, o *demoControl, ask func(context.Context, remote.Client) error) error {
	if err := p.fromEnvironment(c.Flags(), "admin"); err != nil {
		return err
	}
	running, err := o.server.client()
	if err != nil {
		return err
	}
	running.Hint = hint("firn demo", "admin")
	ctx := untilSignal(c.Context())
	err = ask(ctx, running)
	var answer *remote.AnswerError
	if errors.As(err, &answer) && (answer.Failure.Error.Message == "" || answer.Failure.Error.Code == "not_found") {
		return fmt.Errorf("the server %s is not a firn demo; --admin or %s says where it is", running.Base,
			setting.Variable("admin"))
	}
	if errors.As(err, &answer) && answer.Failure.Error.Code == codes.BadRequest {
		return errors.New(answer.Failure.Error.Message)
	}
	return interrupted(ctx, err)
}
