package respapi

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/store"
)

// Every command, with the answer in RESP2 and, where it is another, in RESP3.
func TestCommands(t *testing.T) {
	const id, id2, id3 = "1152921504606846976", "1152921504606846977", "1152921504606846978"
	const decoded = `"time" "2022-06-28T16:07:40.105Z" "id_str" "1541815603606036480" "id" 1541815603606036480 ` +
		`"unix_ms" 1656432460105 "tick" 367597485448 ` +
		`"datacenter" 11 "node" 26 "node_id" 378 "sequence" 0`
	decodedUUID := strings.Replace(decoded, `"id"`, `"text" "0181ab11-8149-7000-9565-a11f6217a000" "id"`, 1)
	const incrDocs = `"summary" "Take an ID, as an integer. Clients in JavaScript round integers above 2^53, so that ` +
		`IDs repeat: use FIRN.ID there." ` +
		`"since" "1.0.0" "group" "firn"`
	const hello = `"server" "firn" "version" "7.0.0" "proto" %d "id" 7 "mode" "standalone" "role" "master" "modules" ` +
		`[] "cluster" "fj4ltw4x"`
	for _, tt := range []struct{ says, resp2, resp3 string }{
		{"INCR default", id, ""},
		{"incr default", id, ""},
		{"INCR default\r\nINCR default", id + "\n" + id2, ""},
		{"INCRBY default 1", id, ""},
		{
			"INCRBY default 0",
			"-ERR can't increment by '0': a call gives one ID, and IDs can't be given back; want 1, or FIRN.IDS " +
				"default count for several IDs", "",
		},
		{
			"INCRBY default -5",
			"-ERR can't increment by '-5': a call gives one ID, and IDs can't be given back; want 1, or FIRN.IDS " +
				"default count for several IDs", "",
		},
		{
			"INCRBY default x",
			"-ERR can't increment by 'x': a call gives one ID, and IDs can't be given back; want 1, or FIRN.IDS " +
				"default count for several IDs", "",
		},
		{
			"INCRBY default 100001",
			"-ERR can't increment by '100001': a call gives one ID, and IDs can't be given back; want 1, or FIRN.IDS " +
				"default count for several IDs", "",
		},
		{"INCRBY orders 1", `-UNKNOWNSEQUENCER ` + peer.ErrNoSequencer.Error() + `: "orders"`, ""},
		// not the same, though the first is unquoted in place
		{"INCR \"default\"\r\nINCR defaultt\"", id + "\n-ERR Protocol error: unbalanced quotes in request", ""},
		{"FIRN.ID default", `"` + id + `"`, ""},
		{"firn.id default\r\nfirn.id default", `"` + id + "\"\n\"" + id2 + `"`, ""},
		{
			"FIRN.ID", "-ERR wrong number of arguments for 'firn.id' command; want FIRN.ID sequencer [form] [AFTER id]",
			"",
		},
		{"FIRN.ID default hex\r\nFIRN.ID default hex", "\"1000000000000000\"\n\"1000000000000001\"", ""},
		{"FIRN.ID default BASE62", `"1NAOLcol8qW"`, ""},
		{
			"FIRN.ID default base64",
			`-ERR no form of IDs is named "base64"; want one of decimal, hex, base32, base58, base62, checked, ` +
				`prefixed, prefixed-decimal, prefixed-checked, uuid, sealed`, "",
		},
		{
			"FIRN.ID default sealed",
			"-ERR this node has no keys to seal and open IDs; start it with --seal-key-file, see firn seal-key", "",
		},
		{
			"FIRN.IDS default 2 prefixed",
			`-ERR the sequencer "default" was created without a prefix; want another form than prefixed`, "",
		},
		{
			"FIRN.ID default prefixed-checked",
			`-ERR the sequencer "default" was created without a prefix; want another form than prefixed-checked`, "",
		},
		{"FIRN.ID default CHECKED", `"` + id + `-32"`, ""},
		{
			"FIRN.DECODE 1541815603606036480-00",
			`-ERR "1541815603606036480-00" is not a checked ID: its check digits do not fit its number, so a ` +
				`digit is wrong; want the text exactly as it was made`, "",
		},
		{"FIRN.IDS default 2 base32", `["1000000000000" "1000000000001"]`, ""},
		{"FIRN.DECODE default 1ASD13XH1F800 uuid", "[" + decodedUUID + "]", "{" + decodedUUID + "}"},
		{
			"FIRN.DECODE 1000000000000000",
			`-ERR "1000000000000000" is an ID in decimal (1000000000000000) and in hex (1152921504606846976); say ` +
				`which form it has: as=decimal or as=hex`, "",
		},
		{
			"FIRN.DECODE default 1000000000000000 uuid text",
			`-ERR no form of IDs is named "text"; want one of decimal, hex, base32, base58, base62, checked, ` +
				`prefixed, prefixed-decimal, prefixed-checked, uuid, sealed`, "",
		},
		{
			"FIRN.DECODE default 1 text",
			`-ERR no form of IDs is named "text"; want one of decimal, hex, base32, base58, base62, checked, ` +
				`prefixed, prefixed-decimal, prefixed-checked, uuid, sealed`, "",
		},
		{"FIRN.IDS default 1", `["` + id + `"]`, ""},
		{"firn.ids default 3", `["` + id + `" "` + id2 + `" "` + id3 + `"]`, ""},
		{
			"FIRN.IDS default",
			"-ERR wrong number of arguments for 'firn.ids' command; want FIRN.IDS sequencer count [form] " +
				"[AFTER id]",
			"",
		},
		{"FIRN.ID default AFTER 77", `"` + id + `"`, ""},
		{"FIRN.IDS default 1 AFTER 77", `["` + id + `"]`, ""},
		{"FIRN.IDS default 1 base62 after 77", `["1NAOLcol8qW"]`, ""},
		{
			"FIRN.ID default AFTER 7x",
			"-ERR after: \"7x\" is not a decimal ID: it has 'x' at byte 1; want only 0123456789", "",
		},
		{
			"FIRN.ID default base62 AFTER",
			"-ERR the arguments of FIRN.ID end with 'AFTER'; want AFTER and an ID there, or none", "",
		},
		{
			"FIRN.NEXT default 2 3",
			"-ERR the arguments of FIRN.NEXT end with '3'; want AFTER and an ID there, or none", "",
		},
		{"FIRN.NEXT default AFTER 77", id, ""},
		{"FIRN.NEXT default 1 AFTER 77", "[" + id + "]", ""},
		{"FIRN.IDS default 0", "-ERR count is 0; want a number from 1 to 100000", ""},
		{"FIRN.IDS default 100001", "-ERR count is 100001; want a number from 1 to 100000", ""},
		{"FIRN.IDS default many", "-ERR count is 'many'; want a number from 1 to 100000", ""},
		{"FIRN.NEXT default", id, ""},
		{"FIRN.NEXT default 1", "[" + id + "]", ""},
		{"firn.next default 3", "[" + id + " " + id2 + " " + id3 + "]", ""},
		{"FIRN.NEXT default 0", "-ERR count is 0; want a number from 1 to 100000", ""},
		{"FIRN.NEXT default 100001", "-ERR count is 100001; want a number from 1 to 100000", ""},
		{"FIRN.NEXT default many", "-ERR count is 'many'; want a number from 1 to 100000", ""},
		{"FIRN.DECODE 1541815603606036480", "[" + decoded + "]", "{" + decoded + "}"},
		{"FIRN.DECODE default 1541815603606036480", "[" + decoded + "]", "{" + decoded + "}"},
		{
			"FIRN.DECODE 12x",
			`-ERR "12x" is not an ID in any form; want decimal digits, 16 characters of hex, 13 of base32, 11 of ` +
				`base62, 8 to 11 of base58 (say so if there are fewer), a UUID, or a text such as ` +
				`ord_038aj5d574005, ORD117465411174400005, 117465411174400005-32 or 1-0Z8XHYq9t0Y`, "",
		},
		{"FIRN.DECODE orders 5", `-UNKNOWNSEQUENCER ` + peer.ErrNoSequencer.Error() + `: "orders"`, ""},
		{"INCR orders", `-UNKNOWNSEQUENCER ` + peer.ErrNoSequencer.Error() + `: "orders"`, ""},
		{"FIRN.ID orders", `-UNKNOWNSEQUENCER ` + peer.ErrNoSequencer.Error() + `: "orders"`, ""},
		{"FIRN.IDS orders 9", `-UNKNOWNSEQUENCER ` + peer.ErrNoSequencer.Error() + `: "orders"`, ""},
		{"INCRBY orders 9", `-UNKNOWNSEQUENCER ` + peer.ErrNoSequencer.Error() + `: "orders"`, ""},
		{"FIRN.NEXT orders 9", `-UNKNOWNSEQUENCER ` + peer.ErrNoSequencer.Error() + `: "orders"`, ""},
		{"INCR", "-ERR wrong number of arguments for 'incr' command; want INCR sequencer", ""},
		{"INCR a b", "-ERR wrong number of arguments for 'incr' command; want INCR sequencer", ""},

		{"PING", "+PONG", ""},
		{`PING "a b"`, `"a b"`, ""},
		{"ECHO x", `"x"`, ""},
		{"SELECT 9", "+OK", ""},
		{"SELECT x", "-ERR invalid DB index 'x'; want a number from 0", ""},
		{"QUIT\r\nPING", "+OK", ""},
		{"AUTH any", "+OK", ""}, // no token is wanted
		{"HELLO", "[" + fmt.Sprintf(hello, 2) + "]", "{" + fmt.Sprintf(hello, 3) + "}"},
		{"HELLO 2 SETNAME me\r\nCLIENT GETNAME", "[" + fmt.Sprintf(hello, 2) + "]\n\"me\"", ""},
		{"HELLO 3 AUTH any any", "{" + fmt.Sprintf(hello, 3) + "}", ""},
		{"HELLO 4", `-NOPROTO unsupported protocol version "4"; want 2 or 3`, ""},
		{
			"HELLO 2 AUTH a",
			"-ERR syntax error in HELLO option 'AUTH'; want HELLO [2|3 [AUTH name token] [SETNAME name]]", "",
		},
		{"CLIENT GETNAME", "null", ""},
		{"CLIENT SETNAME me\r\nCLIENT GETNAME\r\nRESET\r\nCLIENT GETNAME", "+OK\n\"me\"\n+RESET\nnull", ""},
		{
			`CLIENT SETNAME "a b"`,
			"-ERR Client names cannot contain spaces, newlines or special characters, nor have more than 128 bytes.",
			"",
		},
		{"CLIENT SETINFO LIB-NAME x", "+OK", ""},
		{"CLIENT NO-EVICT on", "+OK", ""},
		{"CLIENT NO-TOUCH on", "+OK", ""},
		{"CLIENT ID", "7", ""},
		{
			"CLIENT KILL",
			"-ERR unknown subcommand 'KILL'; want CLIENT SETNAME|GETNAME|SETINFO|ID|NO-EVICT|NO-TOUCH ...",
			"",
		},
		{"CONFIG GET save", `["save" ""]`, `{"save" ""}`},
		{"CONFIG GET appendonly maxmemory", `["appendonly" "no"]`, `{"appendonly" "no"}`},
		{"CONFIG SET save x", "-ERR unknown subcommand 'SET'; want CONFIG GET name ...", ""},
		{"COMMAND COUNT", "17", ""},
		{"COMMAND INFO incr get", `[["incr" 2 [+fast] 1 1 1] null]`, ""},
		{"COMMAND DOCS incr", `["incr" [` + incrDocs + `]]`, `{"incr" {` + incrDocs + `}}`},
		{"COMMAND LIST", "-ERR unknown subcommand 'LIST'; want COMMAND [COUNT|INFO|DOCS [name ...]]", ""},
		{"GET a b", "-ERR unknown command 'GET', with args beginning with: 'a' 'b' ", ""},
		{"DECR default", "-ERR unknown command 'DECR', with args beginning with: 'default' ", ""},
		{"\r\n  \r\nPING", "+PONG", ""},
		{"*0\r\n*-1\r\nPING", "+PONG", ""},
	} {
		if got := replies(t, newServer(t, newCounting()), tt.says+"\r\n"); got != tt.resp2 {
			t.Errorf("%s: %s\nwant %s", tt.says, got, tt.resp2)
		}
		_, want, _ := strings.Cut(replies(t, newServer(t, newCounting()), "HELLO 3\r\nPING\r\n"), "\n")
		if want != "+PONG" {
			t.Fatal(want)
		}
		if tt.resp3 != "" {
			_, got, _ := strings.Cut(replies(t, newServer(t, newCounting()), "HELLO 3\r\n"+tt.says+"\r\n"), "\n")
			if got != tt.resp3 {
				t.Errorf("%s in RESP3: %s\nwant %s", tt.says, got, tt.resp3)
			}
		}
	}
}

