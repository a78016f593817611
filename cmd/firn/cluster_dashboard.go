package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/remote"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/ui"
)

const dashboardHelp = `Dashboard prints the address of the page that shows the cluster, with a login for one
browser: it is good once, within 15 minutes. Who is logged in can change what others
may only look at, and try such calls at /docs/, until the tab is closed or the server
is started again.

It works for who has started the server, and for root. A server with tokens has no
such logins: its page asks for a token.

FIRN_ADMIN stands in for --admin.`

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
		return p.look(c, &o, func(ctx context.Context, ask remote.Client) error {
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
	return errors.As(err, &answer) && answer.Failure.Error.Code == server.BadRequest
}
