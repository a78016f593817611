package main

// local are faults of the ways that single goroutines have to a generator.
var local = []mutant{
	{
		"a Local gives the first place of another's batch", "local.go",
		"return l.next < l.end &&", "return l.next <= l.end &&",
		".", "^TestLocal",
	},
	{
		"a Local goes on after Stop", "generator.go",
		"	g.least.Store(stopped)\n", "",
		".", "^TestStopCoversWhatALocalHas$",
	},
	{
		"a Local goes on below the ID to exceed", "advance.go",
		"		next = g.next.Load()\n	}\n	g.least.Store(max(g.least.Load(), least))\n",
		"		next = g.next.Load()\n	}\n",
		".", "^TestLocalExceedsWhatAdvanceSays$",
	},
	{
		"a Local goes on below the ID to exceed, which others exceed already", "advance.go",
		"		g.least.Store(max(g.least.Load(), least)) // a Local may have some below\n", "",
		".", "^TestLocalExceedsWhatAdvanceSays$",
	},
	{
		"a stopped generator that is advanced has a Local go on", "advance.go",
		"		g.least.Store(max(g.least.Load(), least)) // a", "		g.least.Store(least) // a",
		".", "^TestStopCoversWhatALocalHas$",
	},
	{
		"a Local goes on in a tick that has ended", "local.go",
		"uint64(now) < l.until", "uint64(now) < l.until+l.g.tick",
		".", "^TestLocalGivesFromItsTick$",
	},
	{
		"a Local has the time of a clock that does not tick once for a batch", "local.go",
		"l.has(l.g.clock.Now())", "l.has(0)",
		".", "^TestLocalGivesFromItsTick$",
	},
	{
		"Locals drop as much as ever", "local.go",
		"		l.recent /= 2\n", "",
		".", "^TestLocalDropsLittle$",
	},
	{
		"Locals hold much of a tick", "local.go",
		"batchShare = 512", "batchShare = 64",
		".", "^TestLocal",
	},
	{
		"Locals share cache lines", "local.go",
		"	_      [cacheLine - 40]byte\n", "",
		".", "^TestLocalsShareNoCacheLine$",
	},
	{
		"a Local of a sequencer keeps its first generator", "internal/core/peer/local.go",
		"if l.generator == g {", "if l.generator != nil {",
		"./internal/core/peer", "^TestLocalOutlivesItsGenerator$",
	},
	{
		"a Local of a sequencer goes below its last node ID's IDs", "internal/core/peer/tenure.go",
		"later(t.fence.Floor(), used)", "t.fence.Floor()",
		"./internal/core/peer", "^TestLocalAscendsAcrossNodeIDs$",
	},
}
