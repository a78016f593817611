package respapi

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// parsed is what a text begins with, in one line; empty if it is not complete.
func parsed(text string) string {
	args, size, err := parse([]byte(text), nil)
	switch {
	case err != nil:
		return err.Error()
	case size == 0:
		return ""
	default:
		return fmt.Sprintf("%d %q", size, args)
	}
}

var parses = []struct{ text, want string }{
	{"*2\r\n$4\r\nINCR\r\n$7\r\ndefault\r\n", `27 ["INCR" "default"]`},
	{"*1\r\n$4\r\nPING\r\n*1\r\n", `14 ["PING"]`},
	{"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", `20 ["ECHO" ""]`},
	{"*1\r\n$6\r\na\r\n*1\x00\r\n", `16 ["a\r\n*1\x00"]`},
	{"*0\r\n", `4 []`},
	{"*-1\r\n", `5 []`}, // as Redis does
	{"*1\r\n$1\r\nx\r\n\xff", `11 ["x"]`},

	{"PING\r\n", `6 ["PING"]`},
	{"PING\n", `5 ["PING"]`},
	{"\r\n", `2 []`},
	{"   \t\r\n", `6 []`},
	{" incr  default \r\n", `17 ["incr" "default"]`},
	{`echo "a b\r\n\t\b\a\"\\\x41\xfF\z" 'c \'d\n'` + "\n", `45 ["echo" "a b\r\n\t\b\a\"\\A\xffz" "c 'd\\n"]`},
	{"echo \"\" ''\n", `11 ["echo" "" ""]`},
	{"echo a\"b c\"\n", `12 ["echo" "ab c"]`},
	{`echo "\x4"` + "\n", `11 ["echo" "x4"]`},
	{`echo "\` + "\n", "Protocol error: unbalanced quotes in request"},
	{"echo \"a\n", "Protocol error: unbalanced quotes in request"},
	{"echo 'a\n", "Protocol error: unbalanced quotes in request"},
	{"echo \"a\"b\n", "Protocol error: unbalanced quotes in request"},
	{"GET / HTTP/1.1\r\n", `16 ["GET" "/" "HTTP/1.1"]`},

	{"*x\r\n", "Protocol error: invalid multibulk length"},
	{"*\r\n", "Protocol error: invalid multibulk length"},
	{"*-\r\n", "Protocol error: invalid multibulk length"},
	{"*+1\r\n", "Protocol error: invalid multibulk length"},
	{"*1\rx", "Protocol error: invalid multibulk length"},
	{"*1\n", "Protocol error: invalid multibulk length"},
	{"*1025\r\n", "Protocol error: invalid multibulk length"},
	{"*1000000000\r\n", "Protocol error: invalid multibulk length"},
	{"*00000000001\r\n", "Protocol error: invalid multibulk length"},
	{"*1\r\nPING\r\n", "Protocol error: expected '$', got 'P'"},
	{"*1\r\n$-1\r\n", "Protocol error: invalid bulk length"},
	{"*1\r\n$\r\n", "Protocol error: invalid bulk length"},
	{"*1\r\n$16385\r\n", "Protocol error: invalid bulk length"},
	{"*1\r\n$536870912\r\n", "Protocol error: invalid bulk length"},
	{"*1\r\n$99999999999999999999\r\n", "Protocol error: invalid bulk length"},
	{"*1\r\n$16384\r\n", "Protocol error: too big request"}, // known before the argument comes
	{"*1\r\n$4\r\nPINGxx", "Protocol error: expected '\\r\\n' after an argument"},
	{"*1\r\n$4\r\nPING\rx", "Protocol error: expected '\\r\\n' after an argument"},
	{"*1\r\n$16370\r\n" + strings.Repeat("x", 16370) + "\r\n", fmt.Sprintf("16384 [%q]", strings.Repeat("x", 16370))},
	{"*1\r\n$16371\r\n", "Protocol error: too big request"},
	{"*1024\r\n" + strings.Repeat("$0\r\n\r\n", 1024), "6151 [" + strings.Repeat(`"" `, 1023) + `""]`},
	{"*1024\r\n" + strings.Repeat("$13\r\n", 1), ""},
	{strings.Repeat("x", maxCommand-1) + "\n", fmt.Sprintf("16384 [%q]", strings.Repeat("x", maxCommand-1))},
	{strings.Repeat("x", maxCommand) + "\n", "Protocol error: too big inline request"},
	{strings.Repeat("x ", 1025) + "\n", "Protocol error: too big inline request"},
	{strings.Repeat(" ", maxCommand), "Protocol error: too big inline request"},
}

func TestParse(t *testing.T) {
	for _, tt := range parses {
		if got := parsed(tt.text); got != tt.want {
			t.Errorf("%.80q is %.200s, want %.200s", tt.text, got, tt.want)
		}
	}
}

// However much of a command has come, it is incomplete, or it is known already what is wrong with it; at some point the
// answer is there, and then it stays.
func TestParseInPieces(t *testing.T) {
	for _, tt := range parses {
		answered := false
		for n := range len(tt.text) + 1 {
			got := parsed(tt.text[:n])
			if got != "" && got != tt.want || got == "" && answered {
				t.Fatalf("the first %d bytes of %.80q are %.200s, want %.200s", n, tt.text, got, tt.want)
			}
			answered = answered || got != ""
		}
	}
}

func TestParseAllocatesNothing(t *testing.T) {
	args := make([][]byte, 0, maxArgs)
	for _, text := range []string{
		"*2\r\n$4\r\nINCR\r\n$7\r\ndefault\r\n", "*1024\r\n$16000\r\n", "*1000000000\r\n",
		"*1\r\n$536870912\r\n",
	} {
		b := []byte(text)
		if n := testing.AllocsPerRun(100, func() { _, _, _ = parse(b, args) }); n != 0 {
			t.Errorf("%q allocates %v times", text, n)
		}
	}
}

// array is a command as clients send it.
func array(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

// Whatever comes: no part of a command has another meaning than all of it, and what was understood is what a client
// would have sent for the same arguments.
func FuzzParse(f *testing.F) {
	for _, tt := range parses {
		f.Add([]byte(tt.text), 3)
	}
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		args, size, err := parse(bytes.Clone(b), nil)
		if p := protocolError(""); err != nil && !errors.As(err, &p) {
			t.Fatalf("the error %v", err)
		}
		if size < 0 || size > len(b) || size > maxCommand || len(args) > maxArgs {
			t.Fatalf("%d bytes, %d arguments", size, len(args))
		}
		if err == nil && size == 0 && len(b) >= maxCommand {
			t.Fatal("it goes on for ever")
		}
		cut = max(0, min(cut, len(b)))
		switch early := parsed(string(b[:cut])); early {
		case "", parsed(string(b)):
		default:
			t.Fatalf("the first %d bytes are %.200s, all are %.200s", cut, early, parsed(string(b)))
		}
		if size == 0 || err != nil || b[0] == '*' && len(args) == 0 {
			return
		}
		var texts []string
		for _, a := range args {
			texts = append(texts, string(a))
		}
		if text := array(texts...); len(text) <= maxCommand {
			if again, _, err := parse([]byte(text), nil); err != nil ||
				fmt.Sprintf("%q", again) != fmt.Sprintf("%q", args) {
				t.Fatalf("%.200q, sent by a client, are %.200q, %v", args, again, err)
			}
		}
	})
}
