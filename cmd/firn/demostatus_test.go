package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestBrief(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Hour: "+1h", -time.Hour: "-1h", 90 * time.Minute: "+1h30m", 10 * time.Minute: "+10m", 10 * time.Second: "+10s",
		100 * time.Second: "+1m40s", time.Hour + 5*time.Second: "+1h0m5s", 0: "+0s", 6667 * time.Millisecond: "+6.667s", 20 * time.Hour: "+20h",
	} {
		if got := signed(d); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
}

func TestQuoted(t *testing.T) {
	for word, want := range map[string]string{
		"/usr/bin/firn": "/usr/bin/firn", "/tmp/a b/firn": "'/tmp/a b/firn'", "/it's/firn": `'/it'\''s/firn'`, "": "''",
	} {
		if got := quoted(word); got != want {
			t.Errorf("%q is quoted %s, want %s", word, got, want)
		}
	}
}

// The program calls itself by its name only where a shell would find this very program under it.
func TestSelf(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "firn"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", other)
	if got := p.self(); got != quoted(self) {
		t.Errorf("where firn is another program it calls itself %s, want %s", got, quoted(self))
	}
	same := t.TempDir()
	if err := os.Symlink(self, filepath.Join(same, "firn")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", same)
	if got := p.self(); got != "firn" {
		t.Errorf("where firn is this program it calls itself %s, want firn", got)
	}
}

// What go run has built is told from other programs, when it was built just now and when it was kept.
func TestBuiltByGoRun(t *testing.T) {
	for _, path := range []string{"/usr/bin/firn", "/home/go-builder/exec/firn"} {
		if builtByGoRun(path) {
			t.Errorf("%s is taken for one that go run has built", path)
		}
	}
	source := filepath.Join(t.TempDir(), "where.go")
	const text = "package main\n\nimport \"os\"\n\nfunc main() { path, _ := os.Executable(); print(path) }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		out, err := exec.Command("go", "run", source).CombinedOutput()
		if path := string(out); err != nil || !builtByGoRun(path) {
			t.Errorf("%q is not taken for one that go run has built: %v", path, err)
		}
	}
}

func TestChanges(t *testing.T) {
	id := int64(7)
	status := func(members int, states ...string) (s demoStatus) {
		s.Members = members
		for i, state := range states {
			s.Nodes = append(s.Nodes, demoNodeStatus{Node: i + 1, State: state, NodeID: &id, Why: "because"})
		}
		return s
	}
	for _, tt := range []struct {
		before, now demoStatus
		want        []string
	}{
		{status(2, demoReady, demoReady), status(2, demoReady, demoReady), nil},
		{status(2, demoReady, demoReady), status(1, demoReady, demoDown), []string{"the cluster has 1 member, and had 2"}},
		{status(1, demoReady, demoNotReady), status(2, demoReady, demoReady), []string{"the cluster has 2 members, and had 1", "node 2 is ready, with node ID 7"}},
		{status(2, demoReady, demoReady), status(2, demoNotReady, demoPaused), []string{"node 1 is not ready: because"}},
		{status(2, demoReady, demoReady), status(0, demoDown, demoDown), nil}, // nobody knows
	} {
		if got := tt.now.changes(tt.before); !slices.Equal(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
