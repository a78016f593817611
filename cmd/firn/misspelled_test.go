package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/setting"
)

// No variable that another command reads, and none that Kubernetes sets for a service called firn, counts as misspelled.
func TestVariablesOfOthersAreNotMisspelled(t *testing.T) {
	ofServe, ofClients := serveFlags(), &pflag.FlagSet{}
	new(serverFlags).addPublic(ofClients)
	var admin string
	setting.Text(ofClients, &admin, "admin", "URL", "")
	env := map[string]string{}
	for name := range strings.FieldsSeq("SERVICE_HOST SERVICE_PORT SERVICE_PORT_HTTP PORT PORT_8080_TCP PORT_8080_TCP_ADDR PORT_8080_TCP_PORT PORT_8080_TCP_PROTO") {
		env["FIRN_"+name] = "x"
	}
	for _, flags := range []*pflag.FlagSet{ofServe, ofClients} {
		flags.VisitAll(func(f *pflag.Flag) { env[setting.Variable(f.Name)] = "x" })
	}
	for _, flags := range []*pflag.FlagSet{ofServe, ofClients} {
		if found := misspelled(flags, env); len(found) > 0 {
			t.Errorf("%v", found)
		}
	}
}