// Whoever documents a command that replies with integers warns of them, and names one that replies with texts.
func TestIntegersAreWarnedOf(t *testing.T) {
	s := newServer(t, newCounting())
	for name, k := range s.commands {
		if k.key == 0 || name == "firn.decode" {
			continue
		}
		reply := talk(s, strings.ToUpper(name)+" default "+strings.Repeat("2", k.least-1)+"\r\n", maxCommand)
		if warns, integers := strings.Contains(k.summary, "JavaScript"),
			strings.Contains(reply, ":"); warns != integers {
			t.Errorf("%s replies %q, and its summary is %q", name, reply, k.summary)
		}
	}
}

// A null and a text for people have kinds of their own in RESP3.
func TestKindsOfRESP3(t *testing.T) {
	got := talk(newServer(t, newCounting()), "HELLO 3\r\nCLIENT GETNAME\r\nINFO firn\r\n", maxCommand)
	if !strings.Contains(got, "\r\n_\r\n=") || !strings.Contains(got, "\r\ntxt:# Firn\r\n") {
		t.Errorf("%q", got)
	}
}

func TestInfo(t *testing.T) {
	all := replies(t, newServer(t, newCounting()), "INFO\r\n")
	for _, want := range []string{
		`# Server\r\nredis_version:7.0.0\r\n`, `# Clients\r\nconnected_clients:0\r\n`,
		`# Firn\r\nready:yes\r\ncluster:fj4ltw4x\r\nsequencer:default\r\nstate:none\r\n`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%s\nhas no %s", all, want)
		}
	}
	f := newCounting()
	f.Err = fmt.Errorf("%w: it has\r\nnot joined yet", peer.ErrNotReady)
	if got := replies(t, newServer(t, f), "INFO firn\r\n"); strings.Contains(got, "# Server") ||
		!strings.Contains(got, `ready:no\r\nwhy:`+peer.ErrNotReady.Error()+`: it has not joined yet\r\n`) {
		t.Errorf("%s", got)
	}
	if got := replies(t, newServer(t, f), "INFO nothing\r\n"); got != `""` {
		t.Errorf("%s", got)
	}
}

