// Package sequencer has what applications say about sequencers, the named ID spaces of a cluster: their definitions, names,
// and node IDs. It holds values only: package member makes IDs with them.
package sequencer
