package main

// coarse are faults of a clock that ticks, of generators that read it, and of the look-ahead.
var coarse = []mutant{
	{
		"a tick shows a reading that was overtaken", "coarse_clock.go",
		"			if c.shown.CompareAndSwap(old, now) {\n				return now\n",
		"			if c.shown.Store(now); true {\n				return now\n",
		".", "^TestCoarseClock",
	},
	{
		"readings of a sleeping clock are not counted", "coarse_clock.go",
		"c.shown.CompareAndSwap(old, old+1)", "c.shown.CompareAndSwap(old, old)",
		".", "^TestCoarseClock",
	},
	{
		"a clock that is read seldom ticks", "coarse_clock.go",
		" && now-c.began.Swap(now) < int64(coarseTick)", "",
		".", "^TestCoarseClock",
	},
	{
		"a clock that nobody reads ticks on", "coarse_clock.go",
		"if c.left--; c.left > 0 {", "if c.left > 0 {",
		".", "^TestCoarseClock",
	},
	{
		"a clock that fell asleep shows its last tick", "coarse_clock.go",
		"	c.shown.Store(c.readings + 1)", "	c.readings++",
		".", "^TestCoarseClock",
	},
	{
		"a caller waits for a tick that is late", "generator.go",
		"		return c.Now(), false\n", "		return c.Now(), true\n",
		".", "^TestLateCoarseClockCostsNoRate$",
	},
	{
		"a wait trusts a tick that is late", "generator.go",
		"	if g.coarse != nil {\n		return g.coarse.Sync()",
		"	if g.coarse != nil {\n		return g.coarse.Now()",
		".", "^TestLateCoarseClockCostsNoRate$",
	},
	{
		"a new generator begins by an old tick", "generator.go",
		"	now := time.Unix(0, g.now())\n	if _, err := layout",
		"	now := time.Unix(0, g.clock.Now())\n	if _, err := layout",
		".", "^TestNewGeneratorLooksAtTheSource$",
	},
	{
		"single IDs lie behind for as long as ticks are late", "generator.go",
		" && next%syncEvery != 0 &&", " &&",
		".", "^TestBusyGeneratorLooksAtTheSource$",
	},
	{
		"batches lie behind for as long as ticks are late", "generator.go",
		"(g.next.Load()+n-1)%syncEvery < n", "n == 1 && g.next.Load()%syncEvery == 0",
		".", "^TestBusyGeneratorLooksAtTheSource$",
	},
	{
		"the short way goes beyond the bound", "generator.go",
		"		next < g.limit.Load() && g.next", "		g.next",
		".", "^TestShortWayFollowsTheRule$",
	},
	{
		"the short way goes on in a tick that has ended", "generator.go",
		"-begins < g.tick && next%", "-begins < 2*g.tick && next%",
		".", "^TestShortWayFollowsTheRule$",
	},
	{
		"fences go by the clock that ticks", "internal/core/peer/member.go",
		"time.Unix(0, m.options.Clock.Now())", "time.Unix(0, m.clock.Now())",
		"./internal/core/peer", "^TestFencesGoByTheTrueClock$",
	},
	{
		"the look-ahead does not follow", "wait.go",
		"	if lost <= 0 {\n", "	if lost <= 0 || true {\n",
		".", "^Test(Follow|LookAheadFollows)",
	},
	{
		"the look-ahead grows beyond its limit", "wait.go",
		"return min(rest+2*(lookAhead-rest+min(uint64(lost), most)), most)",
		"return rest + 2*(lookAhead-rest+min(uint64(lost), most))",
		".", "^Test(Follow|LookAheadFollows)",
	},
	{
		"the look-ahead stays long", "wait.go",
		"return max(lookAhead, least+uint64(shrinkBy)) - uint64(shrinkBy)", "return lookAhead",
		".", "^Test(Follow|LookAheadFollows)",
	},
	{
		"a longer look-ahead means longer sleeps, not earlier ones", "wait.go",
		"time.Duration(g.reach(next, g.lead.Load())-g.leastAhead/2)", "time.Duration(g.lookAhead.Load()/2)",
		".", "^TestALongLookAheadWakesEarlier$",
	},
}
