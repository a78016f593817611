package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/doctor"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/node"
)

const doctorHelp = `Doctor checks what a node needs, and says what to do about each problem. It
checks the clock, the layout's lifetime, certificates, the limit of open files,
the addresses, and the store. For a data directory it checks the directory and
its disk; for --quorum whether the machines answer with the same key, their
clocks, and whether the data belongs to them; for etcd, ZooKeeper or PostgreSQL
the servers, the node's rights, the members, the free node IDs, and whether this
machine's clock agrees with the other nodes'. The cluster's problems are those
of firn cluster status, as the running node or else the store tells them; one of
other nodes only is a warning.

Give it the flags, variables or config file of firn serve, on the node's machine
and as the node's user: sudo -u firn firn doctor --config /etc/firn/firn.yaml.
It works before the first start, and while a node runs.

Doctor changes nothing, with two exceptions: it writes a small file to the data
directory to measure the disk, and removes it; and it creates firn's tables in
PostgreSQL if they are missing. To check its right to write to etcd or
ZooKeeper, it sends a transaction with a condition that is never true.

With --settings it reads the configuration and the files that it names, and
prints each setting in force and its source. It does not print secrets.

With --bundle it writes a gzipped tar archive for support, which only its owner
can read: the version, this machine's system, these checks with the settings,
and the node's status, quorum, history, log of the last day, metrics and
goroutines. It removes keys, tokens and passwords, also encoded ones; passwords
of fewer than 6 bytes only from the settings. It lists what is in the file and
what is missing; the exit status is 0 once the file is written.

With --nodes it checks whether nodes belong to one cluster, as all nodes behind
one address must.

With --regions it asks one node of each region whether the regions' clusters
share node IDs, and whether sequencers of one name have the same layout, epoch
and scattering.

Exit statuses: 0 nothing failed, though there may be warnings; 1 a check failed;
78 the configuration is wrong, with the error of firn serve.`

const doctorExamples = `  firn doctor
  sudo -u firn firn doctor --config /etc/firn/firn.yaml
  firn doctor --etcd 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379 --json
  firn doctor --store postgres://firn@db:5432/ids --postgres-password-file password
  firn doctor --nodes http://10.0.0.1:9080,http://10.0.0.2:9080 --token-file admin.token
  firn doctor --regions https://east:9080,https://west:9080 --token-file admin.token
  sudo -u firn firn doctor --config /etc/firn/firn.yaml --bundle /tmp/firn.tar.gz
  FIRN_TTL=15s firn doctor --settings`

// diagnosis is what doctor found, as JSON has it.
type diagnosis struct {
	Findings []doctor.Finding `json:"findings"`
	Warnings int              `json:"warnings"`
	Failures int              `json:"failures"`
	Settings []inForce        `json:"settings"`
}

func (p *program) doctorCommand() *cobra.Command {
	var o serveOptions
	var onlySettings, asJSON bool
	var nodes, regions []string
	var bundle string
	var access serverFlags
	c := &cobra.Command{
		Use:     "doctor",
		Short:   "Check what a node needs, and say what to do",
		Long:    doctorHelp,
		Example: doctorExamples,
		Args:    noArguments,
	}
	flags := o.apart()
	setting.Bool(c.Flags(), &onlySettings, "settings", "print each setting and its source; check nothing else")
	setting.Bool(c.Flags(), &asJSON, "json", "print a JSON object")
	setting.Add(c.Flags(), &nodes, "nodes", setting.KindList, "",
		"check that these nodes belong to one cluster: their URLs for\n"+
			"administrators, separated by commas; check nothing else", setting.ParseList)
	setting.Add(c.Flags(), &regions, "regions", setting.KindList, "",
		"compare the clusters of these nodes, one of each region: their\n"+
			"URLs for administrators, separated by commas; check nothing else", setting.ParseList)
	setting.Text(c.Flags(), &bundle, "bundle", "file", "write an archive for support to this new file, without secrets")
	must(c.MarkFlagFilename("bundle", "tar.gz", "tgz"))
	access.add(c.Flags())
	p.borrows(c, flags)
	c.RunE = func(c *cobra.Command, _ []string) error {
		switch {
		case bundle != "" && (onlySettings || len(nodes) > 0 || len(regions) > 0):
			return usagef("--bundle with --settings, --nodes or --regions: want one of them, since a bundle has all " +
				"checks of one node")
		case len(nodes) > 0 && len(regions) > 0:
			return usagef("--nodes and --regions: want one of them, since nodes of several regions are of several " +
				"clusters")
		case len(nodes) > 0:
			return p.compare(untilSignal(c.Context()), "nodes", nodes, access, asJSON, doctor.CheckNodes)
		case len(regions) > 0:
			return p.compare(untilSignal(c.Context()), "regions", regions, access, asJSON, doctor.CheckRegions)
		}
		s, err := p.configure(&o, flags)
		if err != nil {
			return err
		}
		if _, err := os.Lstat(bundle); bundle != "" && err == nil { // before the checks, which take time
			return bundleExists(bundle)
		}
		d := diagnosis{Settings: s.inForce(flags), Findings: []doctor.Finding{}}
		ctx := c.Context()
		if !onlySettings {
			ctx = untilSignal(ctx)
			d.Findings = doctor.Check(doctor.Examine(ctx, examined(s.Config)))
			if err := interrupted(ctx, ctx.Err()); err != nil {
				return err
			}
		}
		for _, w := range s.warnings {
			if onlySettings || w.Unchecked() { // the checks find the others
				d.Findings = append(d.Findings, w)
			}
		}
		d.Findings = append(d.Findings, p.unknownVariables()...)
		if bundle != "" {
			return p.bundle(ctx, bundle, s, flags, access, d.counted(), asJSON)
		}
		return p.diagnose(d, asJSON, onlySettings)
	}
	return c
}

