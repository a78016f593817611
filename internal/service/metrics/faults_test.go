package metrics

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/firn-id/firn/internal/base/space"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store/quorum"
)

// faults stage the faults of the runbook's table, in its order.
var faults = []struct {
	name  string
	stage func(s *stage)
}{
	{"none", func(s *stage) { s.pass(30 * time.Minute) }},
	{"all nodes, one after the other, are restarted with another version", func(s *stage) {
		for _, n := range slices.Clone(s.nodes) {
			s.leave(n)
			s.start("v2")
			s.pass(2 * time.Minute)
		}
		s.pass(20 * time.Minute)
	}},
	{"all nodes are dead", func(s *stage) {
		s.kill(s.nodes...)
		s.pass(30 * time.Minute)
	}},
	{"all nodes are dead, and nothing lists them any more", func(s *stage) {
		s.kill(s.nodes...)
		for _, n := range s.nodes {
			n.gone = true
		}
		s.pass(30 * time.Minute)
	}},
	{"one node of five is dead", func(s *stage) {
		s.pass(time.Hour) // for those alerts that look back
		s.kill(s.nodes[4])
		s.pass(30 * time.Minute)
	}},
	{"the store answers nobody", func(s *stage) {
		for _, n := range s.nodes {
			n.client.CutOff(true)
		}
		s.pass(30 * time.Minute)
	}},
	{"two of three machines of the quorum are dead, with their nodes", func(s *stage) {
		for _, n := range s.nodes {
			n.client.CutOff(true)
		}
		s.kill(s.nodes[1], s.nodes[2])
		s.machines(func(q *quorum.Status) {
			q.Majority, q.Machines[1].Err, q.Machines[2].Err = false, "no answer", "no answer"
		})
		s.pass(30 * time.Minute)
	}},
	{"one of three machines of the quorum is dead, with its node", func(s *stage) {
		s.kill(s.nodes[2])
		s.machines(func(q *quorum.Status) { q.Machines[2].Err = "no answer" })
		s.pass(30 * time.Minute)
	}},
	{"one node is cut off from the store", func(s *stage) {
		s.nodes[0].client.CutOff(true)
		s.pass(30 * time.Minute)
	}},
	{"the disk of one node has a tenth left", func(s *stage) {
		s.nodes[0].room.Store(&space.Room{Free: 300 << 20, Share: 0.1, Inodes: 1})
		s.pass(30 * time.Minute)
	}},
	{"the disk of one node has hardly an inode left", func(s *stage) {
		s.nodes[0].room.Store(&space.Room{Free: 50 << 30, Share: 0.5, Inodes: 0.01})
		s.pass(30 * time.Minute)
	}},
	{"the disk of one machine of the quorum is slow", func(s *stage) {
		s.machines(func(q *quorum.Status) { q.Machines[1].Sync = 300 * time.Millisecond })
		s.pass(30 * time.Minute)
	}},
	{"one clock is two hours ahead", func(s *stage) {
		s.nodes[0].wall.Add(int64(2 * time.Hour))
		s.pass(30 * time.Minute)
	}},
	{"one clock is two hours behind", func(s *stage) {
		s.nodes[0].wall.Add(-int64(2 * time.Hour))
		s.pass(30 * time.Minute)
	}},
	{"one clock is set back by eight seconds", func(s *stage) {
		s.nodes[0].wall.Add(-int64(8 * time.Second))
		s.pass(30 * time.Minute)
	}},
	{"a sequencer has fewer node IDs than the cluster has nodes", func(s *stage) {
		d := definition()
		d.Layout.Epoch, d.Nodes = d.Layout.Epoch.Truncate(24*time.Hour), 4
		for _, n := range s.nodes {
			ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
			_, _ = n.member.EnsureSequencer(ctx, "few", d) // one has to wait in line
			cancel()
		}
		s.pass(30 * time.Minute)
	}},
	{"one node runs another version for good", func(s *stage) {
		s.leave(s.nodes[0])
		s.start("v2")
		s.pass(90 * time.Minute)
	}},
}

