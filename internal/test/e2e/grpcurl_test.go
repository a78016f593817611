//go:build unix

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/testenv"
)

// grpcurl is the tool that people use to look at gRPC servers. It is built once.
var grpcurl = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binaries, "grpcurl")
	out, err := exec.Command("go", "-C", filepath.Join("..", "..", "..", "tools"), "build", "-o", path,
		"github.com/fullstorydev/grpcurl/cmd/grpcurl").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

// A person with grpcurl, and nothing else, finds out what there is, and uses it.
func TestGrpcurl(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	tool, err := grpcurl()
	if err != nil {
		t.Skipf("grpcurl can't be built: %v", err)
	}
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	token := newToken(t, tokens, "--name=operator", "--allow=issue", "--allow=admin")
	n := serve(t, "a", "--grpc-addr=127.0.0.1:0", "--data-dir="+t.TempDir(), "--drain-delay=0s", "--tokens="+tokens)
	at := n.listens("grpc_addr")
	run := func(args ...string) (string, error) {
		out, err := exec.Command(tool,
			append([]string{"-plaintext", "-H", "authorization: Bearer " + token}, args...)...).CombinedOutput()
		return string(out), err
	}
	says := func(want string, args ...string) {
		t.Helper()
		if out, err := run(args...); err != nil || !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("grpcurl %s: %v\n%s\nwant %s", strings.Join(args, " "), err, out, want)
		}
	}
	ready := func() bool {
		out, err := run(at, "grpc.health.v1.Health/Check")
		return err == nil && strings.Contains(out, `"SERVING"`)
	}
	for deadline := time.Now().Add(patience); !ready(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it is not ready:\n%s", n.log)
		}
	}
	says(`firn\.v1\.Admin\nfirn\.v1\.Firn\n`, at, "list")
	says(`firn\.v1\.Firn\.Decode\nfirn\.v1\.Firn\.Next\nfirn\.v1\.Firn\.NextBatch\nfirn\.v1\.Firn\.Stream\n`, at,
		"list", "firn.v1.Firn")
	says(`rpc Stream \( \.firn\.v1\.StreamRequest \) returns \( stream \.firn\.v1\.StreamResponse \);`, at, "describe",
		"firn.v1.Firn")
	says(`optional int64 nodes = 1;`, at, "describe", "firn.v1.Definition")

	says(`^\{\n  "id": "\d+"\n\}\n$`, at, "firn.v1.Firn/Next")
	says(`^\{\n  "ids": \[\n    "\d+",\n    "\d+"\n  \]\n\}\n$`, "-d", `{"count":2}`, at, "firn.v1.Firn/NextBatch")
	says(`^(\{\n  "ids": \[\n    "\d+",\n    "\d+"\n  \]\n\}\n){2}$`, "-d", `{"batch_size":2,"total":4}`, at,
		"firn.v1.Firn/Stream")
	says(`"nodeId": "\d+"`, "-d", `{"id":"1234567890123"}`, at, "firn.v1.Firn/Decode")
	says(`"created": true`, "-d",
		`{"name":"orders","definition":{"nodes":"4","tick":"0.010s","allocation":{"percent":"50"}}}`, at,
		"firn.v1.Admin/CreateSequencer")
	says(`"state": "STATE_ATTACHED"`, "-d", `{"name":"orders"}`, at, "firn.v1.Admin/AttachSequencer")
	says(`"name": "orders"`, at, "firn.v1.Admin/ClusterStatus")

	out, err := run("-d", `{"name":"orders","definition":{"nodes":"8"}}`, at, "firn.v1.Admin/CreateSequencer")
	for _, want := range []string{
		"Code: AlreadyExists", `"reason": "exists"`, `"domain": "firn"`,
		"type.googleapis.com/firn.v1.Conflict", `"wanted": "8"`,
	} {
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("another definition: %v\n%s\nwant %s", err, out, want)
		}
	}

	nobody, err := exec.Command(tool, "-plaintext", at, "firn.v1.Firn/Next").CombinedOutput()
	if err == nil || !strings.Contains(string(nobody), "Code: Unauthenticated") {
		t.Errorf("without a token: %v\n%s", err, nobody)
	}

	// It stops by a signal, also while somebody takes IDs without an end.
	stream := exec.Command(tool, "-plaintext", "-H", "authorization: Bearer "+token, at, "firn.v1.Firn/Stream")
	var told strings.Builder
	stream.Stderr = &told
	taken, err := stream.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Start(); err != nil {
		t.Fatal(err)
	}
	piece := make([]byte, 64<<10)
	if _, err := taken.Read(piece); err != nil {
		t.Fatal(err)
	}
	n.signal(syscall.SIGTERM)
	for err == nil {
		_, err = taken.Read(piece)
	}
	if err := stream.Wait(); err == nil || !strings.Contains(told.String(), "Code: Unavailable") ||
		!strings.Contains(told.String(), `"reason": "not_ready"`) {
		t.Errorf("the stream: %v, %s", err, told.String())
	}
	if status := n.ended(); status != 0 {
		t.Errorf("it ended with status %d:\n%s", status, n.log)
	}
	if strings.Contains(n.log.String(), "cut off") {
		t.Errorf("calls were cut off:\n%s", n.log)
	}
}
