package setting

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := strings.Fields("serve id bench cluster list layout sequencer http-addr http-adder")
	for typed, want := range map[string]string{
		"serv": "serve", "srve": "serve", "sevre": "serve", "lsit": "list", "clutser": "cluster",
		"sequencers": "sequencer", "http-adr": "http-addr",
		"ls": "", "is": "", "xyzzy": "", "": "", "benchmark": "", "led": "",
	} {
		if got := Nearest(typed, known); got != want {
			t.Errorf("%q is near %q; want %q", typed, got, want)
		}
	}
}
