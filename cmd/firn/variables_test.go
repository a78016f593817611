package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/ops/setting"
)

// Nothing is said of a variable that another command reads, that others set, or that is empty.
func TestVariablesThatAreKnown(t *testing.T) {
	env := map[string]string{
		"FIRN_ADMIN": "x", "FIRN_SERVER": "x", "FIRN_TOKEN_FILE": "x", "FIRN_CA": "x", "FIRN_CERT": "x",
		"FIRN_KEY": "x", "FIRNS": "x", "FIRN_SERVR": "",
		"FIRN_SERVICE_HOST": "10.0.0.1", "FIRN_SERVICE_PORT": "8080", "FIRN_SERVICE_PORT_HTTP": "8080",
		"FIRN_PORT":          "tcp://10.0.0.1:8080",
		"FIRN_PORT_8080_TCP": "tcp://10.0.0.1:8080", "FIRN_PORT_8080_TCP_PROTO": "tcp",
		"FIRN_PORT_8080_TCP_PORT": "8080", "FIRN_PORT_8080_TCP_ADDR": "10.0.0.1",
		"FIRN_ADMIN_SERVICE_HOST": "10.0.0.1", "FIRN_ADMIN_PORT": "tcp://10.0.0.1:9080", "FIRN_TESTS": "all",
		"FIRN_TEST_CLOCK": "1",
	}
	serveFlags().VisitAll(func(f *pflag.Flag) { env[setting.Variable(f.Name)] = "x" })
	if found := (&program{env: env}).unknownVariables(); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// Each command that reads variables says once, and on standard error alone, which ones no command reads.
func TestUnknownVariables(t *testing.T) {
	for _, command := range []string{
		"id --server http://127.0.0.1:1", "id --local --json",
		"bench --server http://127.0.0.1:1 --json --duration 1ms", "decode --json 1234",
		"decode --sequencer orders --server http://127.0.0.1:1 1234", "sequencer create orders --dry-run --json",
		"sequencer create orders --json",
		"sequencer list --json", "cluster status --json", "quorum status --json", "demo status", "health",
	} {
		for _, tt := range []struct{ variable, want string }{
			{"FIRN_SERVR=x", "FIRN_SERVR is not used; did you mean FIRN_SERVER?"},
			{"FIRN_HTTP_ADR=x", "FIRN_HTTP_ADR is not used; did you mean FIRN_HTTP_ADDR?"},
			{"FIRN_SNOWMAN=x", "FIRN_SNOWMAN is not used; remove it, or correct its name"},
			{"FIRN_HTTP_PORT=8080", "FIRN_HTTP_PORT is not used; remove it, or correct its name"},
		} {
			var stdout, stderr bytes.Buffer
			env := []string{tt.variable, "FIRN_ADMIN=http://127.0.0.1:1", "FIRN_HTTP_ADDR=127.0.0.1:1"}
			status := run(t.Context(), strings.Fields(command), env, nil, &stdout, &stderr)
			if strings.Count(stderr.String(), "firn: warning: "+tt.want+"\n") != 1 ||
				strings.Count(stderr.String(), "is not used") != 1 {
				t.Errorf("%s firn %s: %q; want %q once", tt.variable, command, &stderr, tt.want)
			}
			if status == statusOK && strings.Contains(command, "--json") && !json.Valid(stdout.Bytes()) {
				t.Errorf("%s firn %s: %q is not JSON", tt.variable, command, &stdout)
			}
		}
	}
}
