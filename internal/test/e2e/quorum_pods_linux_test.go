package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/firn-id/firn/internal/test/testenv"
)

// inPod runs firn as Kubernetes runs a container of the image that firn gen docker describes: in a file system that has
// nothing but the binary and what is mounted, and that only the volume can be written to, as a user without a name.
const inPod = `
	set -e
	root=$1 volume=$2 name=$3
	shift 3
	mount --bind "$root" "$root"
	mount --bind "$volume" "$root/var/lib/firn"
	mount -o remount,ro,bind "$root"
	hostname "$name"
	exec env -i KUBERNETES_SERVICE_HOST=10.0.0.1 "$(command -v chroot)" --userspec=65532:65532 \
		--groups=65532 "$root" /usr/bin/firn "$@"`

// The pods of firn gen kubernetes --quorum form a cluster with what the manifests give them, and are restarted one
// after the other, each when the one before is ready again and within the time that they are given.
func TestPodsOfAQuorum(t *testing.T) {
	testenv.Slow(t)
	for _, name := range []string{"chroot", "hostname"} {
		testenv.Program(t, name, "coreutils, hostname")
	}
	l := newLAN(t)
	root := t.TempDir()
	path := filepath.Join(root, "usr", "bin", "firn")
	build := exec.Command("go", "build", "-o", path, "./cmd/firn")
	build.Dir, build.Env = filepath.Join("..", "..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if err := sources(); err != nil {
		t.Fatal(err)
	}
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	manifests, err := exec.Command(path, "gen", "kubernetes", "--quorum", "3", "--drain-delay", "1s", "--image",
		"firn@sha256:"+strings.Repeat("0", 64)).Output()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"serve"}
	for _, m := range regexp.MustCompile(`(?m)^ +- "?(--[^"\n]+)"?$`).FindAllStringSubmatch(string(manifests), -1) {
		args = append(args, m[1])
	}
	key, err := exec.Command(path, "quorum", "key").Output()
	if err != nil {
		t.Fatal(err)
	}

	var hosts strings.Builder
	hosts.WriteString("127.0.0.1 localhost\n")
	for n := range 3 {
		fmt.Fprintf(&hosts, "10.20.0.%d firn-%d.firn-quorum\n", 10+n, n)
	}
	secret := filepath.Join(root, "etc", "firn", "quorum")
	for _, dir := range []string{secret + "/..2026", root + "/var/lib/firn", root + "/proc"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for file, text := range map[string]string{
		root + "/etc/hosts":         hosts.String(),
		secret + "/..2026/firn.key": string(key),
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"..data": "..2026", "firn.key": "..data/firn.key"} {
		if err := os.Symlink(to, filepath.Join(secret, link)); err != nil {
			t.Fatal(err)
		}
	}
	// As with fsGroup.
	if out, err := exec.Command("sh", "-c",
		`chgrp 65532 "$0"/..2026/firn.key && chmod 0440 "$0"/..2026/firn.key && chmod 3777 "$0" && chmod 0755 "$1"`,
		secret, root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	machines, pods := make([]*machine, 3), make([]*program, 3)
	start := func(n int) {
		name := fmt.Sprintf("firn-%d", n)
		volume := filepath.Join(filepath.Dir(root), name)
		if err := os.MkdirAll(volume, 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("sh", "-c", `chgrp 65532 "$0" && chmod 2775 "$0"`, volume).
			CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		pods[n] = machines[n].run("unshare",
			append([]string{"--uts", "sh", "-c", inPod, "sh", root, volume, name}, args...)...)
	}
	ready := func(n int) error {
		status, body, err := machines[n].get("http://" + machines[n].address + ":9100/readyz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d: %s", status, body)
		}
		return err
	}
	for n := range 3 {
		machines[n] = l.plug(fmt.Sprintf("pod-%d", n), fmt.Sprintf("10.20.0.%d", 10+n))
	}
	for n := range 3 {
		start(n)
	}
	for n := range 3 {
		eventually(t, func() error { return ready(n) })
	}
	for n := range 3 {
		pods[n].signal(syscall.SIGTERM)
		if status := pods[n].ended(); status != 0 {
			t.Errorf("firn-%d ends with status %d", n, status)
		}
		for other := range 3 {
			if err := ready(other); other != n && err != nil {
				t.Errorf("firn-%d is not ready while firn-%d is restarted: %v", other, n, err)
			}
		}
		start(n)
		eventually(t, func() error { return ready(n) })
	}
}
