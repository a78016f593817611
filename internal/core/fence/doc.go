// Package fence owns node IDs in time.
//
// Owners may use a node ID one after another, but only one owner may use each instant of ID time. So an owner
// writes its horizon, the instant that its IDs stay below, before they come near it; the next owner begins at
// that horizon, its floor. Owners thus have disjoint stretches of time, whatever their clocks, pauses and
// networks do. This rests on no lease, timeout, watch or clock; the one assumption is a store that is
// linearizable and keeps what it committed.
//
// Step, a pure function, makes the decisions; Fence drives it. A Fence has no goroutine and no timer of its own.
//
// To close a prefix, a caller changes a guard of its owners' claims and then calls Revoke: no owner gets beyond
// the horizon that it returns.
//
// The keys, below a prefix that the caller chooses, and their values:
//
//	live/<node>                 ephemeral    "<operation> <since> <owner>"
//	last_reported_time/<node>   stays        "<horizon> <operation> <stamp>"
//
// The times are Unix milliseconds in decimal. The operation is the fence's own ID, which begins with
// the name of its Holder, or that of a reservation, see Reserve; each write has a stamp of its own. A
// fence recognizes its writes after a lost answer by the stamps that it has sent. A write with its
// operation and a stamp that it never sent is one of a copy of the process: then it is lost, and its
// use ends.
package fence
