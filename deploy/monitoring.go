package deploy

import (
	"errors"
	"fmt"
	"io/fs"
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
	c.addresses("nodes", p.Nodes, 1)
	c.from("interval", p.Interval, time.Second)
	if p.TokenFile != "" {
		c.path("token-file", p.TokenFile)
	}
	if c.err != nil {
		return "", c.err
	}
	return text(o, "prometheus.yml", p)
}

// Rules are the alert rules, for Prometheus.
func Rules() (string, error) { return asItIs("prometheus/firn.rules.yaml") }

// Dashboard is the dashboard, for Grafana.
func Dashboard() (string, error) { return asItIs("grafana/firn.json") }

func asItIs(name string) (string, error) {
	content, err := sources.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("this build of firn has no %s", name)
	}
	return string(content), err
}