// fires returns the labels of the alerts that fire at some time with these series.
func fires(t *testing.T, series map[string][]string) (all []map[string]string) {
	t.Helper()
	testenv.Program(t, "promtool", "prometheus")
	path, err := filepath.Abs(rules)
	if err != nil {
		t.Fatal(err)
	}
	type input struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	}
	var inputs []input
	scrapes := 0
	for _, name := range slices.Sorted(maps.Keys(series)) {
		inputs = append(inputs, input{name, strings.Join(series[name], " ")})
		scrapes = len(series[name])
	}
	whole := time.Duration(scrapes) * scrapeEvery
	const nothing = `{alertname="nothing"}`
	file, err := yaml.Marshal(map[string]any{
		"rule_files": []string{path}, "evaluation_interval": scrapeEvery.String(),
		"tests": []any{map[string]any{
			"interval": scrapeEvery.String(), "input_series": inputs,
			"promql_expr_test": []any{map[string]any{
				"expr": fmt.Sprintf(`count by (alertname, job, instance, machine, sequencer) `+
					`(count_over_time(ALERTS{alertstate="firing"}[%s]))`, whole),
				"eval_time":   whole.String(),
				"exp_samples": []any{map[string]any{"labels": nothing, "value": 1}}, // so that it prints what there is
			}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(t.TempDir(), "staged.yaml")
	if err := os.WriteFile(at, file, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("promtool", "test", "rules", at).CombinedOutput()
	_, got, ok := strings.Cut(string(out), "got:")
	if err == nil || !ok {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	for _, alert := range regexp.MustCompile(`\{[^}]*\}`).FindAllString(got, -1) {
		labels := map[string]string{}
		for _, m := range regexp.MustCompile(`(\w+)="([^"]*)"`).FindAllStringSubmatch(alert, -1) {
			labels[m[1]] = m[2]
		}
		all = append(all, labels)
	}
	return all
}

// mutes are the inhibition rules for Alertmanager.
type mutes []struct {
	Source []string `yaml:"source_matchers"`
	Target []string `yaml:"target_matchers"`
	Equal  []string `yaml:"equal"`
}

// matcher is the form of all their matchers.
var matcher = regexp.MustCompile(`^alertname (=|=~) "?([^"]+)"?$`)

func matches(t *testing.T, matchers []string, labels map[string]string) bool {
	t.Helper()
	for _, text := range matchers {
		m := matcher.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("the matcher is %s", text)
		}
		if !regexp.MustCompile("^(?:" + m[2] + ")$").MatchString(labels["alertname"]) {
			return false
		}
	}
	return true
}

// mute reports whether an alert is muted by one of those that fire, as Alertmanager does it.
func (all mutes) mute(t *testing.T, target map[string]string, firing []map[string]string) bool {
	t.Helper()
	for _, rule := range all {
		if !matches(t, rule.Target, target) {
			continue
		}
		for _, source := range firing {
			equal := func(label string) bool { return source[label] == target[label] }
			if matches(t, rule.Source, source) && !slices.ContainsFunc(rule.Equal, func(l string) bool {
				return !equal(l)
			}) {
				return true
			}
		}
	}
	return false
}

// row returns the row of the runbook's table for what fires.
func row(t *testing.T, name string, firing []map[string]string) string {
	t.Helper()
	var config struct {
		Rules mutes `yaml:"inhibit_rules"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, alertmanager)), &config); err != nil || len(config.Rules) < 5 {
		t.Fatalf("%s: %v, %d rules", alertmanager, err, len(config.Rules))
	}
	var counts [2]map[string]int
	for i := range counts {
		counts[i] = map[string]int{}
	}
	for _, alert := range firing {
		i := 0
		if config.Rules.mute(t, alert, firing) {
			i = 1
		}
		counts[i][alert["alertname"]]++
	}
	var columns [2]string
	for i, count := range counts {
		var all []string
		for _, name := range slices.Sorted(maps.Keys(count)) {
			text := "`" + name + "`"
			if n := count[name]; n > 1 {
				text = fmt.Sprintf("%d %s", n, text)
			}
			all = append(all, text)
		}
		columns[i] = strings.Join(all, ", ")
	}
	return strings.ReplaceAll(fmt.Sprintf("| %s | %s | %s |\n", name, columns[0], columns[1]), "  ", " ")
}

// Each fault has exactly the alerts of the table, and the table has no other faults.
func TestFaults(t *testing.T) {
	text := readFile(t, runbook)
	_, rest, _ := strings.Cut(text, "\n| fault | alerts | muted |\n|---|---|---|\n")
	table, _, _ := strings.Cut(rest, "\n\n")
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(table, -1) {
		names = append(names, m[1])
	}
	var want []string
	for _, f := range faults {
		want = append(want, f.name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("the table has the faults %q, want %q", names, want)
	}
	testenv.Slow(t)
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			if want := row(t, f.name, fires(t, staging(t, f.stage))); !strings.Contains(table+"\n", want) {
				t.Errorf("%s does not say\n%s", runbook, want)
			}
		})
	}
}