// counted is a diagnosis with the numbers of its warnings and failures.
func (d diagnosis) counted() diagnosis {
	d.Warnings, d.Failures = 0, 0
	for _, f := range d.Findings {
		switch f.Level {
		case doctor.Warn:
			d.Warnings++
		case doctor.Fail:
			d.Failures++
		}
	}
	return d
}

// diagnose prints a diagnosis, with the settings alone in front or without them.
func (p *program) diagnose(d diagnosis, asJSON, withSettings bool) (err error) {
	switch d = d.counted(); {
	case asJSON:
		err = json.NewEncoder(p.stdout).Encode(d)
	case withSettings:
		err = p.printf("%s%s", settingsTable(d.Settings), sections(p.findings(d.Findings)))
	default:
		err = p.printf("%s\n%s, %s\n", p.findings(d.Findings), console.Plural(int64(d.Warnings), "warning"),
			console.Plural(int64(d.Failures), "failure"))
	}
	if err == nil && d.Failures > 0 {
		err = errReported
	}
	return err
}

// compare asks nodes what they say of their clusters, and prints what is wrong between them.
func (p *program) compare(ctx context.Context, flag string, urls []string, access serverFlags, asJSON bool,
	check func([]doctor.NodeSeen) []doctor.Finding,
) error {
	var seen []doctor.NodeSeen
	for _, text := range urls {
		at := access
		at.name = flag
		var err error
		if at.url, err = remote.ParseURL(text); err != nil {
			return usagef("--%s: %w", flag, err)
		}
		node, err := at.client()
		if err != nil {
			return err
		}
		one := doctor.NodeSeen{URL: text}
		_, one.Err = node.Call(ctx, http.MethodGet, "/api/v1/cluster", nil, &one.Status)
		seen = append(seen, one)
	}
	d := diagnosis{Settings: []inForce{}, Findings: check(seen)}
	if err := interrupted(ctx, ctx.Err()); err != nil {
		return err
	}
	return p.diagnose(d, asJSON, false)
}

func levelColour(level string) console.Colour {
	return map[string]console.Colour{
		string(doctor.OK): console.Green, string(doctor.Warn): console.Yellow,
		string(doctor.Fail): console.Red,
	}[level]
}

// findings has a line for each finding, and below it what to do.
func (p *program) findings(found []doctor.Finding) string {
	if len(found) == 0 {
		return ""
	}
	columns := []console.Column{{Colour: p.colours(levelColour)}, {Head: "ABOUT"}, {Head: "FOUND"}}
	var rows [][]string
	for _, f := range found {
		rows = append(rows, []string{string(f.Level), console.ShownText(f.About), f.Found})
	}
	console.Fit(columns[:2], rows)
	text := strings.Builder{}
	text.WriteString(console.Row(columns, nil))
	for i, f := range found {
		text.WriteString(console.Row(columns, rows[i]))
		for j, do := range console.Wrap(f.Do, 90) {
			mark := "> "
			if j > 0 {
				mark = "  "
			}
			text.WriteString(console.Row(columns, []string{"", "", mark + do}))
		}
	}
	return text.String()
}

// examined is a node's configuration as package doctor takes it.
func examined(c node.Config) doctor.Config {
	c.Quorum.Dir = c.DataDir
	return doctor.Config{
		Layout: c.Layout, Window: c.Window, TLS: c.TLS, MaxConnections: int64(c.MaxConnections),
		Addresses: addresses(c), TokensFile: c.TokensFile, SealKeyFile: c.SealKeyFile, Choice: c.Choice,
	}
}

// addresses are all that a node listens on, the public one first.
func addresses(c node.Config) (all []doctor.Address) {
	for _, a := range [][2]string{
		{"http-addr", c.HTTPAddr},
		{"admin-addr", c.AdminAddr},
		{"grpc-addr", c.GRPCAddr},
		{"redis-addr", c.RedisAddr},
		{"metrics-addr", c.MetricsAddr},
	} {
		if a[1] != "" {
			all = append(all, doctor.Address{
				Flag: a[0], At: a[1], URL: node.URL(a[1], c.TLS.Cert != ""),
				Passed: strings.HasPrefix(a[1], node.FromSystemd),
			})
		}
	}
	return all
}
