package deploy

import (
	_ "embed" // the rules and the dashboard
	"time"
)

// Prometheus is its configuration, /etc/prometheus/prometheus.yml, with a job for firn.
type Prometheus struct {
	Nodes     []string      // where nodes answer at /metrics
	Interval  time.Duration // how often they are asked
	TokenFile string        // that has a token to show, on the machine of Prometheus; none: no token
}

// NewPrometheus has no nodes yet.
func NewPrometheus() Prometheus { return Prometheus{Interval: 15 * time.Second} }

// RuleFile is the name of the file with alert rules.
func (Prometheus) RuleFile() string { return "firn.rules.yaml" }

// Text is the configuration.
func (p Prometheus) Text(o Origin) (string, error) {
	var c checks
	c.nodes(p.Nodes)
	c.duration("interval", p.Interval, time.Second)
	if p.TokenFile != "" {
		c.path("token-file", p.TokenFile)
	}
	return c.text(o, "prometheus.yml", p)
}

// Rules are the alert rules, for Prometheus.
//
//go:embed prometheus/firn.rules.yaml
var Rules string

// Alertmanager is a configuration of Alertmanager, whose inhibition rules mute alerts that follow from others.
//
//go:embed prometheus/alertmanager.yml
var Alertmanager string

// Dashboard is the dashboard, for Grafana.
//
//go:embed grafana/firn.json
var Dashboard string
