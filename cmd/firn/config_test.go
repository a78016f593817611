package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/ops/setting"
)

// configure reads options of firn serve as the command does.
func configure(t testing.TB, args []string, env map[string]string, file string) (*serveOptions,
	setting.Sources, error,
) {
	t.Helper()
	var o serveOptions
	c := &cobra.Command{}
	o.add(c, c.Flags())
	if err := c.Flags().Parse(args); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "firn.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	from := setting.Sources{}
	if err := from.FromEnvironment(c.Flags(), env); err != nil {
		return &o, from, err
	}
	return &o, from, from.FromFile(c.Flags(), path)
}

// Flags go before variables, these before the file, and that before the default: each alone, and
// with all below it.
func TestPrecedence(t *testing.T) {
	var args []string
	var file string
	env := map[string]string{}
	for _, step := range []struct {
		set  func()
		want time.Duration
	}{
		{func() {}, 30 * time.Second},
		{func() { file = "window: 1m" }, time.Minute},
		{func() { env["FIRN_WINDOW"] = "2m" }, 2 * time.Minute},
		{func() { args = []string{"--window", "3m"} }, 3 * time.Minute},
		{func() { env = nil }, 3 * time.Minute},
		{func() { file = "" }, 3 * time.Minute},
		{func() { args, env = nil, map[string]string{"FIRN_WINDOW": "2m"} }, 2 * time.Minute},
		{func() { env["FIRN_WINDOW"] = "" }, 30 * time.Second},
	} {
		step.set()
		o, _, err := configure(t, args, env, file)
		if err != nil || o.Window != step.want {
			t.Errorf("flags %v, environment %v, file %q: window %v, %v; want %v", args, env, file, o.Window,
				err, step.want)
		}
	}
}

// Every flag can be a variable and a key, whatever its kind.
func TestEveryFlag(t *testing.T) {
	samples := map[string][2]string{ // as the environment and as YAML has them
		"address": {":1", `":1"`}, "store": {"etcd://h:1", "etcd://h:1"}, "directory": {"d", "d"},
		setting.KindList: {"a:1,b:2", "[a:1, 'b:2']"}, "file": {"f", "f"},
		"name": {"n", "n"}, "text": {"1", "'1'"}, "path": {"/p", "/p"}, "layout": {"twitter", "twitter"},
		"slice": {"2/8", "2/8"},
		"time":  {"2020-01-01", "2020-01-01"}, setting.KindNumber: {"3", "3"}, setting.KindBool: {"true", "true"},
		"duration": {"5s", "5s"},
		"format":   {"json", "json"}, "mode": {"0660", "'0660'"}, "level": {"warn", "warn"}, "choice": {"wait", "wait"},
		"type": {"string", "string"}, "service": {"leaf", "leaf"}, "URL": {"http://h:1", "http://h:1"},
		setting.KindShare: {"0.5", "0.5"}, setting.KindNumbers: {"7,orders=9", "[7, orders=9]"},
	}
	var all serveOptions
	c := &cobra.Command{}
	all.add(c, c.Flags())
	count := 0
	c.Flags().VisitAll(func(f *pflag.Flag) {
		count++
		sample, ok := samples[f.Value.Type()]
		if !ok {
			t.Fatalf("--%s is of the kind %s, which this test does not know", f.Name, f.Value.Type())
		}
		_, from, err := configure(t, nil, map[string]string{setting.Variable(f.Name): sample[0]}, "")
		if err != nil || from.Of(f.Name) != setting.Variable(f.Name) {
			t.Errorf("%s=%s: %v, from %s", setting.Variable(f.Name), sample[0], err, from.Of(f.Name))
		}
		_, from, err = configure(t, nil, nil, f.Name+": "+sample[1])
		if f.Name == "config" {
			if err == nil {
				t.Error("a config file names another")
			}
			return
		}
		if err != nil || !strings.HasSuffix(from.Of(f.Name), "firn.yaml: line 1: "+f.Name) {
			t.Errorf("%s: %s: %v, from %s", f.Name, sample[1], err, from.Of(f.Name))
		}
	})
	if count < 20 {
		t.Errorf("only %d flags were tried", count)
	}
}

