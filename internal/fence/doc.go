// Package fence owns node IDs in time.
//
// A node ID may be used by one owner after another, but an instant of ID time by one
// owner only. So an owner writes down how far it may go, its horizon, before it goes there;
// whoever owns the node ID next begins at that horizon, its floor. Owners thus have
// disjoint stretches of time, whatever their clocks, pauses and networks do. Nothing
// here rests on a lease, a timeout, a watch or a clock; the one assumption is a store that is
// linearizable and keeps what it committed.
//
// The decisions are Step, a pure function; Fence feeds it. A Fence has no goroutine and
// no timer of its own.
//
// A prefix is closed to its owners by changing the guard of their claims, and then by Revoke: nobody
// gets beyond the horizon that it returns.
//
// The keys, below a prefix of the caller's, and their values:
//
//	live/<node>                 ephemeral    "<operation> <since> <owner>"
//	last_reported_time/<node>   stays        "<horizon> <operation>"
//
// The times are Unix milliseconds in decimal. The operation is the fence's own ID, by which it
// finds its own writes when an answer was lost.
package fence
