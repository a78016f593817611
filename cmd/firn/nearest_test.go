package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestNearest(t *testing.T) {
	known := strings.Fields("serve id bench cluster list layout sequencer http-addr http-adder")
	for typed, want := range map[string]string{
		"serv": "serve", "srve": "serve", "sevre": "serve", "lsit": "list", "clutser": "cluster", "sequencers": "sequencer", "http-adr": "http-addr",
		"ls": "", "is": "", "xyzzy": "", "": "", "benchmark": "", "led": "",
	} {
		if got := nearest(typed, known); got != want {
			t.Errorf("%q is near %q; want %q", typed, got, want)
		}
	}
}

// No variable that another command reads, and none that Kubernetes sets for a service called firn, counts as misspelled.
func TestVariablesOfOthersAreNotMisspelled(t *testing.T) {
	ofServe, ofClients := serveFlags(), &pflag.FlagSet{}
	new(serverFlags).addPublic(ofClients)
	var admin string
	addText(ofClients, &admin, "admin", "URL", "")
	env := map[string]string{}
	for _, name := range strings.Fields("SERVICE_HOST SERVICE_PORT SERVICE_PORT_HTTP PORT PORT_8080_TCP PORT_8080_TCP_ADDR PORT_8080_TCP_PORT PORT_8080_TCP_PROTO") {
		env[prefix+name] = "x"
	}
	for _, flags := range []*pflag.FlagSet{ofServe, ofClients} {
		flags.VisitAll(func(f *pflag.Flag) { env[variable(f.Name)] = "x" })
	}
	for _, flags := range []*pflag.FlagSet{ofServe, ofClients} {
		if found := misspelled(flags, env); len(found) > 0 {
			t.Errorf("%v", found)
		}
	}
}
