package respapi

import (
	"bytes"
	"strings"
	"testing"
)

// Whatever a client says, it gets valid replies, and the same ones however what it says is cut into pieces.
func FuzzServe(f *testing.F) {
	for _, s := range []string{
		strings.Repeat(array("INCR", "default"), 20) + array("INCR", "orders") + array("INCR", "default"),
		strings.Repeat("INCR default\r\n", 3) +
			"HELLO 3\r\nFIRN.DECODE 5\r\nCOMMAND DOCS incr\r\nCLIENT GETNAME\r\nRESET\r\nCLIENT GETNAME\r\n",
		"incr \"default\"\nincr \"default\"\nincr default\"\n",
		array("INCRBY", "default", "1") + array("FIRN.NEXT", "default", "5") + strings.Repeat(array("firn.id",
			"default"), 3) + array("firn.ids", "default", "4") + array("get", "a\r\nb", strings.Repeat("x", 300)),
		array("HELLO", "3", "AUTH", "a", "b", "SETNAME", "c") + array("PING", "\x00") + array("QUIT") + array("PING"),
		"POST / HTTP/1.1\r\n", "*1000000000\r\n", "*1\r\n$536870912\r\n",
		"COMMAND\r\nCONFIG GET save\r\nSELECT 1\r\nECHO ''\r\n",
	} {
		f.Add([]byte(s), 1)
		f.Add([]byte(s), 50)
	}
	f.Fuzz(func(t *testing.T, says []byte, piece int) {
		if len(says) > 2000 || bytes.Contains(bytes.ToLower(says), []byte("info")) { // which tells the time
			return
		}
		whole := talk(newServer(t, newCounting()), string(says), maxCommand)
		if got, err := show(whole); err != nil {
			t.Fatalf("%q: %v, after %s", says, err, got)
		}
		if cut := talk(newServer(t, newCounting()), string(says), max(1, piece)); cut != whole {
			t.Fatalf("%q: in pieces it is %q, at once %q", says, cut, whole)
		}
	})
}
