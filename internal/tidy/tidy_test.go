// Package tidy holds the house rules, as tests: which room may import what, and that every package
// says in one place what it is for.
package tidy

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/firn-id/firn"
	root   = "../.."
)

// room is what a folder may import beside the standard library. A name that ends in / stands for
// everything below it. Imports only ever point down the house.
type room struct {
	code  []string
	tests []string // in addition, with internal/testenv
}

var rooms = map[string]room{
	".":                                  {},
	"store":                              {},
	"store/storetest":                    {code: []string{"store", "github.com/anishathalye/porcupine"}, tests: []string{"store/memstore"}},
	"store/internal/clienttls":           {code: []string{"internal/files"}},
	"store/internal/answers":             {code: []string{"store"}},
	"store/internal/appends":             {code: []string{"store", "internal/retry"}},
	"store/internal/place":               {code: []string{"golang.org/x/sys/unix"}},
	"store/internal/indoubt":             {code: []string{"store", "internal/proxytest"}},
	"store/memstore":                     {code: []string{"store", "store/internal/appends", "internal/retry"}, tests: []string{"store/storetest"}},
	"store/etcdstore":                    {code: []string{"store", "store/internal/answers", "store/internal/appends", "store/internal/clienttls", "go.etcd.io/etcd/api/v3", "go.etcd.io/etcd/client/v3", "go.uber.org/zap", "google.golang.org/grpc", "internal/retry"}, tests: []string{"google.golang.org/protobuf/proto", "internal/certtest", "store/internal/indoubt", "store/storetest", "internal/etcdtest", "internal/proxytest", "go.uber.org/goleak"}},
	"store/pgstore":                      {code: []string{"internal/files", "internal/fresh", "internal/floor", "internal/retry", "store", "store/internal/answers", "store/internal/appends", "github.com/jackc/pgx/v5/pgconn"}, tests: []string{"cluster", "github.com/jackc/pgx/v5/pgproto3", "internal/certtest", "internal/dbtest", "internal/logtest", "internal/proxytest", "member", "store/internal/indoubt", "store/storetest", "go.uber.org/goleak", "."}},
	"store/zkstore":                      {code: []string{"internal/files", "internal/fresh", "internal/retry", "store", "store/internal/answers", "store/internal/appends", "store/internal/clienttls", "store/zkstore/internal/wire"}, tests: []string{"internal/certtest", "internal/proxytest", "internal/zktest", "store/internal/indoubt", "store/storetest", "go.uber.org/goleak"}},
	"store/zkstore/internal/wire":        {code: []string{"internal/fresh", "store/internal/answers"}, tests: []string{"internal/proxytest", "internal/zktest", "go.uber.org/goleak"}},
	"store/etcdembed":                    {code: []string{"store/etcdstore", "store/internal/etcdserver", "store/internal/place", "go.etcd.io/", "google.golang.org/grpc"}, tests: []string{"store", "store/storetest", "go.uber.org/goleak"}},
	"store/internal/etcdserver":          {code: []string{"internal/space", "internal/files", "go.etcd.io/", "go.uber.org/zap", "google.golang.org/grpc", "google.golang.org/protobuf/proto"}, tests: []string{"store", "store/etcdstore", "go.uber.org/goleak"}},
	"store/quorum":                       {code: []string{"internal/space", "internal/files", "internal/fresh", "internal/clusterid", "internal/floor", "internal/retry", "store", "store/etcdstore", "store/internal/etcdserver", "store/internal/place", "store/quorum/internal/", "go.etcd.io/", "google.golang.org/grpc"}, tests: []string{"internal/certtest", "internal/proxytest", "store/etcdembed", "store/storetest", "internal/logtest", "go.uber.org/goleak"}},
	"store/quorum/internal/plan":         {},
	"store/quorum/internal/keyring":      {code: []string{"internal/fresh", "internal/files"}, tests: []string{"internal/certtest", "go.etcd.io/etcd/client/pkg/v3/transport"}},
	"store/quorum/internal/port":         {code: []string{"internal/server/conns", "internal/throttle", "store/quorum/internal/keyring", "golang.org/x/sys/unix"}, tests: []string{"internal/logtest", "go.uber.org/goleak"}},
	"internal/space":                     {code: []string{"golang.org/x/sys/unix"}},
	"internal/floor":                     {code: []string{"store"}},
	"internal/fence":                     {code: []string{"internal/fresh", "internal/floor", "internal/journal", "internal/spread", "store", "internal/retry"}, tests: []string{".", "store/memstore"}},
	"internal/journal":                   {},
	"internal/attachment":                {},
	"internal/fresh":                     {},
	"internal/clocks":                    {code: []string{"internal/floor"}},
	"internal/spread":                    {},
	"cluster":                            {code: []string{"."}},
	"member":                             {code: []string{"internal/fresh", ".", "cluster", "internal/attachment", "internal/clocks", "internal/clusterid", "internal/fence", "internal/floor", "internal/journal", "internal/spread", "store", "internal/retry"}, tests: []string{"store/memstore"}},
	"internal/server/auth":               {code: []string{"internal/fresh", "internal/files", "golang.org/x/time/rate", "go.yaml.in/yaml/v3"}, tests: []string{"internal/logtest"}},
	"internal/server/conns":              {code: []string{"internal/files", "golang.org/x/sys/unix"}, tests: []string{"internal/certtest", "internal/logtest", "google.golang.org/grpc/test/bufconn"}},
	"internal/files":                     {tests: []string{"internal/logtest"}},
	"internal/logtest":                   {},
	"internal/server":                    {code: []string{".", "cluster", "internal/idtext", "internal/retry", "internal/space", "internal/throttle", "member", "internal/server/auth", "store", "store/quorum"}, tests: []string{"internal/logtest", "internal/server/servertest", "store/memstore"}},
	"internal/server/httpapi":            {code: []string{".", "cluster", "member", "internal/clocks", "internal/clusterid", "internal/idtext", "internal/packed", "internal/server", "internal/server/auth", "internal/server/conns", "internal/server/httpapi/apidoc", "store"}, tests: []string{"internal/space", "internal/throttle", "internal/server/servertest", "internal/server/metrics", "store/memstore", "store/quorum", "github.com/getkin/kin-openapi"}},
	"internal/server/httpapi/apidoc":     {code: []string{"internal/server/pages"}},
	"internal/server/pages":              {},
	"internal/server/ui":                 {code: []string{".", "cluster", "member", "internal/server", "internal/server/auth", "internal/server/httpapi", "internal/server/pages", "store/quorum"}, tests: []string{"internal/server/servertest"}},
	"internal/server/limits":             {code: []string{"golang.org/x/sys/unix"}},
	"internal/forward":                   {code: []string{".", "internal/clusterid", "internal/packed", "internal/server", "internal/server/httpapi"}, tests: []string{"cluster", "internal/server/auth", "member", "store/memstore"}},
	"internal/node":                      {code: []string{"internal/forward", "internal/space", "internal/files", "internal/unixsocket", ".", "cluster", "internal/fence", "internal/idtext", "internal/journal", "internal/retry", "internal/secretfile", "internal/server", "internal/server/", "internal/stores", "internal/throttle", "member", "store", "store/etcdembed", "store/quorum", "github.com/coreos/go-systemd/v22/activation", "github.com/coreos/go-systemd/v22/daemon", "go.opentelemetry.io/", "google.golang.org/grpc"}, tests: []string{"internal/clusterid", "internal/packed", "internal/logtest", "api/firnv1", "internal/certtest", "store/memstore"}},
	"internal/stores":                    {code: []string{"store", "store/etcdstore", "store/pgstore", "store/quorum", "store/zkstore"}},
	"internal/demo":                      {code: []string{".", "client", "internal/clocks", "internal/console", "internal/deploy", "internal/load", "internal/node", "internal/retry", "internal/secretfile", "internal/server", "internal/server/auth", "internal/server/httpapi", "internal/server/ui", "member", "store/memstore", "store/quorum"}},
	"internal/manpage":                   {code: []string{"github.com/spf13/"}},
	"internal/setting":                   {code: []string{"internal/files", "github.com/spf13/pflag", "go.yaml.in/yaml/v3"}},
	"internal/idtext":                    {code: []string{"internal/fresh", ".", "cluster", "internal/files"}, tests: []string{"internal/logtest"}},
	"internal/remote":                    {code: []string{"internal/files", "internal/unixsocket", ".", "internal/secretfile", "internal/server/httpapi", "member"}},
	"internal/replay":                    {code: []string{"cluster", "internal/console"}},
	"internal/console":                   {},
	"internal/secretfile":                {code: []string{"internal/files", "internal/unixsocket", "internal/server/auth"}},
	"internal/server/servertest":         {code: []string{".", "cluster", "internal/server", "member", "store", "store/quorum"}},
	"internal/server/metrics":            {code: []string{"cluster", "internal/space", "member", "internal/server", "internal/server/conns", "store", "store/quorum", "github.com/prometheus/client_golang/"}, tests: []string{"internal/server/auth", "internal/server/servertest", ".", "cluster", "store/memstore", "go.yaml.in/yaml/v3"}},
	"internal/server/grpcapi":            {code: []string{".", "api/firnv1", "cluster", "member", "internal/clusterid", "internal/idtext", "internal/server", "internal/server/auth", "internal/server/conns", "google.golang.org/"}, tests: []string{"internal/throttle", "internal/server/servertest", "internal/server/metrics", "store", "store/memstore", "go.uber.org/goleak"}},
	"api/firnv1":                         {code: []string{"google.golang.org/"}},
	"cmd/firn":                           {code: []string{"internal/unixsocket", ".", "cluster", "internal/console", "internal/demo", "internal/deploy", "internal/doctor", "internal/files", "internal/idtext", "internal/journal", "internal/load", "internal/manpage", "internal/node", "internal/remote", "internal/replay", "internal/secretfile", "internal/server", "internal/server/", "internal/setting", "internal/stores", "member", "store/etcdstore", "store/pgstore", "store/quorum", "github.com/spf13/", "go.yaml.in/yaml/v3"}, tests: []string{"client", "golang.org/x/sys/unix", "internal/certtest", "internal/etcdtest", "internal/proxytest", "internal/fence", "store", "store/memstore", "github.com/rogpeppe/go-internal/testscript"}},
	"client":                             {code: []string{".", "internal/clusterid", "internal/packed", "internal/retry", "internal/unixsocket"}},
	"internal/server/respapi":            {code: []string{".", "member", "internal/idtext", "internal/server", "internal/server/auth", "internal/server/conns"}, tests: []string{"internal/throttle", "internal/server/servertest", "cluster", "internal/server/metrics", "store"}},
	"internal/deploy":                    {code: []string{".", "cluster", "internal/clusterid"}, tests: []string{"internal/dbtest"}},
	"internal/deploy/packages/archive":   {},
	"internal/deploy/packages/inventory": {},
	"examples/orders":                    {code: []string{".", "cluster", "member", "store", "store/etcdstore", "store/pgstore", "github.com/jackc/pgx/v5/pgconn"}, tests: []string{"internal/dbtest", "internal/etcdtest"}},
	"internal/browser":                   {tests: []string{".", "cluster", "internal/clusterid", "member", "internal/server", "internal/server/auth", "store/memstore", "internal/server/httpapi", "internal/server/servertest", "internal/server/ui", "store", "store/quorum", "github.com/chromedp/"}},
	"internal/doctor":                    {code: []string{"internal/space", "internal/unixsocket", ".", "cluster", "internal/clocks", "internal/retry", "internal/server", "internal/server/auth", "internal/server/conns", "internal/server/httpapi", "internal/server/limits", "internal/stores", "member", "store", "store/etcdembed", "store/etcdstore", "store/pgstore", "store/quorum", "store/zkstore", "golang.org/x/sys/unix", "internal/files"}, tests: []string{"internal/dbtest", "internal/zktest", "store/memstore"}},
	"internal/doctest":                   {tests: []string{"internal/responsive", "go.yaml.in/yaml/v3"}},
	"internal/dbtest":                    {code: []string{"internal/proxytest", "internal/testenv"}},
	"internal/etcdtest":                  {code: []string{"internal/certtest", "internal/proxytest"}},
	"internal/proxytest":                 {},
	"internal/certtest":                  {},
	"internal/zktest":                    {code: []string{"internal/proxytest", "internal/testenv"}},
	"internal/overlay":                   {},
	"internal/load":                      {code: []string{"internal/clusterid", "internal/unixsocket", ".", "api/firnv1", "github.com/HdrHistogram/hdrhistogram-go", "google.golang.org/", "internal/packed", "internal/retry"}, tests: []string{"cluster", "member", "internal/server", "internal/server/", "store/memstore", "go.uber.org/goleak"}},
	"internal/mutants":                   {code: []string{"internal/overlay"}},
	"internal/packed":                    {code: []string{"."}},
	"internal/worlds":                    {code: []string{".", "cluster", "internal/journal", "member", "store", "store/memstore"}},
	"internal/pauses":                    {code: []string{"internal/overlay"}},
	"internal/e2e":                       {tests: []string{"internal/certtest", "internal/responsive", ".", "client", "cluster", "internal/fence", "internal/journal", "store", "store/etcdstore", "store/quorum", "internal/dbtest", "internal/etcdtest", "internal/stores", "internal/zktest", "internal/proxytest", "internal/overlay", "github.com/redis/go-redis/v9", "api/firnv1", "google.golang.org/grpc", "golang.org/x/sys/unix"}},
	"internal/e2e/driver":                {code: []string{".", "client"}},
	"internal/responsive":                {},
	"internal/proofs":                    {},
	"internal/models":                    {},
	"internal/retry":                     {},
	"internal/clusterid":                 {},
	"internal/scale":                     {tests: []string{".", "cluster", "internal/proxytest", "member", "store", "store/etcdembed", "store/quorum", "github.com/prometheus/client_golang/prometheus"}},
	"internal/testenv":                   {},
	"internal/unixsocket":                {},
	"internal/throttle":                  {tests: []string{"internal/logtest"}},
	"internal/tidy":                      {},
}

