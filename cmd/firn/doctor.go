package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/doctor"
)

const doctorHelp = `Doctor looks at what a node needs, and says of each thing how it is and, where it
is not right, what to do: the clock, the layout's time, certificates, the limit of
open files, the addresses to listen on, and either the data directory and its disk
or the etcd cluster: each server, its version, its alarms, and whether this node
may read and write there; then the members and the free node IDs.

Give it the flags, variables or config file of firn serve, on the machine and as
the user that it runs as: sudo -u firn firn doctor --config /etc/firn/firn.yaml.
It can be asked before the first start, and while a node runs there.

It changes nothing. In the data directory it writes a small file, to see how long
that takes, and removes it. To see whether it may write to etcd it sends a
transaction that can't apply.

Exit statuses: 0 nothing failed, though there may be warnings; 1 something did; 78
the configuration is wrong, as firn serve says it.`

const doctorExamples = `  firn doctor
  sudo -u firn firn doctor --config /etc/firn/firn.yaml
  firn doctor --etcd 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379 --json`

// diagnosis is what doctor found, as JSON has it.
type diagnosis struct {
	Findings []doctor.Finding `json:"findings"`
	Warnings int              `json:"warnings"`
	Failures int              `json:"failures"`
}

func (p *program) doctorCommand() *cobra.Command {
	var o serveOptions
	var asJSON bool
	c := &cobra.Command{
		Use:     "doctor",
		Short:   "Check what a node needs, and say what to do",
		Long:    doctorHelp,
		Example: doctorExamples,
		Args:    noArguments,
	}
	flags := o.apart()
	addBool(c.Flags(), &asJSON, "json", "print a JSON object")
	c.Flags().AddFlagSet(flags)
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, _, err := o.configured(flags, p.env)
		if err != nil {
			return err
		}
		n, err := newNode(s, p.stderr)
		if err != nil {
			return err
		}
		warnings, err := n.safe()
		if err != nil {
			return err
		}
		ctx := untilSignal(c.Context())
		seen := doctor.Examine(ctx, n.examined())
		if err := interrupted(ctx, ctx.Err()); err != nil {
			return err
		}
		d := diagnosis{Findings: doctor.Check(seen)}
		for _, w := range warnings {
			if w.About == aboutTokens { // the others are among what was seen
				d.Findings = append(d.Findings, w)
			}
		}
		for _, f := range d.Findings {
			switch f.Level {
			case doctor.Warn:
				d.Warnings++
			case doctor.Fail:
				d.Failures++
			}
		}
		if err := p.printDiagnosis(d, asJSON); err != nil {
			return err
		}
		if d.Failures > 0 {
			return errReported
		}
		return nil
	}
	return c
}

func (p *program) printDiagnosis(d diagnosis, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(p.stdout).Encode(d)
	}
	return p.printf("%s", d)
}

// String has a line for each finding, and below it what to do.
func (d diagnosis) String() string {
	columns := []column{{"", 0, false}, {"ABOUT", 0, false}, {"FOUND", 0, false}}
	var rows [][]string
	for _, f := range d.Findings {
		rows = append(rows, []string{string(f.Level), shownText(f.About), f.Found})
	}
	fit(columns[:2], rows)
	text := strings.Builder{}
	text.WriteString(line(columns, nil))
	for i, f := range d.Findings {
		text.WriteString(line(columns, rows[i]))
		for j, do := range wrapped(f.Do, 90) {
			mark := "> "
			if j > 0 {
				mark = "  "
			}
			text.WriteString(line(columns, []string{"", "", mark + do}))
		}
	}
	count := func(n int, one, more string) string {
		if n == 1 {
			return "1 " + one
		}
		return fmt.Sprintf("%d %s", n, more)
	}
	return text.String() + "\n" + count(d.Warnings, "warning", "warnings") + ", " + count(d.Failures, "failure", "failures") + "\n"
}

// examined is the node's configuration as package doctor takes it.
func (n *node) examined() doctor.Config {
	return doctor.Config{
		Layout: n.layout, Window: n.window, TLS: n.certificates, MaxConnections: n.maxConnections,
		Addresses: n.addresses(), DataDir: n.dataDir, Etcd: n.etcd,
	}
}

// addresses are all that the node listens on, the public one first.
func (n *node) addresses() (all []doctor.Address) {
	for _, a := range [][2]string{{"http-addr", n.httpAddr}, {"admin-addr", n.adminAddr}, {"grpc-addr", n.grpcAddr}, {"redis-addr", n.redisAddr}, {"metrics-addr", n.metricsAddr}} {
		if a[1] != noAddress {
			all = append(all, doctor.Address{Flag: a[0], At: a[1], URL: urlOf(a[1], n.tls != nil)})
		}
	}
	return all
}
