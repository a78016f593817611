package main

// advance are faults by which an ID does not exceed the one that a caller has seen, or ID time moves too far.
var advance = []mutant{
	{
		"an ID may be the one to exceed", "advance.go",
		"g.packing.id(place) > after", "g.packing.id(place) >= after",
		".", "^TestAdvanceExceedsEveryID$",
	},
	{
		"ID time moves to the bound", "advance.go",
		"case place < end && ahead <= most:", "case ahead <= most:",
		".", "^TestAdvanceHasALimit$",
	},
	{
		"ID time moves ahead without a limit", "advance.go",
		"case place < end && ahead <= most:", "case place < end:",
		".", "^TestAdvanceHasALimit$",
	},
	{
		"who advances a generator forgets what others have taken", "advance.go",
		"for next < least && !g.next.CompareAndSwap(next, least) {", "for next = least; next != g.next.Swap(next); {",
		".", "^TestGeneratorUnderAnyClock$",
	},
	{
		"who advances a generator stops it no more", "advance.go",
		"place := max(next, least)", "place := least",
		".", "^TestAdvanceFromAFloor$",
	},
	{
		"all wait until the clock is where ID time is", "advance.go",
		"if needs := ahead + time", "if needs := min(0, ahead) + time",
		".", "^TestAdvanceMovesEverybody$",
	},
	{
		"ID time stays ahead", "generator.go",
		"if g.lead.Load() > 0 && (", "if g.lead.Load() < 0 && (",
		".", "^TestAdvanceMovesEverybody$",
	},
	{
		"a lead outlives the time for which it was needed", "advance.go",
		"uint64(max(g.ahead(next-1, now), 0)))", "math.MaxUint64)",
		".", "^TestLeadEndsWhereTheClockIsThere$",
	},
	{
		"the lead shrinks below what was advanced meanwhile", "advance.go",
		"if ahead := uint64(max(g.ahead(next, now), 0)); ahead > g.reach(next, lead) || ahead <= g.reach(next, " +
			"shorter) {",
		"{",
		".", "^TestLateShorterLead$",
	},
	{
		"an advanced generator's first ID of a tick tells how many came before", "advance.go",
		"least = g.enter(least)", "_ = g.enter(least)",
		".", "^TestAdvanceBeginsByChance$",
	},
	{
		"a floor counts as an ID that is ahead", "advance.go",
		"next == stopped || next <= g.unused", "next == stopped",
		".", "^TestAdvanceFromAFloor$",
	},
	{
		"saturated generators push each other ahead", "advance.go",
		" - time.Duration(g.lookAhead.Load()); needs > 0 {", "; needs > 0 {",
		".", "^TestSaturationPushesNobodyAhead$",
	},
	{
		"a saturated generator pushes itself ahead", "advance.go",
		"if next >= least && next != g.unused {", "if next > least && next != g.unused {",
		".", "^TestSaturationPushesNobodyAhead$",
	},
	{
		"all wait for the clock when another node ID takes the place of one that is ahead",
		"internal/core/peer/tenure.go",
		"used.After(s.m.now())", "used.Before(time.Time{})",
		"./internal/core/peer", "^TestIDTimeStaysWithTheNextNodeID$",
	},
	{
		"everybody moves ID time as far as clocks may differ", "internal/service/calls/after.go",
		"return anyonesAhead", "return peer.MaxAhead",
		"./internal/service/calls", "^TestWhoMayMoveIDTime$",
	},
	{
		"an ID of another layout is a fault of the node", "internal/service/calls/after.go",
		"notOfHereError{Input(fmt.Errorf(\"after: %w; want an ID of this sequencer\", err))}",
		"notOfHereError{fmt.Errorf(\"after: %w; want an ID of this sequencer\", err)}",
		"./internal/service/calls", "^TestReadAfter$",
	},
	{
		"a node is avoided since a caller's ID was too far ahead of it", "internal/service/calls/forward.go",
		"return e.after\n", "return false\n",
		"./internal/service/calls", "^TestAfterAnotherNode$",
	},
}
