// Package firn makes unique, time-ordered 64-bit IDs ("snowflakes") in memory, faster
// than it could read the clock for each, and safely under any clock while it runs.
//
// An ID is a place in time:
//
//	 63        22        12        0
//	+-+---------+---------+---------+
//	|0|  time   |  node   |sequence |     the default layout: 41 + 10 + 12 bits
//	+-+---------+---------+---------+
//
// A [Layout] says how the 63 bits are split, what instant the time counts from
// and how long one step of it (a tick) is. A [Generator] makes the IDs of one
// node. Inside a node a counter that only moves forward makes them unique; across
// nodes the node ID does, so two generators of one layout must never share a node
// ID. In a single process, choose it; for a cluster, package member gets node
// IDs and keeps that promise through crashes, pauses and wrong clocks.
//
// A generator remembers nothing when its process ends. Started again while the clock
// is behind what it showed before, even by milliseconds, it repeats the IDs of that
// time. [WithHorizonFile] closes this: the generator keeps in a small file how far it
// may go, and the next one begins there. Then one process with a disk is as safe as a
// cluster of one node. Nothing here covers
//
//   - two processes with one node ID, unless they share the file, which admits one;
//   - a process whose memory is copied while it runs: a virtual machine that is
//     resumed twice or set back, a container restored from a checkpoint;
//   - a disk that is set back or cloned as a whole, or an earlier version written over
//     the file: only the clock then separates new IDs from those before.
//
// IDs of one generator ascend; a [Local] gives one goroutine its own, in a third of the time. IDs of several
// generators are ordered only as well as their clocks agree. Where IDs are taken faster than 512 000 in a second,
// their times come from a [CoarseClock], and may lie a millisecond or two behind; else they are exact. An ID tells its
// reader when and by which node it was made: [Layout.Time] and [Layout.NodeID] read it, and a [Sealer] hides it from
// strangers. Where IDs must be impossible to guess, use random ones instead.
//
// An application that fences node IDs by itself gives each generator a floor and a
// bound ([WithFloor], [WithBound]), moves the bound as it extends its lease
// ([Generator.SetBound]), and decides about steps of the wall ([SteadyClock]).
package firn
