//go:build unix

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/testenv"
)

// Clients that are generated from the description, with the commands of docs/clients.md, take as many different IDs as
// they are asked for, from nodes whose JSON has numbers and from nodes whose JSON has strings.
func TestGeneratedClients(t *testing.T) {
	testenv.Slow(t)
	if *driverNames != "all" {
		t.Skip("installs and runs six generators: only with -drivers all")
	}
	testenv.Program(t, "curl", "curl")
	node := testenv.Program(t, "node", "nodejs")
	wantNode(t, node, 20, 19)
	modules := fromNPM(t, "openapi")
	// Not in parallel: it compiles for a minute, and others measure how long faults last.

	dir := t.TempDir()
	err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "openapi")))
	if err == nil {
		err = os.Symlink(modules, filepath.Join(dir, "node_modules"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runIn(t, dir, "go", "mod", "download"); err != nil {
		t.Skipf("the modules of the generators can't be had here: %v", err)
	}
	urls := map[string]string{}
	for _, ids := range []string{"number", "string"} {
		n := serve(t, ids, "--json-ids="+ids, "--data-dir="+t.TempDir())
		eventually(t, func() error {
			_, err := exchange(caller, http.MethodGet, n.url+"/readyz", "", nil)
			return err
		})
		urls[ids] = n.url
	}

	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "clients.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Generated clients\n")
	_, block, _ := strings.Cut(section, "```sh\n")
	commands, _, _ := strings.Cut(block, "```\n")
	for _, one := range []string{
		strings.ReplaceAll(commands, "http://localhost:8080", urls["number"]),
		"npx tsc",
		"npx esbuild take.ts --bundle --platform=node --outfile=take.js",
		"go build -trimpath -o take .", // the same wherever it is built, and so built once
	} {
		if _, err := runIn(t, dir, "sh", "-euxc", one); err != nil {
			t.Fatal(err)
		}
	}
	for ids, url := range urls {
		typescript, err := runIn(t, dir, node, "take.js", url, ids)
		if err != nil {
			t.Fatal(err)
		}
		golang, err := runIn(t, dir, "./take", url)
		if err != nil {
			t.Fatal(err)
		}
		taken, different := printed(t, typescript+golang)
		for _, generator := range []string{
			"openapi-typescript", "hey-api", "swagger-typescript-api", "orval",
			"oapi-codegen", "ogen",
		} {
			if n, all := len(different[generator]), taken[generator]; n != 5000 || all != 5000 {
				t.Errorf("%s, where JSON has a %s: %d different IDs of %d, want 5000", generator, ids, n, all)
			}
		}
	}
}

// wantNode skips a test where Node.js is older than the generators need.
func wantNode(t *testing.T, node string, major, minor int) {
	t.Helper()
	out, err := exec.Command(node, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	var haveMajor, haveMinor int
	if _, err := fmt.Sscanf(string(out), "v%d.%d", &haveMajor, &haveMinor); err != nil {
		t.Fatalf("node --version is %q: %v", out, err)
	}
	if haveMajor < major || haveMajor == major && haveMinor < minor {
		t.Skipf("Node.js is %s (Debian 12 has 18): the generators need %d.%d",
			strings.TrimSpace(string(out)), major, minor)
	}
}

// runIn runs a command in a folder, for ten minutes at most, and returns its output. npx runs only what is installed.
func runIn(t *testing.T, dir, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "npm_config_offline=true", "npm_config_yes=false",
		"npm_config_update_notifier=false")
	cmd.WaitDelay = time.Second
	var out, failed strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &failed
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", name, err, tail(out.String()), tail(failed.String()))
	}
	return out.String(), nil
}

// tail is the end of a text, where what went wrong is said.
func tail(text string) string { return text[max(0, len(text)-4000):] }
