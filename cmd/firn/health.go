package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

const healthHelp = `Health asks the node on this machine whether it gives IDs, as GET /readyz does,
and if not, why. It is for health checks of containers, whose image has no other
program.

Give it the flags, variables or config file of firn serve. It asks at
--metrics-addr if that is set, else at --http-addr, without a token, and accepts
any certificate.

Exit statuses: 0 the node gives IDs; 1 it does not, or did not answer within 4
s; 78 the configuration is wrong.`

const healthExamples = `  firn health
  firn health --http-addr :8081
  docker inspect --format '{{json .State.Health}}' ids   # what the image's health check found`

// healthWithin is how long the node may take to answer: less than the 5 s that the image gives to the check.
const healthWithin = 4 * time.Second

func (p *program) healthCommand() *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:     "health",
		Short:   "Ask whether the node on this machine gives IDs",
		Long:    healthHelp,
		Example: healthExamples,
		Args:    noArguments,
	}
	flags := o.apart()
	p.borrows(c, flags)
	c.RunE = func(c *cobra.Command, _ []string) error {
		p.warnUnknown()
		s, err := p.readConfig(&o, flags)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(untilSignal(c.Context()), healthWithin)
		defer cancel()
		if err := examined(s.Config).Ready(ctx); err != nil {
			return err
		}
		return p.printf("the node gives IDs\n")
	}
	return c
}
