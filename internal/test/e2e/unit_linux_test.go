package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/test/testenv"
)

// The unit that firn gen systemd prints forbids nothing that firn serve does: every system call and every kind of
// socket that a node used in its life, alone or as one of a quorum, is allowed.
func TestTheUnitAllowsWhatFirnDoes(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	for name, debian := range map[string]string{"strace": "strace", "systemd-analyze": "systemd", "curl": "curl"} {
		testenv.Program(t, name, debian)
	}
	path, err := firn()
	if err != nil {
		t.Fatal(err)
	}
	unit, err := exec.Command(path, "gen", "systemd").Output()
	if err != nil {
		t.Fatal(err)
	}
	quorum := "--quorum=" + strings.Join([]string{freeAddress(t), freeAddress(t), freeAddress(t)}, ",")
	for name, args := range map[string]string{"alone": "", "one of a quorum": quorum} {
		t.Run(name, func(t *testing.T) { allowsLife(t, string(unit), path, args) })
	}
}

// freeAddress returns an address that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// allowsLife checks that a unit allows what a node does in its life. If it is one of a quorum, two others live beside
// it.
func allowsLife(t *testing.T, unit, path, quorum string) {
	trace := filepath.Join(t.TempDir(), "trace")
	// The shell asks for an ID by each protocol that curl speaks, and then stops the node, which strace waits for.
	const life = `
		machines=${4#--quorum=}
		own= others=
		trap '[ -z "$others" ] || { kill -KILL $others; wait; }' EXIT
		if [ -n "$machines" ]; then
			own=--quorum-addr=${machines%%,*}
			for machine in $(echo "${machines#*,}" | tr , ' '); do
				"$0" serve --http-addr 127.0.0.1:0 --data-dir "$2-$machine" --drain-delay 0s "$4" \
					--quorum-addr="$machine" 2> "$3-$machine" &
				others="$others $!"
			done
		fi
		strace -f -qq -o "$1" "$0" serve --http-addr 127.0.0.1:0 --grpc-addr 127.0.0.1:0 --redis-addr 127.0.0.1:0 \
			--data-dir "$2" --drain-delay 0s ${machines:+"$4" "$own"} 2> "$3" &
		traced=$!
		until at=$(sed -n 's/.*msg=listening addr=\([^ ]*\).*/\1/p' "$3") && [ -n "$at" ] &&
			curl -sf "http://$at/readyz"; do
			sleep 0.05; kill -0 $traced || exit 1
		done
		curl -sf -X POST "http://$at/api/v1/ids?count=10000" || exit 1
		kill -TERM $(cut -d' ' -f1 "$1" | head -n 1)
		wait $traced`
	log := filepath.Join(t.TempDir(), "log")
	c := exec.Command("sh", "-c", life, path, trace, filepath.Join(t.TempDir(), "data"), log, quorum)
	c.Env = append(os.Environ(), "HOME="+t.TempDir())
	if out, err := c.CombinedOutput(); err != nil {
		text, _ := os.ReadFile(log)
		t.Fatalf("%v: %.1000s\n%s", err, out, text)
	}
	traced, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^SystemCallFilter=(~?)(.*)$`).FindAllStringSubmatch(unit, -1) {
		for set := range strings.FieldsSeq(line[2]) {
			for _, call := range callsOf(t, set) {
				allowed[call] = line[1] == ""
			}
		}
	}
	var refused []string
	used := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\d+ +([a-z0-9_]+)\(`).FindAllStringSubmatch(string(traced), -1) {
		if used[m[1]] = true; !allowed[m[1]] && !slices.Contains(refused, m[1]) {
			refused = append(refused, m[1])
		}
	}
	if len(refused) > 0 {
		t.Errorf("the unit forbids %v", refused)
	}
	if len(used) < 30 || !used["accept4"] || !used["fsync"] && !used["fdatasync"] {
		t.Errorf("the node seems not to have lived: it used %d system calls", len(used))
	}
	families := regexp.MustCompile(`(?m)^RestrictAddressFamilies=(.*)$`).FindStringSubmatch(unit)
	if families == nil {
		t.Fatal("the unit restricts no address families")
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`\bsocket\((AF_[A-Z0-9]+)`).FindAllStringSubmatch(string(traced), -1) {
		if seen[m[1]] = true; !slices.Contains(strings.Fields(families[1]), m[1]) {
			t.Errorf("the unit forbids sockets of %s", m[1])
		}
	}
	t.Logf("%d system calls, sockets of %v", len(used), seen)
	if regexp.MustCompile(`PROT_WRITE\|PROT_EXEC|PROT_READ\|PROT_WRITE\|PROT_EXEC`).Match(traced) {
		t.Error("it maps memory that it can write and run; the unit forbids that")
	}
}

// callsOf are the system calls of a set, with those of the sets in it.
func callsOf(t *testing.T, set string) (calls []string) {
	t.Helper()
	if !strings.HasPrefix(set, "@") {
		return []string{set}
	}
	out, err := exec.Command("systemd-analyze", "syscall-filter", "--no-pager", set).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", set, err, out)
	}
	for line := range strings.Lines(string(out)) {
		text := strings.TrimSpace(line)
		if text == "" || strings.HasPrefix(text, "#") || text == set {
			continue
		}
		calls = append(calls, callsOf(t, text)...)
	}
	if len(calls) == 0 {
		t.Fatal(fmt.Errorf("%s has no system calls:\n%s", set, out))
	}
	return calls
}
