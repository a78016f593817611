// Package counter gives dense numbers from a key of the store.
//
// The key has the greatest number that anybody has reserved. An owner claims the block of numbers above it by a
// transaction on the condition that the key is unchanged, and gives them from memory. So no number is in two blocks,
// whatever owners, their pauses and networks do. This rests on no lease, timeout or clock; the one assumption is a
// store that is linearizable and keeps what it committed.
//
// After a lost answer an owner writes again under the same condition, so that the store applies at most one of the two.
// If that conflicts, it reads the key, and knows by the mark of the last block whether that is its own. An owner that
// stops in order writes the unused end of its blocks back if nobody has claimed above it. Otherwise, and after a crash,
// what it had not given is a gap: of two blocks at most. A call for consecutive numbers leaves a gap where a block has
// too few for it and another owner has claimed those that follow.
//
// No clock bounds what dead owners have reserved. So after the store has lost data, nobody claims until an operator has
// said above which number to go on. Whoever notices the loss changes the era, another key, on which every claim depends
// too: it must be the era that the record was written in. The living then raise the record above all that they know, so
// that it shows the least number that an operator can say.
//
// Step, a pure function, makes the decisions; Owner drives it. Rule says which numbers there are at a time: those of a
// date, or of a tick. Blocks gives the numbers of blocks, or, in strict order, Queue.
package counter
