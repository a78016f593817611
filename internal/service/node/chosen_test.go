package node

import (
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/test/logtest"
)

// A node tells once of each sequencer of a chosen node ID that it is not there yet, or does not have that node ID, and
// again once it is another.
func TestChosen(t *testing.T) {
	few, strict := cluster.Define(firn.Default), cluster.Define(firn.Default)
	few.Nodes, strict.Order = 8, cluster.OrderStrict
	counter := cluster.Definition{Kind: cluster.Counter}
	create := func(d cluster.Definition) cluster.Command {
		return cluster.CreateSequencer{Sequencer: "orders", Definition: d}
	}
	const (
		absent = `level=INFO msg="the sequencer of a chosen node ID does not exist yet" sequencer=orders node=9`
		misfit = `level=WARN msg="the chosen node ID can't be used" sequencer=orders node=9 err="there are 0 to 7" do=`
		none   = `err="counters, and sequencers in strict order, have no node IDs"`
	)
	for name, c := range map[string]struct {
		log  []cluster.Command
		want []string
	}{
		"it is absent":          {nil, []string{absent}},
		"it fits":               {[]cluster.Command{create(cluster.Define(firn.Default))}, []string{absent}},
		"it has fewer":          {[]cluster.Command{create(few)}, []string{absent, misfit}},
		"it is a counter":       {[]cluster.Command{create(counter)}, []string{absent, none}},
		"it is in strict order": {[]cluster.Command{create(strict)}, []string{absent, none}},
		"it comes again": {
			[]cluster.Command{create(few), cluster.DestroySequencer{Sequencer: "orders"}, create(few)},
			[]string{absent, misfit, absent, misfit},
		},
	} {
		var text logtest.Journal
		var v cluster.Value
		told := chosen{}
		look := func() {
			told.look(text.Logger(), map[string]int64{"default": 7, "orders": 9}, v,
				func(_ string, d cluster.Definition) error {
					if d.Nodes == few.Nodes {
						return errors.New("there are 0 to 7")
					}
					return nil
				})
		}
		look()
		look()
		for i, command := range c.log {
			v, _ = cluster.Apply(v, cluster.Entry{Position: int64(i + 1), At: time.Unix(0, 0), Command: command})
			look()
			look()
		}
		t.Log(name)
		text.Wants(t, c.want...)
	}
}
