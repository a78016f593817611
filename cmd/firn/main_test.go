package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/firn-id/firn/internal/test/certtest"

	"github.com/firn-id/firn/internal/service/admit/secretfile"
	"github.com/firn-id/firn/internal/service/httpapi"
)

// patience is how long tests wait for what must come, on a machine that is busy.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	time.Local = time.UTC // in which the tests expect times to be shown
	testscript.Main(m, map[string]func(){"firn": main})
}

// The scripts are the manual: what people type, and what they get.
//
// They have these commands besides the usual:
//
//	start NAME firn serve ARGS...  starts a server and waits until it listens; $NAME is its URL, $NAME_ADMIN that of
//	                               administrators, $NAME_GRPC and $NAME_REDIS are addresses
//	ready NAME                     waits until it is ready
//	unready NAME TEXT              waits until it says TEXT of why it is not
//	signal NAME SIGNAL TEXT        sends a signal and waits until the log says TEXT
//	end NAME STATUS [SIGNAL]       sends a signal, TERM by default, waits for its end with this
//	                               status, and leaves its log in NAME.log
//	http METHOD URL [BODY]         prints the status and body of an answer; fails unless it is 2xx
//	systemd WATCHDOG               is systemd to the servers that are started after it, with a watchdog of so long
//	told TEXT...                   waits until systemd was told these lines, in this order
//	until REGEXP COMMAND...        runs a command until its output matches, or with ! until it does not
//	machines N                     sets $M1 to $MN to addresses on this machine that nobody else uses, and
//	                               $MACHINES to their list
//	certificates                   makes ca.pem, server.pem, server.key, client.pem and client.key
func TestScripts(t *testing.T) { scripts(t, "testdata/script", nil) }

// scripts runs those of a directory, with variables besides the usual.
func scripts(t *testing.T, dir string, env map[string]string) {
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Values[servers{}] = map[string]*process{}
			e.Values[notes{}] = &manager{}
			// else /no-home, which root alone can make, for a quorum's key
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("GORACE", "atexit_sleep_ms=0") // or each command would sleep a second at its end
			for name, value := range env {
				e.Setenv(name, value)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"start": start, "ready": ready, "unready": unready, "signal": signalServer, "logs": logs, "end": end,
			"http": httpCall, "certificates": certificates, "machines": machines, "until": until, "poison": poison,
			"systemd": systemd, "told": toldSystemd,
		},
	})
}

func certificates(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: certificates")
	}
	certtest.WriteFiles(ts, ts.MkAbs("."))
}

// machines takes addresses at random from the 16 million that only this machine reaches: another test may run at the
// same time.
func machines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: machines N")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("127.%d.%d.%d:7420", 1+rand.N(254), 1+rand.N(254), 1+rand.N(254)))
		ts.Setenv(fmt.Sprintf("M%d", i+1), all[i])
	}
	slices.Sort(all)
	ts.Setenv("MACHINES", strings.Join(all, ","))
}

func until(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: [!] until REGEXP COMMAND...")
	}
	want := regexp.MustCompile("(?m)" + args[0])
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		err := ts.Exec(args[1], args[2:]...)
		if out := ts.ReadFile("stdout"); want.MatchString(out) != neg {
			return
		} else if time.Now().After(deadline) {
			ts.Fatalf("%q is in the output of %q: %v, %v\n%s", args[0], args[1:], neg, err, out)
		}
	}
}

func httpCall(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 && len(args) != 3 {
		ts.Fatalf("usage: http METHOD URL [BODY]")
	}
	status, body, err := send(args[0], args[1], strings.Join(args[2:], ""))
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d %s", status, body)
	if ok := status/100 == 2; ok == neg {
		ts.Fatalf("%s %s = %d %s", args[0], args[1], status, body)
	}
}

// request and send ask as the command line does: with the secret of the node, where that is wanted.
func request(method, url string) (int, []byte, error) { return send(method, url, "") }

func send(method, url, sent string) (int, []byte, error) {
	status, body, err := sendAs("", method, url, sent)
	var answer httpapi.Locked
	if err != nil || status != http.StatusUnauthorized || json.Unmarshal(body, &answer) != nil ||
		answer.SecretFile == "" {
		return status, body, err
	}
	token, _, err := secretfile.Read(answer.SecretFile, url)
	if err != nil {
		return 0, nil, err
	}
	return sendAs(token, method, url, sent)
}

// sendAs shows a token, unless that is empty.
func sendAs(token, method, url, sent string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(sent))
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, body, err
}