// public are the packages that applications build on. Everything else is internal, a program or an example.
var public = []string{
	".", "api/firnv1", "client", "cluster", "member",
	"store", "store/etcdembed", "store/etcdstore", "store/memstore", "store/pgstore", "store/quorum", "store/storetest", "store/zkstore",
}

// file is one Go source file of the module.
type file struct {
	name, room string
	parsed     *ast.File
}

func (f file) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

func sources(t *testing.T) (all []file) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			other := rel == "bench" || rel == "tools" || rel == "examples/databases" // modules of their own
			if other || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && rel != "." {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly|parser.ParseComments)
		all = append(all, file{rel, path.Dir(filepath.ToSlash(rel)), parsed})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryRoomImportsWhatItMay(t *testing.T) {
	for _, f := range sources(t) {
		r, ok := rooms[f.room]
		if !ok {
			t.Errorf("%s is in a room that the table of rooms does not have", f.name)
			continue
		}
		allowed := r.code
		if f.isTest() {
			allowed = append(append(allowed[:len(allowed):len(allowed)], r.tests...), f.room, "internal/testenv")
		}
		for _, i := range f.parsed.Imports {
			imported := strings.Trim(i.Path.Value, `"`)
			if !mayImport(allowed, imported) {
				t.Errorf("%s imports %s; %s may import %v", f.name, imported, f.room, allowed)
			}
		}
	}
}

