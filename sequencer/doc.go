// Package sequencer describes sequencers, the named ID spaces of a cluster: their definitions, names and node IDs. It
// makes no IDs: package member does.
package sequencer