// COMMAND has all of them, with the words that one has.
func TestCommandHasAll(t *testing.T) {
	s := newServer(t, newCounting())
	got := replies(t, s, "COMMAND\r\n")
	docs := replies(t, s, "COMMAND DOCS\r\n")
	for name := range s.commands {
		if !strings.Contains(got, `["`+name+`" `) || !strings.Contains(docs, `"`+name+`" ["summary" `) {
			t.Errorf("no %s in\n%s\n%s", name, got, docs)
		}
	}
}

// What the service refuses is told by kind, on one line. Only bugs are logged.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{
			fmt.Errorf("%w: it has\r\n+not joined", peer.ErrNotReady),
			"-NOTREADY " + peer.ErrNotReady.Error() + ": it has  +not joined",
		},
		{
			fmt.Errorf("%w: too busy", store.ErrUnavailable),
			"-UNAVAILABLE " + store.ErrUnavailable.Error() + ": too busy",
		},
		{errors.New("surprise"), "-INTERNAL surprise"},
	} {
		for _, says := range []string{
			"INCR default", "INCRBY default 1", "FIRN.NEXT default", "FIRN.NEXT default 3", "FIRN.ID default",
			"FIRN.IDS default 3",
		} {
			var log bytes.Buffer
			f := newCounting()
			f.Err = tt.err
			s := newServerWith(t, f, policy(nil), slog.New(slog.NewTextHandler(&log, nil)))
			if got := replies(t, s, says+"\r\n"); got != tt.want {
				t.Errorf("%s: %s, want %s", says, got, tt.want)
			}
			if (log.Len() > 0) != (tt.want == "-INTERNAL surprise") {
				t.Errorf("%v was logged as %q", tt.err, &log)
			}
		}
	}
}