func mayImport(allowed []string, imported string) bool {
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return true // the standard library
	}
	if imported == module {
		imported = "."
	}
	imported = strings.TrimPrefix(imported, module+"/")
	for _, a := range allowed {
		if imported == a || strings.HasSuffix(a, "/") && strings.HasPrefix(imported, a) ||
			strings.Contains(a, ".") && a != "." && strings.HasPrefix(imported, a+"/") {
			return true
		}
	}
	return false
}

// A copy of a process may have its random numbers too, so names and secrets are made by internal/fresh.
func TestNamesAreFresh(t *testing.T) {
	others := []string{"internal/fresh", "internal/certtest", "store/quorum/internal/keyring"} // certificates of a process
	for _, f := range sources(t) {
		for _, i := range f.parsed.Imports {
			if i.Path.Value == `"crypto/rand"` && !f.isTest() && !slices.Contains(others, f.room) {
				t.Errorf("%s imports crypto/rand; want internal/fresh", f.name)
			}
		}
	}
}

func TestTheWallsAreWhereTheyAreSaidToBe(t *testing.T) {
	for room := range rooms {
		in := slices.Contains(strings.Split(room, "/"), "internal") || strings.HasPrefix(room, "cmd/") || strings.HasPrefix(room, "examples/")
		if in == slices.Contains(public, room) {
			t.Errorf("%s can be imported by applications: %v; want that of exactly %v", room, !in, public)
		}
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	comments := map[string][]string{}
	for _, f := range sources(t) {
		if strings.HasSuffix(f.parsed.Name.Name, "_test") {
			continue
		}
		if _, ok := comments[f.room]; !ok {
			comments[f.room] = nil
		}
		if f.parsed.Doc != nil {
			comments[f.room] = append(comments[f.room], f.name)
		}
	}
	for room, files := range comments {
		if len(files) != 1 {
			t.Errorf("%s has %d package comments, want 1: %v", room, len(files), files)
		}
	}
}

// deps lists the packages that a package needs.
func deps(t *testing.T, flags ...string) (all []string) {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-deps"}, flags...)...)
	list.Dir = root
	var messages bytes.Buffer // as of downloads
	list.Stderr = &messages
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, messages.Bytes())
	}
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ") // "firn_test [firn.test]" is a test build
		all = append(all, name)
	}
	return all
}

