package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// compose reads a file as docker compose does, with its schema, and checks that its services are those that they name
// to each other.
func compose(in io.Reader, out io.Writer) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	project, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir: "/", ConfigFiles: []types.ConfigFile{{Filename: "/compose.yaml", Content: text}},
	})
	if err != nil {
		return err
	}
	published := map[string]string{}
	for _, name := range project.ServiceNames() {
		s := project.Services[name]
		fmt.Fprintf(out, "service %s\n", name)
		list := ""
		for _, arg := range s.Command {
			if machines, ok := strings.CutPrefix(arg, "--quorum="); ok {
				list = machines
			}
		}
		machines := strings.Split(list, ",")
		stored := slices.ContainsFunc(s.Command, func(arg string) bool { return strings.HasPrefix(arg, "--store=") })
		asks := "--quorum-key-file=/run/secrets/"
		if stored {
			asks = "--etcd-password-file=/run/secrets/"
		}
		switch {
		case stored && (list != "" || len(s.Volumes) > 0 || s.Hostname != name):
			return fmt.Errorf("%s uses a store, has the host name %q, the quorum %q, and volumes %v", name, s.Hostname,
				list, s.Volumes)
		case stored:
		case s.Hostname != name || !slices.Contains(machines, name+":7420") || len(machines) != len(project.Services):
			return fmt.Errorf("%s has the host name %q, and names %s; want itself and all others", name,
				s.Hostname, list)
		case len(s.Volumes) != 1 || s.Volumes[0].Source != name || s.Volumes[0].Target != "/var/lib/firn":
			return fmt.Errorf("%s keeps its data in %v; want a volume of its own", name, s.Volumes)
		}
		switch {
		case len(s.Secrets) != 1 || !slices.Contains(s.Command, asks+s.Secrets[0].Source):
			return fmt.Errorf("%s has the secrets %v, and %v", name, s.Secrets, s.Command)
		case s.HealthCheck == nil || s.StopGracePeriod == nil || !s.ReadOnly ||
			!slices.Equal(s.CapDrop, []string{"ALL"}):
			return fmt.Errorf("%s has no health check, no time to stop, or may do what it need not", name)
		}
		for _, p := range s.Ports {
			if other := published[p.Published]; other != "" || p.HostIP != "127.0.0.1" || p.Target != 8080 {
				return fmt.Errorf("%s has %s:%s for %d, and %q has it, too", name, p.HostIP, p.Published,
					p.Target, other)
			}
			published[p.Published] = name
		}
	}
	return nil
}