// Every code has a word that is in the table of the package comment; a word is one word.
func TestWords(t *testing.T) {
	for code, want := range map[codes.Code]string{
		codes.BadRequest: "ERR", codes.Unauthenticated: "NOAUTH", codes.Forbidden: "NOPERM",
		codes.UnknownSequencer: "UNKNOWNSEQUENCER",
		codes.RateLimited:      "RATELIMITED", codes.NotReady: "NOTREADY", codes.Waiting: "WAITING",
		codes.Lifetime: "LIFETIME",
	} {
		if got := code.Redis(); got != want {
			t.Errorf("%s is %s, want %s", code, got, want)
		}
	}
}

// Where integers are not wanted, each command that replies with them has the same digits in bulk strings.
func TestIntegersAsTexts(t *testing.T) {
	for _, texts := range []bool{false, true} {
		s := newServer(t, newGenerated(t, firn.Default))
		s.Texts = texts
		says := array("INCR", "default") + array("INCRBY", "default", "1") + array("FIRN.NEXT",
			"default") + array("FIRN.NEXT", "default", "2")
		got := talk(s, says, maxCommand)
		integers, bulks := strings.Count(got, ":"), strings.Count(got, "$")
		if integers+bulks != 5 || (bulks == 5) != texts || (integers == 5) == texts {
			t.Errorf("as texts: %t; the replies are %q", texts, got)
		}
	}
}

