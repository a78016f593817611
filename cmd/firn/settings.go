package main

import (
	"fmt"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/server/auth"
)

// settings are the options of firn serve that were found to fit together.
type settings struct {
	serveOptions
	layout       firn.Layout
	nodes        *cluster.Range // of the default sequencer to choose from; nil: all
	inDatacenter bool           // only node IDs of the datacenter, in every sequencer that has it
}

// configured is what flags, variables and the config file say, and where each setting comes from.
func (o *serveOptions) configured(flags *pflag.FlagSet, env map[string]string) (settings, sources, error) {
	from := sources{}
	if err := from.fromEnvironment(flags, env); err != nil {
		return settings{}, from, err
	}
	if o.config != "" {
		if err := from.fromFile(flags, o.config); err != nil {
			return settings{}, from, err
		}
	}
	s, err := o.settings(flags, from)
	return s, from, err
}

// settings checks what can be checked without opening anything.
func (o *serveOptions) settings(flags *pflag.FlagSet, from sources) (settings, error) {
	s := settings{serveOptions: *o, inDatacenter: flags.Changed("datacenter")}
	for _, pair := range [][2]string{{"data-dir", "etcd"}, {"node", "datacenter"}, {"etcd-password", "etcd-password-file"}} {
		if flags.Changed(pair[0]) && flags.Changed(pair[1]) {
			return s, usagef("%s and %s exclude each other; give one", from.of(pair[0]), from.of(pair[1]))
		}
	}
	if len(o.etcd.Endpoints) == 0 {
		for _, name := range []string{"etcd-ca", "etcd-cert", "etcd-key", "etcd-user", "etcd-password", "etcd-password-file", "etcd-prefix"} {
			if flags.Changed(name) {
				return s, usagef("%s has no effect without --etcd; the etcd inside is used by nobody else", from.of(name))
			}
		}
	}
	if err := s.setDoor(flags, from); err != nil {
		return s, err
	}
	if flags.Changed("otlp-ratio") && o.otlpEndpoint == "" {
		return s, usagef("%s has no effect without --otlp-endpoint; give both", from.of("otlp-ratio"))
	}
	if o.passwordFile != "" {
		password, err := os.ReadFile(o.passwordFile)
		if err != nil {
			return s, usagef("%s: %w", from.of("etcd-password-file"), err)
		}
		s.etcd.Password = strings.TrimRight(string(password), "\r\n")
	}
	var err error
	if s.layout, err = o.layout.chosen(); err != nil {
		return s, err
	}
	if _, err := s.layout.TickAt(time.Now()); err != nil {
		// It is no usageError: a clock can be set right while the configuration stays, so that another start may succeed.
		return s, fmt.Errorf("this machine's clock is wrong, or %s: %w", from.of("epoch"), err)
	}
	s.nodes, err = o.nodes(flags, from, s.layout)
	return s, err
}

// setDoor checks who may come in, and where.
func (s *settings) setDoor(flags *pflag.FlagSet, from sources) error {
	for name, file := range map[string]string{
		"tokens": s.tokensFile, "tls-cert": s.certificates.Cert, "tls-key": s.certificates.Key, "tls-client-ca": s.certificates.ClientCA,
	} {
		if flags.Changed(name) && file == "" { // a variable of a shell that is not set must not open the door
			return usagef("%s is empty; want the name of a file, or leave it out", from.of(name))
		}
	}
	for _, pair := range [][2]string{{"tls-cert", "tls-key"}, {"tls-key", "tls-cert"}, {"tls-client-ca", "tls-cert"}} {
		if flags.Changed(pair[0]) && !flags.Changed(pair[1]) {
			return usagef("%s has no effect without --%s; give both", from.of(pair[0]), pair[1])
		}
	}
	if !flags.Changed("admin-addr") {
		_, port, _ := net.SplitHostPort(s.httpAddr) // it was parsed before
		number, _ := strconv.Atoi(port)
		if number != 0 { // else any port will do here, too
			number += adminPortAbove
		}
		if number > math.MaxUint16 {
			return usagef("%s: there is no port %d for administrators; say with --admin-addr where they are served", from.of("http-addr"), number)
		}
		s.adminAddr = net.JoinHostPort("127.0.0.1", strconv.Itoa(number))
		return nil
	}
	if host, _, _ := net.SplitHostPort(s.adminAddr); s.adminAddr != noAddress && s.tokensFile == "" && !auth.Loopback(host) {
		return usagef("%s: others can reach %s, so that it needs --tokens; want 127.0.0.1 or [::1], or tokens", from.of("admin-addr"), s.adminAddr)
	}
	return nil
}

// adminPortAbove is how far the port of administrators is above that of everybody.
const adminPortAbove = 1000

// nodes are the node IDs to choose from; nil is all.
func (o *serveOptions) nodes(flags *pflag.FlagSet, from sources, layout firn.Layout) (*cluster.Range, error) {
	switch {
	case flags.Changed("node"):
		if o.node >= layout.NodeIDs() {
			return nil, usagef("%s: the layout %v has node IDs 0 to %d, not %d", from.of("node"), layout, layout.NodeIDs()-1, o.node)
		}
		return &cluster.Range{From: o.node, To: o.node}, nil
	case flags.Changed("datacenter"):
		first, last, err := layout.DatacenterNodes(o.datacenter)
		if err != nil {
			return nil, usagef("%s: %w", from.of("datacenter"), err)
		}
		return &cluster.Range{From: first, To: last}, nil
	}
	return nil, nil
}