// Flag, variable and file choose node IDs alike; a flag may be repeated.
func TestChosenNodeIDs(t *testing.T) {
	both := map[string]int64{"default": 7, "orders": 9}
	for _, tt := range []struct {
		args []string
		env  string
		file string
		want map[string]int64
	}{
		{want: nil},
		{args: []string{"--node", "7"}, want: map[string]int64{"default": 7}},
		{args: []string{"--node", "orders=0"}, want: map[string]int64{"orders": 0}},
		{args: []string{"--node", "7,orders=9"}, want: both},
		{args: []string{"--node=orders=9, default=7"}, want: both},
		{args: []string{"--node=7", "--node=orders=9"}, want: both},
		{args: []string{"--node=7", "--node=a=1,b=2", "--node=3=4"}, want: map[string]int64{
			"default": 7, "a": 1, "b": 2, "3": 4,
		}},
		{env: "7", want: map[string]int64{"default": 7}},
		{env: "7,orders=9", want: both},
		{file: "node: 7", want: map[string]int64{"default": 7}},
		{file: "node: '7'", want: map[string]int64{"default": 7}},
		{file: "node: orders=9", want: map[string]int64{"orders": 9}},
		{file: "node: 7,orders=9", want: both},
		{file: "node: [orders=9, 7]", want: both},
		{file: "node:\n- 7\n- orders=9", want: both},
		{args: []string{"--node=a=1"}, env: "b=2", file: "node: 3", want: map[string]int64{"a": 1}},
		{env: "b=2", file: "node: 3", want: map[string]int64{"b": 2}},
	} {
		o, _, err := configure(t, tt.args, map[string]string{"FIRN_NODE": tt.env}, tt.file)
		if err != nil || !maps.Equal(o.Nodes, tt.want) {
			t.Errorf("%v, FIRN_NODE=%s, %q: %v, %v; want %v", tt.args, tt.env, tt.file, o.Nodes, err, tt.want)
		}
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{""}, `"" is not right; want a node ID from 0, such as 7, or orders=7 for the sequencer orders`},
		{[]string{"-1"}, `"-1" is not right; want a node ID from 0`},
		{[]string{"orders=-1"}, `"orders=-1" is not right`},
		{[]string{"orders"}, `"orders" is not right`},
		{[]string{"orders="}, `"orders=" is not right`},
		{[]string{"orders=1=2"}, `"orders=1=2" is not right`},
		{[]string{"7,"}, `"" is not right`},
		{[]string{"9223372036854775808"}, `"9223372036854775808" is not right`},
		{[]string{"Orders=9"}, `the sequencer's name "Orders"; want 1 to 100 of a-z`},
		{[]string{"..=9"}, `the sequencer's name ".."`},
		{[]string{"=9"}, `the sequencer's name ""`},
		{[]string{"7,8"}, `the sequencer "default" has two node IDs, 7 and 8; want one`},
		{[]string{"7,default=8"}, `the sequencer "default" has two node IDs, 7 and 8; want one`},
		{[]string{"orders=9", "orders=9"}, `the sequencer "orders" has two node IDs, 9 and 9; want one`},
	} {
		var err error
		flags := serveFlags()
		for _, arg := range tt.args {
			if err == nil {
				err = flags.Set("node", arg)
			}
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("--node %q: %v; want an error with %q", tt.args, err, tt.want)
		}
	}
}

// What is wrong in a file is told with its line and key.
func TestStrictFile(t *testing.T) {
	for _, tt := range []struct{ file, want string }{
		{"", ""},
		{"# nothing\n", ""},
		{"---\nnull\n", ""},
		{"epoch: 2020-01-01", ""},
		{"etcd: a:1,b:2", ""},
		{"etcd: &e [a:1]", ""},

		{"\nmax-calls: five", `line 2: max-calls: it is the string "five"; want a whole number`},
		{"max-calls: '5'", `max-calls: it is the string "5"; want a whole number`},
		{"max-calls: 1.5", "max-calls: it is 1.5; want a whole number"},
		{"max-calls: 0x10", `max-calls: "0x10" is not right`},
		{"max-calls: -1", `max-calls: "-1" is not right; want a whole number from 1`},
		{"max-calls:", "max-calls: it is empty; want a whole number"},
		{"node: 0x10", `node: "0x10" is not right`},
		{"node: 1.5", "node: it is 1.5; want a whole number, or a list such as [7, orders=9]"},
		{"node:", "node: it is empty; want a whole number, or a list"},
		{"node: {orders: 9}", "node: it is a mapping; want a whole number, or a list"},
		{"node: [7, [orders=9]]", "node: it is a list; want a whole number"},
		{"node: []", `node: "" is not right`},
		{"wait: 1", "wait: it is 1; want true or false"},
		{"wait: yes", `wait: it is the string "yes"; want true or false`},
		{"if-ids-are-ahead: stop", `if-ids-are-ahead: "stop" is not right; want one of [go-on wait]`},
		{"ttl: 20", "ttl: it is 20; want a string"},
		{"ttl: [20s]", "ttl: it is a list; want a string"},
		{"ttl: {s: 20}", "ttl: it is a mapping; want a string"},
		{"ttl: 0s", "ttl: 0s is too short; want at least 1s"},
		{"etcd: [1]", "etcd: it is 1; want a string"},
		{"etcd: []", `etcd: "" has an empty item`},
		{"nodes: 5", "line 1: nodes: there is no such key; did you mean node?"},
		{"machines: 5", "line 1: machines: there is no such key; the keys are the flags of firn serve"},
		{"config: other.yaml", "config: there is no such key"},
		{"help: true", "help: there is no such key"},
		{"<<: {node: 5}", "<<: there is no such key"},
		{"{node: 5, node: 5}", "node is there already"},
		{"- node", `line 1: want lines such as "http-addr: :8080"`},
		{"just text", "want lines such as"},
		{"node: 5\n---\nnode: 6", "more than one document"},
		{"node: [", "yaml: "},
		{"node: *unknown", "yaml: "},
	} {
		_, _, err := configure(t, nil, nil, tt.file)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%q: %v", tt.file, err)
		case tt.want != "" &&
			(err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "firn.yaml")):
			t.Errorf("%q: %v, want an error with %q", tt.file, err, tt.want)
		}
	}
}