// HTTP gets nothing done: whoever has a browser send it learns nothing and takes nothing.
func TestHTTP(t *testing.T) {
	for _, says := range []string{
		"POST / HTTP/1.1\r\nHost: localhost:6379\r\n\r\nINCR default\r\n",
		"GET / HTTP/1.1\r\nHost: localhost:6379\r\n\r\nINCR default\r\n",
		"PUT /x HTTP/1.1\r\nhost: localhost:6379\r\n\r\nINCR default\r\n",
	} {
		f := newCounting()
		got := replies(t, newServer(t, f), says)
		if f.Given() != 0 || strings.Count(got, "\n") > 0 {
			t.Errorf("%q got %s", says, got)
		}
	}
}

// What is no command is told, and nothing that follows is done.
func TestProtocolErrors(t *testing.T) {
	for says, want := range map[string]string{
		"*1000000000\r\n":               "-ERR Protocol error: invalid multibulk length",
		"*1\r\n$536870912\r\n":          "-ERR Protocol error: invalid bulk length",
		"*1\r\nPING\r\n":                "-ERR Protocol error: expected '$', got 'P'",
		"echo \"a\r\n":                  "-ERR Protocol error: unbalanced quotes in request",
		strings.Repeat("x", maxCommand): "-ERR Protocol error: too big inline request",
	} {
		f := newCounting()
		if got := replies(t, newServer(t, f), "PING\r\n"+says+"INCR default\r\n"); got != "+PONG\n"+want ||
			f.Given() != 0 {
			t.Errorf("%.50q got %s, want %s", says, got, want)
		}
	}
}
