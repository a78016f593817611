package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/base/unixsocket"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/service/ui"
)

const dashboardHelp = `Dashboard prints the dashboard's address, with a login for one browser. The
login works once, within 15 minutes. It allows changes on the dashboard and on
the page /docs/, until you close the tab or the server restarts.

Only root and the user who started the server can get a login. A server with
tokens has no logins: its dashboard asks for a token.`

func (p *program) dashboardCommand() *cobra.Command {
	var o lookOptions
	c := &cobra.Command{
		Use:     "dashboard",
		Short:   "Print the address of the dashboard, with a login",
		Long:    dashboardHelp,
		Example: "  firn cluster dashboard\n  firn cluster dashboard --admin localhost:9081",
		Args:    noArguments,
	}
	o.server.addAdmin(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := notForOthers(p.stdout); err != nil {
			return err
		}
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
			if unixsocket.Is(ask.Base) {
				return usagef("--admin: browsers do not open Unix sockets such as %s; start the node with "+
					"--admin-addr 127.0.0.1:9080, or look with firn cluster status", ask.Base)
			}
			var login ui.Login
			at := ask.Base
			ask.Showed = func(url string) { at = url }
			_, err := ask.Call(ctx, http.MethodPost, ui.LoginPath, nil, &login)
			if hasTokens(err) {
				err = nil
			}
			if err != nil {
				return err
			}
			return p.printf("%s\n", login.Address(at))
		})
	}
	return c
}

// hasTokens tells whether a server has no logins, since it has tokens.
func hasTokens(err error) bool {
	var answer *remote.AnswerError
	return errors.As(err, &answer) && answer.Failure.Error.Code == codes.BadRequest
}
