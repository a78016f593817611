package tidy

import (
	"slices"
	"strings"
	"testing"
)

// A floor holds rooms: packages, or with a / at the end all packages below a folder. The longest name of a room that
// fits decides where a package is.
type floor struct {
	name, holds string
	rooms       []string
}

// floors are the house, from the top. A package may import what is on its own floor and on those below it.
var floors = []floor{
	{"command", "what people start", []string{"cmd/", "deploy/", "examples/"}},
	{"operations", "what people run beside a node", []string{"internal/ops/"}},
	{"service", "what answers calls", []string{"internal/service/"}},
	{"core", "what makes IDs unique", []string{"member", "internal/core/"}},
	{"stores", "clients of coordination services, and of a firn service", []string{"store/", "client"}},
	{"base", "small helpers of several floors", []string{"internal/base/"}},
	{"library", "IDs, and what others agree on", []string{".", "sequencer", "store", "api/firnv1"}},
}

// tests may import every floor, and only tests import them.
var tests = floor{"tests", "what only tests import", []string{"internal/test/", "store/storetest", "formal"}}

// house is all of it.
var house = append(slices.Clone(floors), tests)

// exceptions are the imports that point up, each with its reason.
var exceptions = map[[2]string]string{
	{"store/pgstore", "internal/core/peer"}: "its tests have members give IDs while a replica is promoted that " +
		"was behind",
	{"store/pgstore", "internal/core/cluster"}: "for the definition of their sequencer",
}

// thirdParty are the modules, or folders of one, that each room may import. What only tests need is in testModules.
var thirdParty = map[string][]string{
	"api/firnv1":                    {"google.golang.org/"},
	"cmd/firn":                      {"github.com/spf13/", "go.yaml.in/yaml/v3"},
	"examples/orders":               {"github.com/jackc/pgx/v5/pgconn"},
	"internal/ops/doctor":           {"golang.org/x/sys/unix"},
	"internal/ops/load":             {"github.com/HdrHistogram/hdrhistogram-go", "google.golang.org/"},
	"internal/ops/manpage":          {"github.com/spf13/"},
	"internal/ops/setting":          {"github.com/spf13/pflag", "go.yaml.in/yaml/v3"},
	"internal/service/admit/auth":   {"golang.org/x/time/rate", "go.yaml.in/yaml/v3"},
	"internal/service/admit/conns":  {"golang.org/x/sys/unix"},
	"internal/service/admit/limits": {"golang.org/x/sys/unix"},
	"internal/service/codes":        {"google.golang.org/grpc/codes"},
	"internal/service/grpcapi":      {"google.golang.org/"},
	"internal/service/metrics":      {"github.com/prometheus/client_golang/"},
	"internal/service/node": {
		"github.com/coreos/go-systemd/v22/", "go.opentelemetry.io/", "google.golang.org/grpc",
	},
	"internal/base/space": {"golang.org/x/sys/unix"},
	"store/etcdstore": {
		"go.etcd.io/etcd/api/v3", "go.etcd.io/etcd/client/v3", "go.uber.org/zap",
		"google.golang.org/grpc",
	},
	"store/pgstore":              {"github.com/jackc/pgx/v5"},
	"store/quorum":               {"go.etcd.io/", "google.golang.org/grpc"},
	"store/quorum/internal/port": {"golang.org/x/sys/unix"},
	"store/internal/etcdserver": {
		"go.etcd.io/", "go.uber.org/zap", "google.golang.org/grpc",
		"google.golang.org/protobuf/proto",
	},
	"store/internal/place": {"golang.org/x/sys/unix"},
	"store/storetest":      {"github.com/anishathalye/porcupine"},
}

// testModules may be imported by any test but those of the library.
var testModules = []string{
	"github.com/anishathalye/porcupine", "github.com/chromedp/", "github.com/getkin/kin-openapi",
	"github.com/jackc/pgx/v5/pgproto3",
	"github.com/prometheus/client_golang/",
	"github.com/redis/go-redis/v9", "github.com/rogpeppe/go-internal/testscript",
	"go.etcd.io/etcd/client/pkg/v3/transport",
	"go.uber.org/goleak", "go.yaml.in/yaml/v3", "golang.org/x/sys/unix", "google.golang.org/",
}

// floorOf returns the floor of a package, that of the tests, or the zero value.
func floorOf(pkg string) (on floor) {
	best := ""
	for _, f := range house {
		for _, r := range f.rooms {
			if within(pkg, r) && len(r) > len(best) {
				best, on = r, f
			}
		}
	}
	return on
}

// depth is how many floors are above that of a package, and -1 if it is on none, or for tests.
func depth(pkg string) int {
	return slices.IndexFunc(floors, func(f floor) bool { return f.name == floorOf(pkg).name })
}

func forTests(pkg string) bool { return floorOf(pkg).name == tests.name }

func within(pkg, room string) bool {
	return pkg == room || strings.HasSuffix(room, "/") && strings.HasPrefix(pkg, room)
}

func TestImportsPointDown(t *testing.T) {
	used := map[[2]string]bool{}
	for _, f := range sources(t) {
		from := depth(f.room)
		if from < 0 && !forTests(f.room) {
			t.Errorf("%s is on no floor", f.name)
		}
		for _, i := range f.parsed.Imports {
			name := strings.Trim(i.Path.Value, `"`)
			pkg, ours := strings.CutPrefix(name, module)
			if pkg = strings.TrimPrefix(pkg, "/"); pkg == "" {
				pkg = "."
			}
			switch first, _, _ := strings.Cut(name, "/"); {
			case !strings.Contains(first, "."): // the standard library
			case !ours:
				if !mayImport(f, name) {
					t.Errorf("%s imports %s, which %s may not", f.name, name, f.room)
				}
			case forTests(pkg):
				if !f.isTest() && !forTests(f.room) {
					t.Errorf("%s imports %s, which is for tests", f.name, pkg)
				}
			case from > depth(pkg) && !forTests(f.room):
				arrow := [2]string{f.room, pkg}
				if used[arrow] = true; exceptions[arrow] == "" {
					t.Errorf("%s (%s) imports %s, which is above it (%s)", f.name, floors[from].name, pkg,
						floors[depth(pkg)].name)
				}
			}
		}
	}
	for arrow, why := range exceptions {
		if !used[arrow] {
			t.Errorf("%s does not import %s (%s): it is no exception any more", arrow[0], arrow[1], why)
		}
	}
}

// mayImport tells whether a file may import a package of a third party.
func mayImport(f file, name string) bool {
	allowed := thirdParty[f.room]
	if f.isTest() && f.room != "." || forTests(f.room) {
		allowed = append(allowed[:len(allowed):len(allowed)], testModules...)
	}
	return slices.ContainsFunc(allowed, func(a string) bool {
		return within(name, a) || strings.HasPrefix(name, a+"/")
	})
}
