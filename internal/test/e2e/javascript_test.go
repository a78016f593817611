//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/testenv"
)

// A program in JavaScript gets as many different IDs as it takes, by each way that is documented for it, with the
// libraries that everybody has. Where it reads numbers it does not, unless the layout is exact there: so these ways
// show something.
func TestJavaScriptLosesNoDigit(t *testing.T) {
	testenv.Slow(t)
	node := testenv.Program(t, "node", "nodejs")
	modules := fromNPM(t, "javascript")
	t.Parallel()
	type addresses struct {
		HTTP  string `json:"http"`
		Redis string `json:"redis"`
	}
	nodes := map[string]addresses{}
	for name, flags := range map[string][]string{
		"plain":      {},
		"texts":      {"--json-ids=string", "--compat=leaf"},
		"javascript": {"--layout=javascript"},
	} {
		n := serve(t, name, append(flags, "--data-dir="+t.TempDir(), "--redis-addr=127.0.0.1:0")...)
		for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			_, err := exchange(caller, http.MethodGet, n.url+"/readyz", "", nil)
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is not ready: %v\n%s", name, err, n.log)
			}
		}
		nodes[name] = addresses{n.url, n.listens("redis_addr")}
	}
	argument, err := json.Marshal(nodes)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, "testdata/javascript/ids.js", string(argument))
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, failed.String())
	}
	taken, different := printed(t, out.String())
	const want = 5000
	rounded := 0
	for way, ids := range different {
		if taken[way] != want {
			t.Errorf("%s: %d IDs, want %d", way, taken[way], want)
		}
		if strings.HasPrefix(way, "rounded: ") {
			rounded++
			if len(ids) == want {
				t.Errorf("%s rounds no ID: then the other ways prove nothing", way)
			}
		} else if len(ids) != want {
			t.Errorf("%s: %d different IDs, want %d", way, len(ids), want)
		}
		t.Logf("%s: %d different IDs of %d", way, len(ids), taken[way])
	}
	if len(different) != 24 || rounded != 4 {
		t.Errorf("%d ways, of which %d round; want 24 and 4", len(different), rounded)
	}
}

// fromNPM returns the folder with the packages of a folder of testdata. Where npm installs nothing, the test is
// skipped.
func fromNPM(t *testing.T, folder string) string {
	t.Helper()
	testenv.Program(t, "npm", "npm")
	if out, err := exec.Command("testdata/install", folder).CombinedOutput(); err != nil {
		t.Skipf("npm installs nothing here: %v\n%s", err, out)
	}
	modules, err := filepath.Abs(filepath.Join("..", "..", "..", ".cache", folder, "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	return modules
}

// printed reads lines that have a way to take IDs, a tab and an ID: how many were taken in each way, and which.
func printed(t *testing.T, out string) (taken map[string]int, different map[string]map[int64]bool) {
	t.Helper()
	taken, different = map[string]int{}, map[string]map[int64]bool{}
	for line := range strings.Lines(out) {
		way, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatalf("%s came to %q: %v", way, text, err)
		}
		if different[way] == nil {
			different[way] = map[int64]bool{}
		}
		taken[way]++
		different[way][id] = true
	}
	return taken, different
}
