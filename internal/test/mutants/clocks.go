package main

const judged = "^Test(Judge|Explore)"

// clocks are faults by which right clocks are refused, or wrong ones served.
var clocks = []mutant{
	{
		"an entry of the log from a clock that is ahead spoils those that follow", "internal/core/clocks/order.go",
		"return times[ends[n]].After(at)", "return n == len(ends)",
		"./internal/core/clocks", "^TestOrder",
	},
	{
		"the latest entries are believed though they are of the future", "internal/core/clocks/order.go",
		"bounded := 2*later <= known", "bounded := later < 0",
		"./internal/core/clocks", "^TestOrder$",
	},
	{
		"the times in a log are taken as they are", "internal/service/httpapi/history.go",
		"at := clocks.Order(*t, now)[before:]", "_ = clocks.Order\n	at := slices.Clone((*t)[before:])",
		"./internal/service/httpapi", "^TestLogByTime$",
	},
	{
		"the times of new entries of a log are judged without those before", "internal/service/httpapi/history.go",
		"*t = slices.Clone((*t)[max(0, len(*t)-neighbours):])", "*t = (*t)[:0]",
		"./internal/service/httpapi", "^TestLogDoubts$",
	},
	{
		"half of the clocks are a majority against one", "internal/core/clocks/clocks.go",
		"case len(group) > half:", "case len(group) >= half:",
		"./internal/core/clocks", judged,
	},
	{
		"half of the clocks are a majority for one", "internal/core/clocks/clocks.go",
		"case v.With+1 > half:", "case v.With+1 >= half:",
		"./internal/core/clocks", judged,
	},
	{
		"clocks that differ from each other are a majority", "internal/core/clocks/clocks.go",
		"switch group := largest(against); {", "switch group := against; {",
		"./internal/core/clocks", judged,
	},
	{
		"a clock does not count itself", "internal/core/clocks/clocks.go",
		"v.With+1 > half", "v.With > half",
		"./internal/core/clocks", judged,
	},
	{
		"an old reading puts a clock out", "internal/core/clocks/clocks.go",
		"	default:\n		return was, true\n", "	default:\n		return v, !v.Out()\n",
		"./internal/core/clocks", judged,
	},
	{
		"an old reading is taken for a fresh one", "internal/core/clocks/clocks.go",
		"Reading{Least: ahead, Most: ahead + age}", "Reading{Least: ahead, Most: ahead}",
		"./internal/core/clocks", judged,
	},
	{
		"the age of a reading makes no difference tolerable", "internal/core/clocks/clocks.go",
		"min(r.Most-r.Least, slack)", "min(r.Most-r.Least, 0)",
		"./internal/core/clocks", judged,
	},
	{
		"a clock that is out is never let in again", "internal/core/clocks/clocks.go",
		"was.Out() && (v.Kind == Alone || v.Kind == Unclear)", "was.Out()",
		"./internal/core/clocks", judged,
	},
	{
		"a refused clock is believed by a store that has lost those who refuse it", "internal/core/peer/judge.go",
		"if was.Out() && !is.Out() {", "if false {",
		"./internal/core/peer", "^TestJudgeOfALoss$",
	},
	{
		"who asks for clocks does not answer those who take the question for theirs", "internal/core/peer/judge.go",
		"append(cluster.Asked(v, position, by), by)", "cluster.Asked(v, position, by)",
		"./internal/core/peer", "^TestTwoAskAtOnce$",
	},
	{
		"a clock is compared with those who disagree on both sides", "internal/core/clocks/clocks.go",
		"			from++\n", "			break\n",
		"./internal/core/clocks", judged,
	},
	{
		"a node ID is claimed whatever the clock", "internal/core/peer/tenure.go",
		"	if err := s.m.checkClock(ctx, checkEvery); err != nil {",
		"	if err := s.m.checkClock(ctx, checkEvery); err != nil && s == nil {",
		"./internal/core/peer", "^TestAWrongClockJoins$",
	},
	{
		"a node that is to wait gives smaller IDs", "internal/core/peer/order.go",
		"	if s.m.options.Order == WaitForIDs {\n		return e\n",
		"	if s.m.options.Order == WaitForIDs && false {\n		return e\n",
		"./internal/core/peer", "^TestIDsThatAreAhead$",
	},
	{
		"of many, a node that is to wait looks for no IDs that are ahead", "internal/core/peer/order.go",
		"s.m.options.Order == GoOn && v.Rank", "v.Rank",
		"./internal/core/peer", "^TestTheFirstLookForIDsThatAreAhead$",
	},
	{
		"a node that is to wait waits for every horizon that is ahead", "internal/core/peer/order.go",
		"	if last.Horizon.After(now.Add(margin)) {",
		"	if s.exceed.Horizon.IsZero() && last.Horizon.After(now.Add(margin)) || !s.exceed.Horizon.IsZero() && " +
			"last.Horizon.After(now) {",
		"./internal/core/peer", "^TestIDsThatAreAheadOfOneThatGoesOn$",
	},
	{
		"in a world: a node that is to wait waits for every horizon that is ahead", "internal/core/peer/order.go",
		"	if last.Horizon.After(now.Add(margin)) {",
		"	if s.exceed.Horizon.IsZero() && last.Horizon.After(now.Add(margin)) || !s.exceed.Horizon.IsZero() && " +
			"last.Horizon.After(now) {",
		"./internal/test/worlds", "^TestWorldsThatHaveFailed$",
	},
	{
		"a node ID is extended by a clock that is out", "internal/core/peer/renew.go",
		"extended && !out && ", "extended && (!out || true) && ",
		"./internal/core/peer", "^Test(OneClockSteps|TheFirstClockIsWrong)$",
	},
	{
		"ID time follows a step before the horizons lie beyond it", "internal/core/peer/clock.go",
		"		if err := m.extend(ctx, m.options.Window, ahead); err != nil {",
		"		if err := m.extend(ctx, m.options.Window, 0); err != nil {",
		"./internal/core/peer", "^TestAllClocksStepTogether$",
	},
	{
		"a member without node IDs approaches the wall slowly", "internal/core/peer/clock.go",
		"	case m.idle():\n", "	case m.idle() && ahead != 0:\n",
		"./internal/core/peer", "^TestAWrongClockJoins$",
	},
	{
		"a step of the wall is noticed a third of a window later", "internal/core/peer/judge.go",
		"j.steps() != latest.steps || latest.at", "latest.at",
		"./internal/core/peer", "Clock",
	},
	{
		"nobody answers a question", "internal/core/peer/operator.go",
		"		p.heard(newQuestion(r.Value(), e.Position, c.By))",
		"		p.judge.question.Store(new(newQuestion(r.Value(), e.Position, c.By)))",
		"./internal/core/peer", "^TestAWrongClockJoins$",
	},
	{
		"an answer to an earlier question counts", "internal/core/peer/judge.go",
		"case ok && p.Answers >= q.position:", "case ok:",
		"./internal/core/peer", "^Test(AllClocksStepTogether|OnlyTheLivingJudge)$",
	},
	{
		"a crowd lists all pulses each third of a window", "internal/core/peer/judge.go",
		"is.Kind == clocks.Agreed && is.Against == 0 {", "is.Kind == clocks.Agreed && is.Against < 0 {",
		"./internal/core/peer", "^TestACrowdComparesClocks$",
	},
	{
		"a member counts its own pulse as another's", "internal/core/peer/judge.go",
		"!p.Clock.IsZero() && p.Mark != j.others.process()", "!p.Clock.IsZero()",
		"./internal/core/peer", "^Test(TwoHalves|AWrongClockJoins|TheFirstClockIsWrong)$",
	},
}
