package main

import (
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store/quorum"
)

// quorumServer serves a quorum to administrators, and returns a function that runs a command which asks it.
func quorumServer(t *testing.T, q *servertest.Quorum) (firn func(args ...string) (status int, stdout, stderr string)) {
	t.Helper()
	s := httptest.NewServer(httpapi.New(calls.New(servertest.Join(t), calls.Options{Quorum: q}),
		&auth.Policy{Trusted: true}))
	t.Cleanup(s.Close)
	return func(args ...string) (int, string, string) {
		var out, errs strings.Builder
		status := run(t.Context(), append([]string{"quorum"}, args...), []string{"FIRN_ADMIN=" + s.URL},
			strings.NewReader(""), &out, &errs)
		return status, out.String(), errs.String()
	}
}

const quorumStatusText = `cluster   5f0c3a9be1d24c77
told by   ids-1:7420

MACHINE     NODE    ROLE           BEHIND     SIZE  VERSION   CLOCK  FSYNC  STATE
ids-1:7420  east-1  voter, leader       0  2.0 MiB  v1.4.0       0s  1.2ms  ok
ids-2:7420  east-2  learner           345  2.0 MiB  v1.4.0   -250ms  210ms  catches up
ids-3:7420  -       voter           1 345        -  -             -      -  connection refused
`

// threeNamed are three machines, of which two have told the names of their nodes.
func threeNamed() *servertest.Quorum {
	q := servertest.ThreeMachines()
	q.State.Machines[0].Node, q.State.Machines[1].Node = "east-1", "east-2"
	return q
}

// The machines are a table; without a majority the exit status is 1, and the table is there all the same.
func TestQuorumStatus(t *testing.T) {
	q := threeNamed()
	firn := quorumServer(t, q)
	if status, out, errs := firn("status"); status != 0 || out != quorumStatusText || errs != "" {
		t.Errorf("%d, %s\n%s\nwant\n%s", status, errs, out, quorumStatusText)
	}
	if status, out, _ := firn("status", "--json"); status != 0 ||
		!strings.HasPrefix(out, `{"cluster":"5f0c3a9be1d24c77",`) {
		t.Errorf("%d %s", status, out)
	}
	q.State.Majority = false
	if status, out, errs := firn("status"); status != statusFailure || out != quorumStatusText ||
		!strings.HasPrefix(errs, "firn: 1 of 2 machines is down (ids-3); nodes give IDs only ") {
		t.Errorf("%d, %s\n%s", status, errs, out)
	}
	back := q.State // it is no longer for those that are missing that there is no majority
	q.State.Machines = slices.Clone(q.State.Machines)
	q.State.Machines[1].Role = quorum.Voter
	if status, _, errs := firn("status"); status != statusFailure ||
		!strings.HasPrefix(errs, "firn: no majority of the machines of the quorum works yet; ") {
		t.Errorf("two of three are back: %d, %s", status, errs)
	}
	q.State = back
	if status, out, _ := firn("status", "--json"); status != statusFailure ||
		!strings.Contains(out, `"majority":false`) {
		t.Errorf("%d %s", status, out)
	}
	const waits = "a new cluster needs all machines; no answer from b"
	q.State = quorum.Status{Waiting: waits, Machines: []quorum.Machine{
		{Address: "a:7420", Role: quorum.Empty, Doing: waits},
		{Address: "b\x1b:7420", Err: "no such host", Clock: time.Hour},
	}}
	want := `cluster   none known
told by   a client, which keeps no data

MACHINE       NODE  ROLE   BEHIND  SIZE  VERSION  CLOCK  FSYNC  STATE
a:7420        -     empty       -     -  -           0s      -  waiting
"b\x1b:7420"  -     -           -     -  -            -      -  no such host

This node waits: a new cluster needs all machines; no answer from b.
`
	if _, out, _ := firn("status"); out != want {
		t.Errorf("%s\nwant\n%s", out, want)
	}
}

