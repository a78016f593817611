package metrics

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/firn-id/firn/internal/test/testenv"
)

var update = flag.Bool("update", false, "write docs/metrics.md again")

const (
	documentation = "../../../docs/metrics.md"
	runbook       = "../../../docs/alerts.md"
	rules         = "../../ops/deploy/prometheus/firn.rules.yaml"
	ruleTests     = "../../ops/deploy/prometheus/firn.rules.test.yaml"
	alertmanager  = "../../ops/deploy/prometheus/alertmanager.yml"
	dashboard     = "../../ops/deploy/grafana/firn.json"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// table returns the documentation's table of the series.
func table() string {
	var b strings.Builder
	b.WriteString("\n| name | type | labels | unit | |\n|---|---|---|---|---|\n")
	for _, s := range all {
		var labels []string
		for _, l := range s.labels {
			labels = append(labels, "`"+l+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", s.name, s.typeName(), strings.Join(labels, ", "),
			s.unit, s.help)
	}
	return b.String()
}

// The documentation describes every series as it is.
func TestDocumentation(t *testing.T) {
	const begins, ends = "-update -->\n", "<!-- end -->"
	text := readFile(t, documentation)
	head, rest, ok := strings.Cut(text, begins)
	_, tail, found := strings.Cut(rest, ends)
	if !ok || !found {
		t.Fatalf("%s has no place for the series, between %q and %q", documentation, begins, ends)
	}
	want := head + begins + table() + "\n" + ends + tail
	if *update {
		if err := os.WriteFile(documentation, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != want {
		t.Errorf("%s is not current; run go test ./internal/service/metrics -run TestDocumentation -update",
			documentation)
	}
}

// A node that has everything shows every documented series, and no other.
func TestEverySeriesIsShown(t *testing.T) {
	full(t, func(w *watched) {
		shown := families(t, w.metrics)
		for _, s := range all {
			if shown[s.name] != s.typeName() {
				t.Errorf("%s is listed as a %s, and shown as a %q", s.name, s.typeName(), shown[s.name])
			}
			delete(shown, s.name)
		}
		for name := range shown {
			if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
				t.Errorf("%s is shown, and not listed", name)
			}
		}
	})
}

// rule is an alert in a file of rules, or what is recorded under a name.
type rule struct {
	Alert, Record, Expr, For string
	Labels, Annotations      map[string]string
}

// rulesOf returns all rules.
func rulesOf(t *testing.T) (alerts, records []rule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	if err := yaml.Unmarshal([]byte(readFile(t, rules)), &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Record != "" {
				records = append(records, r)
			} else {
				alerts = append(alerts, r)
			}
		}
	}
	if len(alerts) < 10 || len(records) < 5 {
		t.Fatalf("there are %d alerts and %d records", len(alerts), len(records))
	}
	return alerts, records
}

// target is a query of the dashboard.
type target struct{ Expr string }

// queries returns the queries of the dashboard, by the titles of their panels.
func queries(t *testing.T) map[string][]target {
	t.Helper()
	var file struct {
		Panels []struct {
			Title, Type string
			Targets     []target
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, dashboard)), &file); err != nil {
		t.Fatal(err)
	}
	all := map[string][]target{}
	for _, p := range file.Panels {
		if p.Type != "row" && len(p.Targets) == 0 || all[p.Title] != nil {
			t.Errorf("the panel %q has nothing to show, or is there twice", p.Title)
		}
		all[p.Title] = p.Targets
	}
	return all
}

// names returns the metrics in an expression, without the suffixes of histograms.
func names(expr string) (all []string) {
	for _, name := range regexp.MustCompile(`\b(?:\w+:firn_[a-z_]+:\w+|(?:firn|go|process)_[a-z_]+)`).
		FindAllString(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(expr, ""), -1) {
		all = append(all, strings.TrimSuffix(name, "_bucket"))
	}
	return all
}

// A node shows every metric that alerts and the dashboard use.
func TestRulesAndDashboardKnowTheirMetrics(t *testing.T) {
	full(t, func(w *watched) {
		shown, ours := families(t, w.metrics), readFile(t, documentation)
		check := func(where, expr string) {
			t.Helper()
			found := names(expr)
			for _, name := range found {
				if shown[name] == "" {
					t.Errorf("%s asks for %s, which no node shows", where, name)
				}
			}
			if len(found) == 0 {
				t.Errorf("%s asks for nothing: %s", where, expr)
			}
		}
		alerts, records := rulesOf(t)
		for _, r := range records { // which may use those before
			check(r.Record, r.Expr)
			shown[r.Record] = "record"
			if !strings.Contains(ours, "`"+r.Record+"`") && strings.HasPrefix(r.Record, "job:") {
				t.Errorf("%s does not tell of %s", documentation, r.Record)
			}
		}
		for _, a := range alerts {
			check(a.Alert, a.Expr)
		}
		for title, targets := range queries(t) {
			for _, q := range targets {
				check("the panel "+title, q.Expr)
			}
		}
	})
}

// Each alert has a description, a test and a section in the runbook, which has no other sections.
func TestRunbook(t *testing.T) {
	text, tests := readFile(t, runbook), readFile(t, ruleTests)
	alerts, _ := rulesOf(t)
	var want []string
	for _, a := range alerts {
		want = append(want, a.Alert)
		link := "https://github.com/firn-id/firn/blob/main/docs/alerts.md#" + strings.ToLower(a.Alert)
		if a.Annotations["runbook_url"] != link || a.Annotations["summary"] == "" ||
			!strings.Contains(a.Annotations["description"], "$value") {
			t.Errorf("%s has the annotations %v", a.Alert, a.Annotations)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
			t.Errorf("%s has the labels %v", a.Alert, a.Labels)
		}
		if !strings.Contains(tests, "\n  - name: "+a.Alert+"\n") {
			t.Errorf("%s has no test", a.Alert)
		}
		if !strings.Contains(text, fmt.Sprintf("## %s\n\n**%s.**", a.Alert,
			strings.ToUpper(a.Labels["severity"][:1])+a.Labels["severity"][1:])) {
			t.Errorf("%s is not in the runbook as %s", a.Alert, a.Labels["severity"])
		}
	}
	var have []string
	for _, m := range regexp.MustCompile(`(?m)^## (Firn\w+)$`).FindAllStringSubmatch(text, -1) {
		have = append(have, m[1])
	}
	if !slices.Equal(have, want) {
		t.Errorf("the runbook has %v, want %v", have, want)
	}
}

func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	testenv.Program(t, "promtool", "prometheus")
	c := exec.Command("promtool", args...)
	c.Stdin = strings.NewReader(input)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// The rules are valid, and alert when they should.
func TestRules(t *testing.T) {
	promtool(t, "", "check", "rules", rules)
	promtool(t, "", "test", "rules", ruleTests)
}

// The names and units are as Prometheus recommends.
func TestPromtoolLikesTheMetrics(t *testing.T) {
	var text string
	full(t, func(w *watched) { text = w.text() })
	promtool(t, text, "check", "metrics")
}

// The queries of the dashboard are valid.
func TestDashboardQueries(t *testing.T) {
	var b strings.Builder
	b.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for _, targets := range queries(t) {
		for _, q := range targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$job", "a", "$instance", "b").
				Replace(q.Expr)
			fmt.Fprintf(&b, "  - record: a:b\n    expr: '%s'\n    labels: {n: \"%d\"}\n",
				strings.ReplaceAll(expr, "'", "''"), b.Len())
		}
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "check", "rules", file)
}

func (s *series) typeName() string {
	switch s.kind {
	case prometheus.CounterValue:
		return "counter"
	case prometheus.GaugeValue:
		return "gauge"
	default:
		return "histogram"
	}
}
