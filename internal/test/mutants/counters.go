package main

const (
	counted  = "^TestNoNumberIsReservedTwice$"
	ofOwners = "^Test[^N]" // all but the exploration
)

// counters are faults by which a counter gives a number twice, or leaves one out.
var counters = []mutant{
	{
		"a record of another owner is taken for the own", "internal/core/counter/state.go",
		"mine := v.Mine && changed", "mine := v.Mine || changed",
		"./internal/core/counter", counted,
	},
	{
		"the own claim is not known again", "internal/core/counter/state.go",
		"		case mine:\n			return s.use(v.Record)", "",
		"./internal/core/counter", counted,
	},
	{
		"an owner forgets that a claim is in doubt", "internal/core/counter/state.go",
		"		s.Doubt = true", "",
		"./internal/core/counter", counted,
	},
	{
		"numbers are given back that may have been given back before", "internal/core/counter/state.go",
		"case otherEra, doubt && !mine:", "case otherEra:",
		"./internal/core/counter", counted,
	},
	{
		"numbers are given back below what an operator said", "internal/core/counter/state.go",
		"case otherEra, doubt && !mine:", "case doubt && !mine:",
		"./internal/core/counter", counted,
	},
	{
		"blocks of another era are used on", "internal/core/counter/state.go",
		"		case otherEra: // an", "		case false: // an",
		"./internal/core/counter", counted,
	},
	{
		"numbers are given back above which others have claimed", "internal/core/counter/state.go",
		"b.Size() > 0 && b.To == last", "b.Size() > 0",
		"./internal/core/counter", counted,
	},
	{
		"the record is not raised after a loss", "internal/core/counter/state.go",
		"		case v.Last < s.Greatest:\n", "		case false:\n",
		"./internal/core/counter", counted,
	},
	{
		"a block goes beyond the maximum", "internal/core/counter/state.go",
		"min(max(e.Size, 1), l.Last-last)", "max(e.Size, 1)",
		"./internal/core/counter", counted,
	},
	{
		"a counter begins at 1 whatever it is to exceed", "internal/core/counter/state.go",
		"max(s.Known.Last, l.After)", "s.Known.Last",
		"./internal/core/counter", counted,
	},
	{
		"a claim is applied in another era", "internal/core/counter/owner.go",
		"{Key: floor.EraKey, Version: w.IfEra}", "{Key: floor.EraKey + \"s\"}",
		"./internal/core/counter", "Era",
	},
	{
		"a claim does not heed its guards", "internal/core/counter/owner.go",
		"txn.If = append(txn.If, guards...)", "_ = guards",
		"./internal/core/counter", ofOwners,
	},
	{
		"every mark is the own", "internal/core/counter/owner.go",
		`mark != "" && o.stamps.Sent(mark)`, `mark != ""`,
		"./internal/core/counter", ofOwners,
	},
	{
		"callers wait for an owner that has left", "internal/core/counter/owner.go",
		"	case o.state.Phase == Released:\n		o.blocks.Stop(ErrReleased)\n", "",
		"./internal/core/counter", "Era",
	},
	{
		"a stop lets callers take what it returns", "internal/core/counter/blocks.go",
		"r.used.Swap(math.MaxInt64/2)", "r.used.Load()+0*math.MaxInt",
		"./internal/core/counter", "Each",
	},
	{
		"a block that comes after the stop is given", "internal/core/counter/blocks.go",
		"		if b.stopped == nil {\n			b.next", "		if true {\n			b.next",
		"./internal/core/counter", ofOwners,
	},
	{
		"the next block is asked for when the present one is used up", "internal/core/counter/blocks.go",
		"(block.Size() + 3) / 4", "block.Size()",
		"./internal/core/counter", ofOwners,
	},
	{
		"a block is as large as the burst that asked for it", "internal/core/counter/size.go",
		"min(size, growth*float64(now),", "min(size,",
		"./internal/core/counter", ofOwners,
	},
	{
		"a member attaches to a counter", "internal/core/cluster/sequencer.go",
		"	if s.definition.Claimed() {\n		return refused(noNodeIDs)\n	}\n", "",
		"./internal/core/cluster", "^TestACounterHasNothingToDeal$",
	},
	{
		"a counter is in a region", "sequencer/region.go",
		"		if r != (Region{}) {\n			return Range{}, fmt",
		"		if false {\n			return Range{}, fmt",
		"./sequencer", all,
	},
	{
		"a copy of a process gives the same numbers", "internal/core/peer/copies.go",
		"	m.abandonCounters()\n", "",
		"./internal/core/peer", "^TestACopiedMemberDropsItsBlocks$",
	},
	{
		"a counter gives what it has after a loss", "internal/core/peer/rollback.go",
		"	p.loseCounters()\n", "",
		"./internal/core/peer", "^TestACounterWhoseStore",
	},
	{
		"a counter that nobody uses is not lost", "internal/core/peer/rollback.go",
		"	p.tellLoss(ctx)\n", "",
		"./internal/core/peer", "^TestACounterThat",
	},
	{
		"a member that claims nothing sees no loss", "internal/core/peer/counter_claim.go",
		"if c.check(); failures", "if failures",
		"./internal/core/peer", "^TestAMemberThatClaimsNothing",
	},
	{
		"a counter goes on while others may give greater numbers", "internal/core/peer/counters.go",
		"c.Reserved > 0 && !c.Lost", "c.Reserved < 0",
		"./internal/core/peer", "^TestACounterInUse",
	},
	{
		"numbers of a destroyed counter are claimed", "internal/core/peer/counter_claim.go",
		"o.Claim(ctx, c.guard)", "o.Claim(ctx)",
		"./internal/core/peer", "^TestNobodyClaims",
	},
	{
		"a counter has the name of snowflakes", "internal/core/peer/generation.go",
		"i.Created != 0 && kindOf(i.Definition) != kindOf(d)", "false",
		"./internal/core/peer", "^TestKinds",
	},
	{
		"numbers in strict order are given to who comes later", "internal/core/counter/queue.go",
		"	first := block.From\n",
		"	first := block.From\n	q.sent, q.waiting = alive(append(q.sent, q.waiting...)), nil\n",
		"./internal/core/counter", "Strict",
	},
	{
		"numbers are claimed for callers who have given up", "internal/core/counter/queue.go",
		"all := alive(append(q.sent, q.waiting...))", "all := append(q.sent, q.waiting...)",
		"./internal/core/counter", "Strict",
	},
	{
		"a call for more than are left takes what is left from others", "internal/core/counter/queue.go",
		"if w.n > left-d.Short {", "if false {",
		"./internal/core/counter", "Strict",
	},
	{
		"numbers of yesterday are given", "internal/core/counter/blocks.go",
		"b.clock() >= r.until", "false",
		"./internal/core/counter", "Dated|Expired",
	},
	{
		"a date begins below numbers that are reserved", "internal/core/counter/state.go",
		"last := max(s.Known.Last, l.After)", "last := l.After",
		"./internal/core/counter", ofOwners,
	},
	{
		"a wrong clock may reserve any date", "internal/core/counter/limits.go",
		"now.Add(floor.Skew), where); reserved <= int64(l)", "time.Unix(0, 1<<62), where); reserved <= 1<<62",
		"./internal/core/counter", "Limits|WrongClock",
	},
	{
		"strict IDs follow the clock into the past", "internal/core/counter/limits.go",
		"		After: max(int64(after), ticks(now)<<l.SequenceBits-1),", "		After: int64(after),",
		"./internal/core/counter", "Limits",
	},
	{
		"a member whose clock is wrong claims dates", "internal/core/peer/counter_claim.go",
		"if c.rule.Timed() {", "if false {",
		"./internal/core/peer", "AWrongClockClaims",
	},
	{
		"a claim relies on how the clock was before it stepped", "internal/core/peer/counter_claim.go",
		"err := c.m.checkClock(ctx, c.m.options.Window/3)", "err := c.m.judged().err()",
		"./internal/core/peer", "AWrongClockClaims",
	},
	{
		"a new definition gives smaller numbers", "internal/core/counter/keys.go",
		"max(v.Last, l.After) >= l.Last && !l.Until.IsZero()", "l.Last < 0",
		"./internal/core/peer", "TestOrders",
	},
	{
		"numbers of a new date are waited for", "internal/core/peer/counter_claim.go",
		"ok && none.Until.After(c.m.now())", "ok && none == nil",
		"./internal/core/peer", "OverMidnight",
	},
	{
		"a day without a midnight begins on the day before", "sequencer/dated.go",
		"if at.Day() != noon.Day() {", "if false {",
		"./sequencer", "DaysBegin",
	},
	{
		"a day with two midnights begins with the second", "sequencer/dated.go",
		"last.Day() == noon.Day()", "last.Day() < 0",
		"./sequencer", "DaysBegin",
	},
}
