// Package deploy writes the configurations of what stands around firn: load balancers, the init system, Kubernetes,
// monitoring, databases. Parameters go in, a text comes out, and nothing else is touched; firn gen puts it on the
// command line.
//
// Every kind is a struct of parameters. New... returns it with its defaults, and Text checks them and writes the file.
// No parameter can put anything into a file but itself: what is not an address, a name or a path is refused with a
// [ParameterError]. It does not run the programs, and does not install anything.
package deploy

import (
	"embed"
	"fmt"
	"math"
	"strings"
	"text/template"
	"time"
)

// Origin says where a file came from. It stands at the top of each, so that it can be made again.
type Origin struct {
	Version string // of firn
	Command string // the command line that makes it, without the comment sign
}

//go:embed templates
var sources embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"join": strings.Join, "upper": strings.ToUpper, "ordinal": func(i int) int { return i + 1 },
}).ParseFS(sources, "templates/*.tmpl"))

// text fills in the template of a file, unless a parameter was refused.
func (c *checks) text(o Origin, file string, parameters any) (string, error) {
	c.line("version", o.Version)
	c.line("command", o.Command)
	if c.err != nil {
		return "", c.err
	}
	comment := "#"
	if strings.HasSuffix(file, ".sql") {
		comment = "--"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%[1]s Made by firn %[2]s with\n%[1]s\n%[1]s   %[3]s\n%[1]s\n", comment, o.Version, o.Command)
	err := templates.ExecuteTemplate(&b, file+".tmpl", parameters)
	return b.String(), err
}

// Config is the file that firn serve --config reads, /etc/firn/firn.yaml.
type Config struct {
	Keys []Key
}

// Key is a line of a config file, with what is said about it.
type Key struct {
	Name  string
	About []string // lines of its comment
	YAML  string   // its value, as YAML on one line
	Set   bool     // or else it is a comment: the default, or an example
}

// Text is the file.
func (f Config) Text(o Origin) (string, error) {
	var c checks
	for _, k := range f.Keys {
		for _, line := range append([]string{k.Name, k.YAML}, k.About...) {
			c.line(k.Name, line)
		}
	}
	return c.text(o, "firn.yaml", f)
}

// Docker is a Dockerfile that makes an image of a firn that was built before. It is from scratch: there is no other
// image in it that could change, and whose digest would have to be known.
type Docker struct{}

// Text is the Dockerfile.
func (Docker) Text(o Origin) (string, error) { return new(checks).text(o, "Dockerfile", nil) }

// Stopping is how a node stops, by the flags of firn serve.
type Stopping struct {
	// DrainDelay is how long the node still serves after it has said that it stops, until no balancer sends it calls.
	DrainDelay      time.Duration
	ShutdownTimeout time.Duration // how long the calls that it has may take
}

// defaultStopping is that of firn serve. A test compares it with its flags.
var defaultStopping = Stopping{DrainDelay: time.Second, ShutdownTimeout: 10 * time.Second}

// StopTimeout is how many seconds stopping may take, rounded up.
func (s Stopping) StopTimeout() float64 {
	const leaving = 20 * time.Second // the cluster, and to close a quorum of one, when every call is answered
	return math.Ceil((s.DrainDelay + s.ShutdownTimeout + leaving).Seconds())
}

func (c *checks) stopping(s Stopping) {
	c.duration("drain-delay", s.DrainDelay, 0)
	c.duration("shutdown-timeout", s.ShutdownTimeout, time.Millisecond)
}
