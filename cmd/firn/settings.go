package main

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
)

// settings are the options of firn serve that were found to fit together.
type settings struct {
	serveOptions
	layout       firn.Layout
	nodes        *cluster.Range // of the default sequencer to choose from; nil: all
	inDatacenter bool           // only node IDs of the datacenter, in every sequencer that has it
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
		return s, usagef("this machine's clock is wrong, or %s: %w", from.of("epoch"), err)
	}
	s.nodes, err = o.nodes(flags, from, s.layout)
	return s, err
}

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