// The root package, with its tests, needs the standard library and nothing else.
func TestTheRootPackageNeedsTheStandardLibraryOnly(t *testing.T) {
	for _, name := range deps(t, "-test", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".") {
		if name != module && name != module+"_test" && name != module+".test" {
			t.Errorf("the root package needs %s", name)
		}
	}
}

// An application that embeds a member and uses an etcd elsewhere links no etcd server, and one whose store is another
// links nothing of etcd.
func TestEmbeddingAMemberLinksNoServer(t *testing.T) {
	const server = "go.etcd.io/etcd/server/"
	linksServer := func(pkg string) (linked bool, packages int) {
		all := deps(t, pkg)
		return slices.ContainsFunc(all, func(name string) bool { return strings.HasPrefix(name, server) }), len(all)
	}
	for pkg, most := range map[string]int{"./member": 135, "./store/etcdstore": 375, "./store/pgstore": 215, "./store/zkstore": 190, "./examples/orders": 405} {
		if linked, packages := linksServer(pkg); linked || packages > most {
			t.Errorf("%s links %d packages, etcd's server among them: %v; want at most %d without it", pkg, packages, linked, most)
		}
	}
	for _, pkg := range []string{"./member", "./store/pgstore", "./store/zkstore"} {
		all := deps(t, pkg)
		if i := slices.IndexFunc(all, func(name string) bool {
			return strings.HasPrefix(name, "go.etcd.io/") || strings.HasPrefix(name, "google.golang.org/grpc")
		}); i >= 0 {
			t.Errorf("%s links %s; want no part of etcd, nor what its client needs", pkg, all[i])
		}
	}
	if linked, _ := linksServer("./store/etcdembed"); !linked {
		t.Errorf("etcdembed links no package of %s: this test looks for the wrong name", server)
	}
}