// Replace and remove take names for addresses, say what to do next, and pass on what a server refuses.
func TestQuorumChanges(t *testing.T) {
	q := threeNamed()
	firn := quorumServer(t, q)
	for _, tt := range []struct{ args, says, asked string }{
		{
			"replace --yes ids-2:7420 ids-4:7420", "  firn serve --quorum ids-1:7420,ids-3:7420,ids-4:7420 ...\n",
			"replace ids-2:7420 ids-4:7420",
		},
		{
			"replace --yes east-2 ids-4:7420", "ids-4:7420 takes the place of ids-2:7420",
			"replace ids-2:7420 ids-4:7420",
		},
		{"remove --yes ids-3:7420 east-2", "  --quorum ids-1:7420\n", "remove ids-3:7420 ids-2:7420"},
		{"remove --yes ids-3:7420 ids-2:7420", "  --quorum ids-1:7420\n", "remove ids-3:7420 ids-2:7420"},
	} {
		if status, out, errs := firn(strings.Fields(tt.args)...); status != 0 || !strings.Contains(out, tt.says) {
			t.Errorf("%s: %d %s %s", tt.args, status, out, errs)
		}
		if !slices.Contains(q.Asked(), tt.asked) {
			t.Errorf("%s asks for %q", tt.args, q.Asked())
		}
	}
	asked := len(q.Asked())
	for _, args := range []string{"replace ids-2:7420 ids-4:7420", "remove ids-3:7420"} {
		if status, _, errs := firn(strings.Fields(args)...); status != statusUsage ||
			!strings.Contains(errs, "add --yes") {
			t.Errorf("%s: %d %s", args, status, errs)
		}
	}
	if len(q.Asked()) != asked {
		t.Errorf("it is asked for %q without --yes", q.Asked())
	}
	q.Err = errors.New(`"ids-9:7420" is none of the machines; there are ids-1:7420, ids-2:7420 and ids-3:7420`)
	if status, _, errs := firn("remove", "--yes", "ids-9:7420"); status != statusFailure ||
		!strings.Contains(errs, "there are ids-1:7420") {
		t.Errorf("%d %s", status, errs)
	}
}

// A backup has its name once it is whole, is its owner's alone, and replaces another only when told to.
func TestQuorumBackup(t *testing.T) {
	q := servertest.ThreeMachines()
	q.Data = strings.Repeat("everything ", 1<<17)
	firn := quorumServer(t, q)
	file := filepath.Join(t.TempDir(), "ids.backup")
	if err := os.WriteFile(file+".part", []byte("of an earlier try"), 0o644); err != nil {
		t.Fatal(err)
	}
	status, out, errs := firn("backup", file)
	info, err := os.Stat(file)
	if status != 0 || err != nil || info.Mode().Perm() != 0o600 || out != file+" has a backup of 1.4 MiB\n" {
		t.Errorf("%d %s %s, %v, %v", status, out, errs, info, err)
	}
	holds := func(file, want string) {
		t.Helper()
		if data, err := os.ReadFile(file); err != nil || string(data) != want {
			t.Errorf("%s has %d bytes, %v; want %d", file, len(data), err, len(want))
		}
	}
	first := q.Data
	holds(file, first)
	q.Data = "later"
	if status, _, errs := firn("backup", file); status != statusUsage ||
		!strings.Contains(errs, "exists; add --force") {
		t.Errorf("%d %s", status, errs)
	}
	holds(file, first)
	if status, out, _ := firn("backup", "-"); status != 0 || out != "later" {
		t.Errorf("on standard output it is %q, with status %d", out, status)
	}
	q.Data, q.Err = strings.Repeat("part of it ", 1<<17), errors.New("the leader is lost")
	if status, _, errs := firn("backup", "--force", file); status != statusFailure ||
		!strings.Contains(errs, "the backup is incomplete") {
		t.Errorf("%d %s", status, errs)
	}
	if status, _, errs := firn("backup", "-"); status != statusFailure ||
		!strings.Contains(errs, "the backup is incomplete") {
		t.Errorf("%d %s", status, errs)
	}
	holds(file, first)
	q.Data, q.Err = "later", nil
	if status, _, errs := firn("backup", "--force", file); status != 0 {
		t.Errorf("%d %s", status, errs)
	}
	holds(file, "later")
	if _, err := os.Stat(file + ".part"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the part stays: %v", err)
	}
}

// What was restored says how long no ID is made, and which former machines may still run.
func TestRestoredText(t *testing.T) {
	c := quorum.RestoreConfig{Dir: "/var/lib/firn", As: "ids-1:7420"}
	r := quorum.Restored{Former: "aa", Machines: []string{"a:1", "b:1"}, Silent: []string{"b:1"}}
	text := restoredText(c, r)
	for _, want := range []string{
		"for         ids-1:7420\n", "former      aa\n", "the longest window",
		"by default 30s, and 10s", "whether they run: b:1.\n", "--data-dir /var/lib/firn --quorum ids-1:7420,OTHER",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	r.Silent = nil
	if text := restoredText(c, r); !strings.Contains(text, "All former machines were asked") ||
		strings.Contains(text, "Make sure") {
		t.Errorf("it says\n%s", text)
	}
	if text := restoredText(c, quorum.Restored{}); !strings.Contains(text, "former      a quorum of one") {
		t.Errorf("it says\n%s", text)
	}
}
