package main

const (
	explored = "^TestNoInstantIsUsableByTwoOwners$"
	modelled = "^TestEveryTransitionIsAStepOfTheModel$"
	journals = "^TestJournalsOfOwners$"
	fenced   = "^Test[^N]" // all but the exploration
	closed   = "^TestWhatIsClosedStaysClosed$"
	replayed = "^TestApplyAgreesWithTheReference$"
	shortly  = "^TestExploreShortly$"
	all      = "."
)

// mutants are the faults. The first ones are those by which systems of this kind hand out duplicates; each is tried
// against the exploration of the protocol, and against the tests of what runs it.
var mutants = []mutant{
	{
		"report after use: the bound moves before the answer", "internal/core/fence/step.go",
		"	case Due:\n		return s, due(s, e, l)\n",
		"	case Due:\n		a := due(s, e, l)\n		s.Horizon = max(s.Horizon, a.Write.Horizon)\n" +
			"		return s, a\n",
		"./internal/core/fence", explored,
	},
	{
		"the floor is ignored", "internal/core/fence/step.go",
		"Floor: v.Horizon, Horizon: v.Horizon, Reported", "Reported",
		"./internal/core/fence", explored,
	},
	{
		"no step of the model: the bound moves before the answer", "internal/core/fence/step.go",
		"	case Due:\n		return s, due(s, e, l)\n",
		"	case Due:\n		a := due(s, e, l)\n		s.Horizon = max(s.Horizon, a.Write.Horizon)\n" +
			"		return s, a\n",
		"./internal/core/fence", modelled,
	},
	{
		"no step of the model: the floor is ignored", "internal/core/fence/step.go",
		"Floor: v.Horizon, Horizon: v.Horizon, Reported", "Reported",
		"./internal/core/fence", modelled,
	},
	{
		"no step of the model: a release before the generator has stopped", "internal/core/fence/step.go",
		"			s.Phase = Stopping\n			return s, Action{Kind: Stop}\n",
		"			s.Phase, s.End = Releasing, s.Floor\n",
		"./internal/core/fence", modelled,
	},
	{
		"no step of the model: a write expects no version", "internal/core/fence/step.go",
		"Write{IfLive: s.Live, IfReported: s.Reported}", "Write{IfLive: s.Live}",
		"./internal/core/fence", modelled,
	},
	{
		"no step of the model: another owner's version is taken for the own", "internal/core/fence/step.go",
		"	if v.ReportedMine {\n		s.Reported = v.Reported", "	if true {\n		s.Reported = v.Reported",
		"./internal/core/fence", modelled,
	},
	{
		"no step of the model: a copy's version is taken for the own", "internal/core/fence/step.go",
		"	if v.ReportedMine {\n		s.Reported = v.Reported",
		"	if v.ReportedMine || v.ReportedCopy {\n		s.Reported = v.Reported",
		"./internal/core/fence", modelled,
	},
	{
		"no line of a journal: the bound moves before the answer", "internal/core/fence/step.go",
		"	case Due:\n		return s, due(s, e, l)\n",
		"	case Due:\n		a := due(s, e, l)\n		s.Horizon = max(s.Horizon, a.Write.Horizon)\n" +
			"		return s, a\n",
		"./internal/core/fence", journals,
	},
	{
		"no line of a journal: the floor is ignored", "internal/core/fence/step.go",
		"Floor: v.Horizon, Horizon: v.Horizon, Reported", "Reported",
		"./internal/core/fence", journals,
	},
	{
		"no line of a journal: a release before the generator has stopped", "internal/core/fence/step.go",
		"			s.Phase = Stopping\n			return s, Action{Kind: Stop}\n",
		"			s.Phase, s.End = Releasing, s.Floor\n",
		"./internal/core/fence", journals,
	},
	{
		"no line of a journal: a write expects no version", "internal/core/fence/step.go",
		"Write{IfLive: s.Live, IfReported: s.Reported}", "Write{IfLive: s.Live}",
		"./internal/core/fence", journals,
	},
	{
		"in a world: the floor is ignored", "internal/core/fence/step.go",
		"Floor: v.Horizon, Horizon: v.Horizon, Reported", "Reported",
		"./internal/test/worlds", "^TestWorlds$",
	},
	{
		"in a world: released before the generator has stopped", "internal/core/fence/step.go",
		"			s.Phase = Stopping\n			return s, Action{Kind: Stop}\n",
		"			s.Phase, s.End = Releasing, s.Floor\n",
		"./internal/test/worlds", "^TestWorlds$",
	},
	{
		"a claim reserves a window beyond a floor that is ahead", "internal/core/fence/step.go",
		"max(e.Now+l.Window, s.Floor)", "max(e.Now, s.Floor) + l.Window",
		"./internal/core/fence", explored,
	},
	{
		"a node ID whose floor has not come is not extended", "internal/core/peer/renew.go",
		"latest := st.latest(); latest.generator == nil {",
		"latest := st.latest(); ahead != 0 && latest.generator == nil {",
		"./internal/core/peer", "^TestAClaimThatWaitsIsExtended$",
	},
	{
		"a write in doubt counts as failed, but raises the horizon", "internal/core/fence/step.go",
		"	case Doubt:\n", "	case Doubt:\n		s.Horizon += l.Window\n",
		"./internal/core/fence", explored,
	},
	{
		"released before the generator has stopped", "internal/core/fence/step.go",
		"			s.Phase = Stopping\n			return s, Action{Kind: Stop}\n",
		"			s.Phase, s.End = Releasing, s.Floor\n",
		"./internal/core/fence", explored,
	},
	{
		"a horizon is moved without comparing versions", "internal/core/fence/fence.go",
		"{Key: live, Version: w.IfLive}, {Key: reported, Version: w.IfReported}", "{Key: live, Version: w.IfLive}",
		"./internal/core/fence", fenced,
	},
	{
		"a horizon is moved although the live key is gone", "internal/core/fence/fence.go",
		"{Key: live, Version: w.IfLive}, {Key: reported, Version: w.IfReported}",
		"{Key: reported, Version: w.IfReported}",
		"./internal/core/fence", fenced,
	},
	{
		"a copy's write is taken for the own", "internal/core/fence/keys.go",
		"v.ReportedMine = own && sent(stamp)", "v.ReportedMine = own",
		"./internal/core/fence", "^TestACopyOfAProcess$",
	},
	{
		"a copy goes on with what it has reserved", "internal/core/peer/copies.go",
		"		s.withdrawAll(why)\n", "		_ = s\n",
		"./internal/core/peer", "^TestTheSystemResumes$",
	},
	{
		"a copy releases the node ID of its twin", "internal/core/peer/rollback.go",
		"return t.left || t.losses", "return t.losses",
		"./internal/core/peer", "^TestTheSystemResumes$",
	},
	{
		"a copy ends the session of its twin", "internal/core/peer/incarnation.go",
		"	if l.copied.Load() {\n		return\n	}\n", "",
		"./internal/core/peer", "^TestACopyThatLeaves$",
	},
	{
		"a copy has its twin leave", "internal/core/peer/player.go",
		"p.incarnation == nil || p.incarnation.copied.Load()", "p.incarnation == nil",
		"./internal/core/peer", "^TestACopyThatLeaves$",
	},
	{
		"a copy takes its twin's pulse for the own", "internal/core/peer/copies.go",
		"&& !l.stamps.Sent(p.Stamp)\n", "&& false\n",
		"./internal/core/peer", "^TestAMemberIsCopied$",
	},
	{
		"a copy that was away ends the session of its twin", "internal/core/peer/player.go",
		"		err = p.mayBeCopied(ctx, old)\n", "",
		"./internal/core/peer", "^TestACopyThatWasAwayEndsNoSession$",
	},
	{
		"a copy's write is taken for another owner's", "internal/core/fence/step.go",
		"		s.Copied = v.ReportedCopy\n		switch {\n", "		switch {\n",
		"./internal/core/fence", "^TestACopyOfAProcess$",
	},
	{
		"a copy waits for a node ID that its twin claimed after the copy was made", "internal/core/fence/claim.go",
		"&& config.Holder.isCopys(held.by)", `&& held.by == ""`,
		"./internal/core/fence", "^TestAClaimForWhatACopyHolds$",
	},
	{
		"writes have one stamp", "internal/base/fresh/stamps.go",
		"	stamp := Text()[:stampLength]\n",
		"	if len(s.sent) > 0 {\n		return s.sent[0]\n	}\n	stamp := Text()[:stampLength]\n",
		"./internal/core/fence", "^TestACopyOfAProcess$",
	},
	{
		"in a world with a copy: its horizon is taken for the own", "internal/core/fence/step.go",
		"		if v.ReportedMine {\n			s.Horizon = max",
		"		if v.ReportedMine || v.ReportedCopy {\n			s.Horizon = max",
		"./internal/core/fence", explored,
	},
	{
		"another owner's horizon is taken for the own", "internal/core/fence/step.go",
		"		if v.ReportedMine {\n			s.Horizon = max", "		if true {\n			s.Horizon = max",
		"./internal/core/fence", explored,
	},
	{
		"a release goes below the floor", "internal/core/fence/step.go",
		"s.End = max(e.End, s.Floor)", "s.End = e.End",
		"./internal/core/fence", fenced,
	},
	{
		"a horizon follows any step of the clock", "internal/core/fence/step.go",
		"min(e.Now+l.Window, s.Horizon+e.Elapsed+l.MaxStep)", "e.Now + l.Window",
		"./internal/core/fence", fenced,
	},
	{
		"the end of use is rounded down", "internal/core/fence/fence.go",
		"t.Add(time.Millisecond - 1).UnixMilli()", "t.UnixMilli()",
		"./internal/core/fence", fenced,
	},
	{
		"a claim omits its guard", "internal/core/fence/fence.go",
		"t.If = append(t.If, f.config.Guards...)", "t.If = append(t.If, f.config.Guards[len(f.config.Guards):]...)",
		"./internal/core/fence", closed,
	},
	{
		"revoke leaves the live key", "internal/core/fence/revoke.go",
		"err != nil || len(live) == 0", "err != nil || len(live) >= 0",
		"./internal/core/fence", closed,
	},
	{
		"a joint transaction in doubt is taken for a success", "internal/core/fence/extend.go",
		"	case err == nil:\n", "	case err == nil, errors.Is(err, store.ErrAmbiguous):\n",
		"./internal/core/fence", "ExtendAll",
	},
	{
		"a step that is believed moves the horizon by MaxStep", "internal/core/fence/extend.go",
		"f.stepBy(due, ahead)", "f.stepBy(due, 0)",
		"./internal/core/fence", fenced,
	},
	{
		"a pulse that is refused takes the horizons with it", "internal/core/fence/extend.go",
		"		_, errs := commit(ctx, drafts, store.Txn{})\n		return errs\n",
		"		return make([]error, len(drafts))\n",
		"./internal/core/peer", "^TestAPulse",
	},
	{
		"a pulse that comes late replaces a newer one", "internal/core/peer/pulse.go",
		"If:   []store.Condition{{Key: key, Version: l.pulse}},", "If:   []store.Condition{},",
		"./internal/core/peer", "^TestALatePulse$",
	},
	{
		"the claimer's own floor is ignored", "internal/core/fence/fence.go",
		"max(v.Horizon, roundUp(config.NotBefore))", "max(v.Horizon, roundUp(time.Time{}))",
		"./internal/core/fence", fenced,
	},
	{
		"the bound is ignored", "generator.go",
		"end = min(end, g.limit.Load())", "end = min(end, g.ticks*g.perTick)",
		".", all,
	},
	{
		"the clock is followed back", "generator.go",
		"now >= g.epoch && next < min(elapsed/g.tick, g.ticks)*g.perTick:",
		"now >= g.epoch && next != min(elapsed/g.tick, g.ticks)*g.perTick:",
		".", all,
	},
	{
		"the look-ahead does not end", "generator.go",
		"elapsed+lookAhead-tick*g.tick < lookAhead+g.tick", "elapsed+2*lookAhead-tick*g.tick < 2*lookAhead+g.tick",
		".", all,
	},
	{
		"the floor is rounded down to a tick", "option.go",
		"g.place(t.Add(g.layout.Tick - 1))", "g.place(t)",
		".", all,
	},
	{
		"a stopped generator goes on", "generator.go",
		"g.next.Swap(stopped)", "g.next.Load()",
		".", "TestStopReturns",
	},
	{
		"a generator is stopped before the end of its use is known", "generator.go",
		"	g.mu.Lock()\n	defer g.mu.Unlock()\n" +
			"	// Under the lock: who finds it stopped finds g.used set, too.\n" +
			"	if next := g.next.Swap(stopped); next",
		"	next := g.next.Swap(stopped)\n	g.mu.Lock()\n	defer g.mu.Unlock()\n	if next",
		".", "^TestConcurrentStopsReturnTheSame$",
	},
	{
		"waiting callers are not woken when the bound moves", "generator.go",
		"		if g.limit.CompareAndSwap(old, limit) {\n			g.open()\n",
		"		if g.limit.CompareAndSwap(old, limit) {\n",
		".", all,
	},
	{
		"the steady clock goes back with the wall", "clock.go",
		"	default:\n		if !last.slow {", "	default:\n		next.time = wall\n		if !last.slow {",
		".", "SteadyClock",
	},
	{
		"the successor's generator begins before the floor", "internal/core/peer/tenure.go",
		"firn.WithFloor(later(t.fence.Floor(), used)), firn.WithBound", "firn.WithBound",
		"./internal/core/peer", "^TestIDsAscendAcrossNodeIDs$",
	},
	{
		"a new node ID makes IDs below the old one's last", "internal/core/peer/tenure.go",
		"later(t.fence.Floor(), used)", "t.fence.Floor()",
		"./internal/core/peer", "^TestIDsAscendAcrossNodeIDs$",
	},
	{
		"callers find no generator while node IDs are switched", "internal/core/peer/sequencer.go",
		"				<-st.changed\n				continue\n", "",
		"./internal/core/peer", "TheSwitch",
	},
	{
		"a node ID that was never used is not given back", "internal/core/attachment/attachment.go",
		"!extendable && (over || t.Phase == Claimed)", "!extendable && over && t.Phase != Claimed",
		"./internal/core/attachment", "Explore",
	},
	{
		"a node ID is given back while it can be used", "internal/core/attachment/attachment.go",
		"!extendable && (over || t", "!extendable && (true || t",
		"./internal/core/attachment", "Explore",
	},
	{
		"a node ID is used although it was revoked", "internal/core/attachment/attachment.go",
		"case s.revoked(t), ", "case ",
		"./internal/core/attachment", "Explore",
	},
	{
		"a member that waits in line does not use up reserved time", "internal/core/attachment/attachment.go",
		"return t.Member == s.Grant.Member", "return true",
		"./internal/core/attachment", "Explore",
	},
	{
		"a node ID is used before the clock has passed its floor", "internal/core/attachment/attachment.go",
		"claimed >= 0 && v.Tenures[claimed].Due", "claimed >= 0",
		"./internal/core/attachment", "Explore",
	},
	{
		"two node IDs are used at a time", "internal/core/attachment/attachment.go",
		"			s.Tenures[other].Phase = Stopped\n", "			_ = other\n",
		"./internal/core/attachment", "Explore",
	},
	{
		"a node ID that was stopped is not given back", "internal/core/attachment/attachment.go",
		"case stopped >= 0:", "case stopped > 1:",
		"./internal/core/attachment", "Explore",
	},
	{
		"the number of declines is not limited", "internal/core/attachment/attachment.go",
		"s.Alone || s.Behind >= MostDeclines", "s.Alone",
		"./internal/core/attachment", ".",
	},
	{
		"a member waits for a node ID whose owner has no end", "internal/core/attachment/attachment.go",
		"if e.Lasting {", "if e.Lasting && s.Alone {",
		"./internal/core/attachment", ".",
	},
	{
		"a node ID that a decline returned is declined again", "internal/core/attachment/attachment.go",
		"s.granted(s.Tenures[expiring]) && !s.Alone", "s.granted(s.Tenures[expiring])",
		"./internal/core/attachment", ".",
	},
	{
		"no other node ID is declined after a decline returned the same one", "internal/core/attachment/attachment.go",
		"	if v.Grant != s.Grant {\n", "	if v.Grant == (Grant{}) {\n",
		"./internal/core/attachment", ".",
	},
	{
		"an expiring node ID blocks the claim that replaces it", "internal/core/attachment/attachment.go",
		"			s.Tenures[i].Phase = Stopped\n		}\n	case ClockBehind",
		"			_ = i\n		}\n	case ClockBehind",
		"./internal/core/attachment", "Explore",
	},
	{
		"a lost node ID is stopped when another owner holds it", "internal/core/attachment/attachment.go",
		"s.Tenures[i].Node == s.Grant.Node && !s.Tenures[i].Lost", "s.Tenures[i].Node == s.Grant.Node",
		"./internal/core/attachment", "Explore",
	},
	{
		"a sequencer with another definition is accepted", "internal/core/peer/create.go",
		"case ok && !q.Definition().Equal(d):", "case ok && false:",
		"./internal/core/peer", "Definition|TwoCreate",
	},
	{
		"data is kept where nothing keeps a second process from it", "store/internal/etcdserver/etcdserver.go",
		"	if errSystem != nil {\n		return nil,", "	if false {\n		return nil,",
		"./store/internal/etcdserver", "^TestASystemThatKeepsNoData$",
	},
	{
		"a secret is written where every user can read it", "internal/service/admit/secretfile/secretfile.go",
		"	if errUnprotected != nil {", "	if false {",
		"./internal/service/admit/secretfile", "^TestNoSecretWithoutModes$",
	},
	{
		"what one machine says counts for two", "store/quorum/exchange.go",
		"a.err == nil && by != address", "false",
		"./store/quorum", "^TestNamesThatLeadToOneMachine$",
	},
	{
		"a backup needs no signature", "store/quorum/backup.go",
		"	if !trusted && !codes.Know(end) {", "	if false {",
		"./store/quorum", "WhoseBackup",
	},
	{
		"a page of a database may be used twice", "store/internal/etcdserver/pages.go",
		"		if p.used[i] {", "		if false {",
		"./store/internal/etcdserver", "CheckPages",
	},
	{
		"an entry is passed over while a member lives that may have applied it", "internal/core/peer/skip.go",
		"	for id, p := range living {\n",
		"	for id, p := range living {\n		if id != \"\" {\n			continue\n		}\n",
		"./internal/core/peer", "^TestSkipWhileOneLives$",
	},
	{
		"a member leaves a proposal to pass over an entry as it is", "internal/core/peer/skip.go",
		"err != nil || s.Proposed == nil {", "true {",
		"./internal/core/peer", "^TestSkipWhileOneLives$",
	},
	{
		"a member does not replay the log again when an entry that it has applied is passed over",
		"internal/core/peer/skip.go",
		"	if s.since(before, p.value.Position()) {", "	if false && s.since(before, p.value.Position()) {",
		"./internal/core/peer", "^TestSkippedAfterItWasApplied$",
	},
	{
		"more is applied to a value with an entry that is passed over", "internal/core/peer/player.go",
		"		case err := <-p.broken: // nothing more is applied to a value that is to go\n			return err\n",
		"",
		"./internal/core/peer", "NothingIsApplied",
	},
	{
		"a passed over entry is not in the value", "internal/core/cluster/apply.go",
		"	v.skipped = v.skipped.put(v.position, c.Entry)\n", "",
		"./internal/core/cluster", "^TestSkipped$",
	},
	{
		"a client's certificate is taken for a machine's", "store/quorum/internal/keyring/keyring.go",
		"	return slices.ContainsFunc(s.VerifiedChains, ",
		"	return true || slices.ContainsFunc(s.VerifiedChains, ",
		"./store/quorum", "^TestRightsOfKeys$",
	},
	{
		"any name in a certificate of the authority is a machine's", "store/quorum/internal/keyring/keyring.go",
		"return c.VerifyHostname(host) == nil })", "return true })",
		"./store/quorum", "^TestRightsOfNames$",
	},
	{
		"a client changes who keeps the quorum", "store/quorum/rights.go",
		"	return within(key, end) && !covers\n", "	_ = covers\n	return within(key, end)\n",
		"./store/quorum", "^TestRightsOfKeys$",
	},
	{
		"a client is a peer of etcd's servers", "store/quorum/internal/port/port.go",
		"places == byMachine && !p.ring.IsMachine(conn.ConnectionState())", "false",
		"./store/quorum", "^TestRightsOfKeys$",
	},
	{
		"a quorum of one begins again where the log of several was lost", "store/quorum/disk.go",
		"case w.State == plan.Empty, w.State == plan.Started && len(w.Known) == 1:",
		"case w.State == plan.Empty, len(w.Known) == 1:",
		"./store/quorum", "^TestCheckOne$",
	},
	{
		"a quorum of one uses the data of several", "store/quorum/disk.go",
		"w.State == plan.Started && len(w.Known) == 1", "w.State == plan.Started && len(w.Known) != 0",
		"./store/quorum", "^TestCheckOne$",
	},
	{
		"a cluster is formed by a majority", "store/quorum/internal/plan/decide.go",
		"{ return includes(accepted, list) }", "{ return 2*len(accepted) > len(list) }",
		"./store/quorum/internal/plan", "^TestExploreForming$",
	},
	{
		"a cluster is proposed while a machine is silent", "store/quorum/internal/plan/decide.go",
		"	if len(v.silent) > 0 {\n		return v.wait(\"no cluster",
		"	if 2*len(v.silent) > len(v.me.List) {\n		return v.wait(\"no cluster",
		"./store/quorum/internal/plan", "^TestExploreFormingByAnyName$",
	},
	{
		"a cluster is proposed although another has data", "store/quorum/internal/plan/decide.go",
		"i >= 0 {\n		return v.waitForMajority(", "i >= 3 {\n		return v.waitForMajority(",
		"./store/quorum/internal/plan", "^TestExploreFormingByAnyName$",
	},
	{
		`a late "all have promised" is obeyed`, "store/quorum/internal/plan/decide.go",
		"	if d != (Disk{Promised, cluster}) {\n",
		"	if d.State != Empty && d != (Disk{Promised, cluster}) {\n",
		"./store/quorum/internal/plan", "^TestExploreForming$",
	},
	{
		"an offer to a former life is accepted", "store/quorum/internal/plan/decide.go",
		"o.Life == me.Life && o.Disk == me.Disk",
		"o.Disk == me.Disk",
		"./store/quorum/internal/plan", "^TestExploreForming$",
	},
	{
		"an offer replaces a promise that the founder has not seen", "store/quorum/internal/plan/decide.go",
		"o.Life == me.Life && o.Disk == me.Disk",
		"o.Life == me.Life",
		"./store/quorum/internal/plan", "^TestExploreForming$",
	},
	{
		"a machine with data accepts an offer", "store/quorum/internal/plan/decide.go",
		"	if !asSeen || me.Disk.State > Promised {", "	if !asSeen {",
		"./store/quorum/internal/plan", "^TestAccept$",
	},
	{
		"a machine goes on with another promise than it finds", "store/quorum/internal/plan/decide.go",
		"			return m.Disk.hasData() && m.Disk.Cluster == mine\n", "			return m.Disk.hasData()\n",
		"./store/quorum/internal/plan", "^TestExploreForming$",
	},
	{
		"a promise is never replaced", "store/quorum/internal/plan/decide.go",
		"	if !asSeen || me.Disk.State > Promised {", "	if !asSeen || me.Disk.State > Empty {",
		"./store/quorum/internal/plan", "^TestExploreForming$",
	},
	{
		"a machine does not go on with what it has promised", "store/quorum/internal/plan/decide.go",
		"m.Disk.Cluster == mine\n		}); i >= 0 {", "m.Disk.Cluster == mine\n		}); i >= 9 {",
		"./store/quorum/internal/plan", "^TestExploreForming$",
	},
	{
		"an emptied machine does not join", "store/quorum/internal/plan/decide.go",
		`	if d, running := v.running(""); running {`,
		`	if d, running := v.running(""); running && d.Do != Join {`,
		"./store/quorum/internal/plan", "^TestExploreForming$",
	},
	{
		"a machine joins a cluster that has no majority", "store/quorum/internal/plan/decide.go",
		"if !m.Running || cluster",
		"if !m.Disk.hasData() || cluster",
		"./store/quorum/internal/plan", "^TestExploreForming$",
	},
	{
		"data that was set back is used", "store/quorum/internal/plan/decide.go",
		`by != "" && me.Disk.hasData() {`,
		`by != "" && index == 0 {`,
		"./store/quorum/internal/plan", "^TestExploreSetBack$",
	},
	{
		"nobody is asked whether the data is the latest", "store/quorum/internal/plan/decide.go",
		"	if len(v.others) == 0 && len(v.silent) > 0 {",
		"	if len(v.others) == 0 && len(v.silent) > 9 {",
		"./store/quorum/internal/plan", "^TestExploreSetBack$",
	},
	{
		"two quorums of one become two clusters", "store/quorum/internal/plan/decide.go",
		"	if i := slices.IndexFunc(v.others, func(m Machine) bool { return m.Disk.hasData() }); i >= 0 {\n" +
			"		return refuse(",
		"	if i := slices.IndexFunc(v.others, func(m Machine) bool { return m.Disk.hasData() }); i >= 3 {\n" +
			"		return refuse(",
		"./store/quorum/internal/plan", "^TestExploreAlone$",
	},
	{
		"a quorum of one begins a cluster beside one that was promised", "store/quorum/internal/plan/decide.go",
		"func(m Machine) bool { return m.Disk.State == Promised }", "func(m Machine) bool { return false }",
		"./store/quorum/internal/plan", "^TestExploreRestoredCopies$",
	},
	{
		"two machines are the same member", "store/quorum/internal/plan/twin.go",
		"return me.Member != 0 &&", "return false &&",
		"./store/quorum/internal/plan", "^TestDecide$",
	},
	{
		"two processes take themselves for one machine", "store/quorum/internal/plan/twin.go",
		`own.Life != "" && own.Life != me.Life`, "false",
		"./store/quorum/internal/plan", "^TestDecide$",
	},
	{
		"a machine uses the directory of another", "store/internal/place/place.go",
		"		return Another", "		return Here",
		"./store/internal/place", "^TestJudge$",
	},
	{
		"a copy with another inode is used", "store/internal/place/place.go",
		"was.Inode != is.Inode && !was.remounted(is) ||", "",
		"./store/internal/place", "^TestJudge$",
	},
	{
		"a file with another inode and no time of birth is taken for the same", "store/internal/place/place.go",
		`p.Born != 0 && p.Path != ""`, `p.Path != ""`,
		"./store/internal/place", "^TestJudge$",
	},
	{
		"a copy that has the original's inode is used", "store/internal/place/place.go",
		"was.Born != is.Born", "false",
		"./store/internal/place", "^TestJudge$",
	},
	{
		"a snapshot beside the original is used", "store/internal/place/place.go",
		"was.Device != is.Device && was.Path != is.Path", "false",
		"./store/internal/place", "^TestJudge$",
	},
	{
		"the clone of a disk is used in another machine", "store/internal/place/place.go",
		"was.Machine != is.Machine:", "false:",
		"./store/internal/place", "^TestJudge$",
	},
	{
		"a quorum of one uses the directory of several", "store/quorum/quorum.go",
		"err = CheckOne(q.config.Dir)", "err = nil",
		"./store/quorum", "^TestOneRefusesTheDataOfSeveral$",
	},
	{
		"a quorum does not look where its directory belongs", "store/quorum/quorum.go",
		"err := place.Enter(dir.Path, self, q.config.Moved, q.log); err != nil",
		"err := place.Enter(dir.Path, self, q.config.Moved, q.log); err != nil && false",
		"./store/quorum", "^(TestACopyIsRefused|TestRestoredOnThreeMachines)$",
	},
	{
		"a quorum of one does not wait for the others", "store/quorum/internal/plan/decide.go",
		"	if d, ready := v.allAgree(); !ready {\n		return d\n	}\n	// this one may have, too\n",
		"	if d, ready := v.allAgree(); !ready && len(v.others) == 0 {\n		return d\n	}\n",
		"./store/quorum/internal/plan", "^TestExploreAlone$",
	},
	{
		"machines with different lists form a cluster", "store/quorum/internal/plan/decide.go",
		"case !sameMachines(m.List, v.me.List):",
		"case len(m.List) != len(v.me.List):",
		"./store/quorum/internal/plan", "^TestExploreListsThatDiffer$",
	},
	{
		"a machine that has lost its log runs again", "store/quorum/internal/plan/decide.go",
		"	case Lost:\n		return v.wait(",
		"	case Lost:\n		break\n	case 99:\n		return v.wait(",
		"./store/quorum/internal/plan", "^TestExploreSetBack$",
	},
	{
		"a member throws its data away before it is removed", "store/quorum/internal/plan/decide.go",
		"if v.me.Disk.hasData() && isMember {", "if v.me.Disk.hasData() && isMember && len(v.others) == 0 {",
		"./store/quorum/internal/plan", "^TestDecide$",
	},
	{
		"a voter is removed although the rest has no majority", "store/quorum/internal/plan/care.go",
		"	return 2*s.living(rest) > len(rest)\n", "	return len(rest) > 0\n",
		"./store/quorum/internal/plan", "^TestExploreCare$",
	},
	{
		"a machine that was just added counts as emptied", "store/quorum/internal/plan/care.go",
		"		if m.Started && s.hasLost(m) {", "		if s.hasLost(m) {",
		"./store/quorum/internal/plan", "^TestExploreCare$",
	},
	{
		"a learner gets its vote before it has caught up", "store/quorum/internal/plan/care.go",
		"m.Learner && s.CaughtUp[m.ID] && s.lives(m)", "m.Learner && s.lives(m)",
		"./store/quorum/internal/plan", "^TestExploreCare$",
	},
	{
		"a voter is removed before another takes its place", "store/quorum/internal/plan/care.go",
		"learning && (len(ready) == 0 || len(voters)%2 == 0)",
		"learning && len(ready) == 0 && len(voters) == len(s.Record)",
		"./store/quorum/internal/plan", "^TestExploreCare$",
	},
	{
		"a former voter stays until its replacement has its vote", "store/quorum/internal/plan/care.go",
		"	if len(former) == 0 || learning && (len(ready) == 0 || len(voters)%2 == 0) {",
		"	if len(former) == 0 || learning {",
		"./store/quorum/internal/plan", "^TestExploreCare$",
	},
	{
		"a leader removes itself", "store/quorum/internal/plan/care.go",
		"	case !m.Leader:\n", "	case m.ID >= 0:\n",
		"./store/quorum/internal/plan", "^TestExploreCare$",
	},
	{
		"a learner that nobody wants stays", "store/quorum/internal/plan/care.go",
		"m.Learner && !slices.Contains(s.Record, m.Address) {", "m.Learner && len(s.Record) == 0 {",
		"./store/quorum/internal/plan", "^TestExploreCare$",
	},
	{
		"a quorum grows by a machine that was removed", "store/quorum/internal/plan/care.go",
		"m.Disk.State > Promised || !same", "m.Disk.State == Started || !same",
		"./store/quorum/internal/plan", "^TestExploreCareFurther$",
	},
	{
		"an emptied machine stays a member", "store/quorum/internal/plan/care.go",
		"	case Empty, Lost, Removed:\n", "	case Lost, Removed:\n",
		"./store/quorum/internal/plan", "^TestExploreCare$",
	},
	{
		"four voters stay four", "store/quorum/internal/plan/care.go",
		"len(voters)%2 == 1 && len(ready) == 1", "len(ready) == 0",
		"./store/quorum/internal/plan", "^TestCare$",
	},
	{
		"a machine with the data of another cluster counts as living", "store/quorum/internal/plan/care.go",
		"m.Started && said.Disk == (Disk{Started, s.Cluster})", "m.Started && said.Disk.State == Started",
		"./store/quorum/internal/plan", "^TestCare$",
	},
	{
		"the members change without a majority", "store/quorum/internal/plan/care.go",
		"	if 2*s.living(voters) <= len(voters) {", "	if s.living(voters) == 0 {",
		"./store/quorum/internal/plan", "^TestCare",
	},
	{
		"a pulse that is gone is not reported", "internal/core/peer/player.go",
		"p.dead[g.id] = death{cluster.CauseSessionEnded, g.node}\n		case err := <-p.broken",
		"_ = g\n		case err := <-p.broken",
		"./internal/core/peer", "^TestAStandbyTakesOver$",
	},
	{
		"a lost session is not replaced", "internal/core/peer/player.go",
		"old != nil && !old.over() && (", "old != nil && (",
		"./internal/core/peer", all,
	},
	{
		"a member that was taken out does not come back", "internal/core/peer/player.go",
		"(!old.joined || p.value.IsMember(old.id))", "(!old.joined || old.joined)",
		"./internal/core/peer", "^TestEvictedWhileAlive$",
	},
	{
		"a joiner that finds no target does not look for dead members", "internal/core/peer/watch.go",
		"if c.position == 0 {\n\t\treturn idle", "if c.position >= 0 {\n\t\treturn idle",
		"./internal/core/peer", all,
	},
	{
		"a joiner waits for the sessions of members that do not answer", "internal/core/peer/watch.go",
		"dead = append(dead, silent...)\n", "_ = silent\n",
		"./internal/core/peer", "TestAJoinerWaitsForNoSession",
	},
	{
		"a joiner takes others for dead though its own pulse is not written either", "internal/core/peer/watch.go",
		"case c.heard.IsZero():", "case false:",
		"./internal/core/peer", "TestTheStoreTakesPulsesLate",
	},
	{
		"the target of a joiner is not called", "internal/core/cluster/value.go",
		"add(j.Target)", "add(by)",
		"./internal/core/cluster", "TestCalled",
	},
	{
		"machines whose logs have entries of the same term and other content take them for one", "store/quorum/meet.go",
		"ok && same != e", "ok && same.Term != e.Term",
		"./store/quorum", "TestParted",
	},
	{
		"one machine decides whose log goes on", "store/quorum/meet.go",
		"case 2*len(m.differ) > m.voters:", "case true:",
		"./store/quorum", "^TestSide$",
	},
	{
		"a machine runs although others have another log", "store/quorum/meet.go",
		"case len(m.differ) == 0, 2*(m.agree+1) > m.voters:", "case true:",
		"./store/quorum", "^TestSide$",
	},
	{
		"a log is taken to end with what was applied", "store/quorum/serve.go",
		"	q.index, q.member = index, member\n", "	q.index, q.member = min(index, q.index), member\n",
		"./store/quorum", "^TestUncommittedEnd$",
	},
	{
		"a machine keeps what may be replaced", "store/quorum/serve.go",
		"s.sample() //", "s.applied = []uint64{q.index} //",
		"./store/quorum", "^TestUncommittedEnd$",
	},
	{
		"data that is older than what was confirmed is not set aside", "store/internal/etcdserver/datadir.go",
		"case strings.Contains(what, setBack):", "case false:",
		"./store/internal/etcdserver", "TestSetBackIsNoDamage",
	},
	{
		"a client takes the place of a machine", "store/quorum/internal/port/port.go",
		"if protocol == Peers || strings.HasPrefix(protocol, byMachine) {", "if false {",
		"./store/quorum/internal/port", "TestEstablishedConnectionsAreLimited",
	},
	{
		"a leaving member takes as long for each step", "internal/core/peer/registry.go",
		"	if from.IsZero() {\n		from = time.Now()", "	if true {\n		from = time.Now()",
		"./internal/core/peer", "^TestLeaveWhileTheStoreIsAway$",
	},
	{
		"a joiner does not say for whom it waits", "internal/core/peer/player.go",
		"min(p.collect(ctx), p.sayAwaited(ctx))", "p.collect(ctx)",
		"./internal/core/peer", "^TestAJoinSaysWhomItWaitsFor$",
	},
	{
		"a leaving member does not announce it", "internal/core/peer/player.go",
		"\t\tp.leaveCluster(ctx)\n", "",
		"./internal/core/peer", "^TestLeavingIsSeenAtOnce$",
	},
	{
		"the log is cut up to the present", "internal/core/peer/checkpoint.go",
		"p.checkpoint(ctx, before)", "p.checkpoint(ctx, v)",
		"./internal/core/peer", "^TestTheLogIsCut$",
	},
	{
		"an entry that can't be read is skipped", "internal/core/peer/replay.go",
		"err = &stopped{at: at, entry: e.ID, unreadable: unreadable}",
		"entry, err = cluster.Entry{Position: at, Command: cluster.Skipped{Entry: unreadable.Err.Error()}}, nil",
		"./internal/core/peer", "Unreadable",
	},
	{
		"an append that stays in doubt is repeated forever", "internal/core/peer/append.go",
		"errors.Is(failed, store.ErrAmbiguous)", "errors.Is(failed, store.ErrRefused)",
		"./internal/core/peer", "^TestADoubtThatStays$",
	},
	{
		"an outcome that a checkpoint skipped is waited for", "internal/core/peer/replay.go",
		"			p.miss()\n", "",
		"./internal/core/peer", "^TestADeclineThatWasCutOff$",
	},
	{
		"a leave keeps the join whose target leaves", "internal/core/cluster/apply.go",
		"	v.forget(p.joiner)\n", "",
		"./internal/core/cluster", shortly,
	},
	{
		"an accept leaves the target with its old watcher", "internal/core/cluster/apply.go",
		"t.joiner, t.watcher = \"\", c.Joiner", "t.joiner = \"\"",
		"./internal/core/cluster", replayed,
	},
	{
		"nobody watches a joiner", "internal/core/cluster/value.go",
		"	if target, _ := v.peers.get(p.watches); target.joiner != \"\" {",
		"	if target, _ := v.peers.get(p.watches); target.joiner == id {",
		"./internal/core/cluster", shortly,
	},
	{
		"a node ID that was given back still belongs to its old member", "internal/core/cluster/allocate.go",
		"s.nodes.without(w.node), s.free.give(w.node)", "s.nodes, s.free.give(w.node)",
		"./internal/core/cluster", replayed,
	},
	{
		"a checkpoint omits the node IDs that waiting members want", "internal/core/cluster/checkpoint.go",
		"		if want.nodes != nil {\n", "		if want.nodes != nil && want.node != noNode {\n",
		"./internal/core/cluster", replayed,
	},
	{
		"an old value changes with the new one", "internal/core/cluster/tree.go",
		"by == nil || n.edit != by", "n.edit != by",
		"./internal/core/cluster", replayed,
	},
	{
		"an expelled joiner joins by a command that was late", "internal/core/cluster/apply.go",
		"	case v.expelled.has(c.Joiner):", "	case false:",
		"./internal/core/cluster", shortly,
	},
	{
		"who was expelled is forgotten in a checkpoint", "internal/core/cluster/checkpoint.go",
		"	for at, id := range v.expulsions.all() {\n		w.",
		"	for at, id := range (tree[int64, string]{}).all() {\n		w.",
		"./internal/core/cluster", replayed,
	},
	{
		"the latest of the expelled is forgotten, not the first", "internal/core/cluster/apply.go",
		"v.expulsions.at(0)", "v.expulsions.at(maxExpelled)",
		"./internal/core/cluster", "TestExpelled",
	},
	{
		"a region has the node IDs of the one before it", "sequencer/region.go",
		"	return Range{r.Number * each, (r.Number+1)*each - 1}, nil",
		"	return Range{max(r.Number-1, 0) * each, (r.Number+1)*each - 1}, nil",
		"./sequencer", "Region",
	},
	{
		"a sequencer of another region is created", "internal/core/cluster/sequencer.go",
		"has && region != c.Region {", "has && false && region != c.Region {",
		"./internal/core/cluster", "Region",
	},
	{
		"a sequencer gets the prefix of another", "internal/core/cluster/quota.go",
		"if s.definition.Prefix == c.Definition.Prefix {", "if s.definition.Prefix != s.definition.Prefix {",
		"./internal/core/cluster", "Prefix",
	},
	{
		"a prefix in a log of before is refused", "internal/core/cluster/quota.go",
		"	if c.SolePrefix {", "	if c.Definition.Prefix != \"\" {",
		"./internal/core/cluster", "Prefix",
	},
	{
		"a sequencer is created beyond a quota", "internal/core/cluster/quota.go",
		"there >= q.Most", "there > q.Most",
		"./internal/core/cluster", "Quota",
	},
	{
		"a quota counts the sequencers of others", "internal/core/cluster/quota.go",
		"return ok && err == nil", "return ok || err == nil",
		"./internal/core/cluster", "Quota",
	},
	{
		"a node ID of another region is moved", "internal/core/cluster/sequencer.go",
		"		case !s.NodeIDs().Holds(c.Node):", "		case c.Node >= s.definition.Capacity():",
		"./internal/core/cluster", "Region",
	},
	{
		"a member of another region goes on", "internal/core/peer/replay.go",
		"ok && region != p.options.Region {", "ok && false && region != p.options.Region {",
		"./internal/core/peer", "OtherRegion",
	},
	{
		"a node ID of another region is claimed", "internal/core/peer/tenure.go",
		"err != nil || !nodes.Holds(s.looked.node) {", "err != nil || false && !nodes.Holds(s.looked.node) {",
		"./internal/core/peer", "AnotherRegion",
	},
	{
		"a sequencer is created in the whole, whatever the region", "internal/core/peer/create.go",
		"Definition: d, Region: m.options.Region, Start", "Definition: d, Start",
		"./internal/core/peer", "RegionsGive",
	},
	{
		"node IDs begin at the lowest, not by chance", "internal/core/peer/options.go",
		"return nodes.From + rand.N(nodes.Size())", "return nodes.From + 0*rand.N(nodes.Size())",
		"./internal/core/peer", "ByChance",
	},
	{
		"a drained member attaches", "internal/core/cluster/sequencer.go",
		"		case s.drained.has(c.Member):\n", "		case false:\n",
		"./internal/core/cluster", shortly,
	},
	{
		"a drained member keeps its node ID", "internal/core/cluster/sequencer.go",
		"			s = s.detach(w)\n		}\n		s.drained", "		}\n		s.drained",
		"./internal/core/cluster", shortly,
	},
	{
		"a member that has left is drained for ever", "internal/core/cluster/apply.go",
		"			s.drained = s.drained.without(c.Member)\n", "",
		"./internal/core/cluster", replayed,
	},
	{
		"a node ID moves to a member that does not accept it", "internal/core/cluster/sequencer.go",
		"		case !w.accepts(c.Node):", "		case false:",
		"./internal/core/cluster", replayed,
	},
	{
		"a moved node ID stays with its former holder, too", "internal/core/cluster/sequencer.go",
		"			s = s.giveBack(s.want(holder))\n",
		"			former := s.want(holder)\n			s = s.giveBack(former)\n" +
			"			s.wanting = s.wanting.put(holder, former)\n",
		"./internal/core/cluster", replayed,
	},
	{
		"a move takes the node ID from the member that it gave it to", "internal/core/cluster/sequencer.go",
		"			if last == c.To {", "			if false {",
		"./internal/core/cluster", replayed,
	},
	{
		"another allocation changes the next generation", "internal/core/cluster/sequencer.go",
		"	case c.Created != 0 && c.Created != s.created:\n		return refused(otherGeneration)\n	case s.alloc",
		"	case s.alloc",
		"./internal/core/cluster", replayed,
	},
	{
		"more members change to another sequencer than the policy needs", "internal/core/cluster/policy.go",
		"	members = slices.DeleteFunc(members, func",
		"	for _, member := range slices.Collect(keys(v.assigned)) {\n		v.unassign(member)\n" +
			"		members = append(members, member)\n	}\n	members = slices.DeleteFunc(members, func",
		"./internal/core/cluster", "TestAssignment",
	},
	{
		"of equal remainders, that of the sequencer with more members does not come first",
		"internal/core/cluster/policy.go",
		"s.members.len() > due[name]}", "false}",
		"./internal/core/cluster", "TestAssignment",
	},
	{
		"the smallest remainders are rounded up", "internal/core/cluster/policy.go",
		"cmp.Compare(b.remainder, a.remainder)", "cmp.Compare(a.remainder, b.remainder)",
		"./internal/core/cluster", "TestAssignment",
	},
	{
		"only members that change at once are looked for, past drained ones", "internal/core/cluster/policy.go",
		"			reached = append(reached, name)\n			if", "			if",
		"./internal/core/cluster", "TestAssignment",
	},
	{
		"a member serves a sequencer from which it is drained", "internal/core/cluster/policy.go",
		"			if !v.isDrained(member, name) && (best", "			if (best",
		"./internal/core/cluster", replayed,
	},
	{
		"a member that serves another sequencer gets a node ID", "internal/core/cluster/sequencer.go",
		"		if !v.serves(c.Member, c.Sequencer) {", "		if false {",
		"./internal/core/cluster", replayed,
	},
	{
		"a node ID moves to a member that serves another sequencer", "internal/core/cluster/sequencer.go",
		"		case s.paused.has(w.since):\n", "		case false:\n",
		"./internal/core/cluster", "TestPolicy",
	},
	{
		"a destroyed sequencer keeps its share", "internal/core/cluster/sequencer.go",
		"		v.shares = v.shares.without(c.Sequencer)\n", "",
		"./internal/core/cluster", replayed,
	},
	{
		"who leaves still counts in the policy", "internal/core/cluster/apply.go",
		"	v.unassign(c.Member)\n", "",
		"./internal/core/cluster", replayed,
	},
	{
		"a checkpoint forgets an allocation that was changed", "internal/core/cluster/checkpoint.go",
		"Allocation: s.changedAllocation(),", "",
		"./internal/core/cluster", replayed,
	},
	{
		"a generator is made once its floor is reached", "internal/core/peer/tenure.go",
		"!now.Add(early).Before(", "!now.Before(",
		"./internal/core/peer", "TestNoCallFallsBetweenTenures",
	},
	{
		"IDs of an open batch are handed out whatever their age", "client/prefetch.go",
		"	if now-o.asked > int64(k.maxAge) {\n		return", "	if now-o.asked < 0 {\n		return",
		"./client", "TestAheadUnderLoad",
	},
	{
		"a sealed batch is handed out once more", "client/prefetch.go",
		"rest := fetched{o.ids[i:], o.asked}", "rest := fetched{o.ids[max(i-1, 0):], o.asked}",
		"./client", "TestAheadUnderLoad",
	},
	{
		"texts that come twice in an answer are taken", "client/answer.go",
		"|| len(different) != n", "|| len(different) > n",
		"./client", "TestWrongTexts",
	},
	{
		"a fetch begins that Close does not wait for", "client/prefetch.go",
		" && k.s.client.enter() == nil {", " && k.s.client.enter() != ErrNoAnswer {",
		"./client", "TestNoFetchBeginsAfterClose",
	},
	{
		"callers fetch ahead only when no ID is left", "client/prefetch.go",
		"i >= o.low && now >= k.quiet.Load()", "i < 0",
		"./client", "TestBatchesAreFetchedAhead",
	},
	{
		"IDs that are to follow others precede them", "internal/core/peer/sequencer.go",
		"if after != 0 {\n			if err := g.Advance", "if after < 0 {\n			if err := g.Advance",
		"./internal/core/peer", "TestFillAfter",
	},
	{
		"a piece of an answer precedes the piece before", "internal/service/calls/give.go",
		"if c.Len() > 0 {", "if c.Len() < 0 {",
		"./internal/service/calls", "TestManyAfter",
	},
	{
		"scattered and other generations of a name mix", "internal/core/peer/generation.go",
		"if i.After != 0 && i.Scattered != d.Scattered {", "if i.After < 0 {",
		"./internal/core/peer", "TestScatteredAndPlainGenerationsDoNotMix",
	},
	{
		"a generation without IDs says whether IDs are scattered", "internal/core/peer/generation.go",
		"		if i.After == 0 { // else the former made none unless it was alike\n", "		{\n",
		"./internal/core/peer", "TestScatteredAndPlainGenerationsDoNotMix",
	},
	{
		"ticks begin at 0 whatever the definition says", "internal/core/peer/tenure.go",
		"if s.definition.RandomStart {", "if false {",
		"./internal/core/peer", "TestRandomStartIsOfTheDefinition",
	},
	{
		"a UUID of any time is an ID", "uuid.go",
		"} else if want != u.Tagged(\"\") {", "} else if false {",
		".", "TestUUIDsThatAreNoIDs",
	},
	{
		"scattered IDs of a large answer are scattered twice", "internal/service/calls/batch.go",
		"			ids[i] = firn.Gather(ids[i])\n", "			_ = firn.Gather(ids[i])\n",
		"./internal/service/httpapi", "TestScatteredOverEveryAnswer",
	},
	{
		"scattered IDs come over gRPC as they were made", "internal/service/calls/batch.go",
		"	if b.definition.Scattered {\n		to = to[:at]\n", "	if false {\n		to = to[:at]\n",
		"./internal/service/grpcapi", "TestScatteredBatches",
	},
	{
		"IDs that callers wait for are not scattered", "internal/core/peer/sequencer.go",
		"	return s.scatter(id), err\n", "	return id, err\n",
		"./internal/core/peer", "TestScatteredIDs",
	},
	{
		"anybody opens sealed IDs", "internal/service/calls/text.go",
		"; opens || seals {", "; seals && !opens {",
		"./internal/service/httpapi", "TestWhoMayOpen",
	},
	{
		"anybody seals IDs that exist", "internal/service/calls/text.go",
		"; opens || seals {", "; opens && !seals {",
		"./internal/service/httpapi", "TestWhoMayOpen",
	},
	{
		"who may not open a sealed ID gets its number", "internal/service/calls/text.go",
		"f == idtext.Sealed && who.May(auth.Open, name) != nil",
		"f != idtext.Sealed && who.May(auth.Open, name) != nil",
		"./internal/service/httpapi", "TestWhoMayOpen",
	},
	{
		"a text with another sequencer's prefix is read", "internal/service/idtext/idtext.go",
		"	case s.Name != \"\" && prefix != s.Prefix:", "	case s.Name == \"\" && prefix != s.Prefix:",
		"./internal/service/idtext", "TestGuess",
	},
	{
		"wrong check digits are read", "digits.go",
		"ok && checkDigits(id) == [2]byte(s[n+1:])", "ok",
		".", "TestEncodingRejects|TestCheckedFindsMistakes",
	},
	{
		"a character of no base is read beside seven digits", "digits.go",
		"n&(0xf0*bytes1) | (hexDigits(n) ^ text)", "n & (0xf0 * bytes1)",
		".", "TestTextsWithAnyByteAnywhere",
	},
	{
		"a text beyond 64 bits is another ID", "digits.go",
		" && before <= math.MaxInt64/four", " && before <= math.MaxInt64",
		".", "TestEncodingRejects",
	},
	{
		"check digits are of another modulus", "encoding.go",
		"c := 98 - uint64(id)%97*100%97", "c := 98 - uint64(id)%88*100%88",
		".", "TestEncodingKnownTexts|TestEncodingAgreesWithBigInt",
	},
	{
		"check digits behind a prefix are not looked at", "internal/service/idtext/numbered.go",
		"f == PrefixedChecked && check != string(c[:])", "f == PrefixedDecimal && check != string(c[:])",
		"./internal/service/idtext", "TestGuess",
	},
	{
		"the letters of a prefix do not count", "internal/service/idtext/numbered.go",
		"r = (100*r + c - 'A' + 10) % 97", "r = 0",
		"./internal/service/idtext", "TestCheckDigits",
	},
	{
		"a number behind another sequencer's prefix is read", "internal/service/idtext/numbered.go",
		"case s.Name != \"\" && !strings.EqualFold(prefix, s.Prefix):",
		"case s.Name == \"\" && !strings.EqualFold(prefix, s.Prefix):",
		"./internal/service/idtext", "TestGuess",
	},
	{
		"a number behind a prefix is read, though it may be base58", "internal/service/idtext/guess.go",
		"		all = append(all, r)\n",
		"		if all = append(all, r); f == PrefixedDecimal {\n			return r.ID, f, nil\n		}\n",
		"./internal/service/idtext", "TestDigits",
	},
	{
		"digits alone are read as decimal", "internal/service/idtext/guess.go",
		"; len(likely) > 0 {\n			all = likely\n", "; len(likely) >= 0 {\n			all = all[:1]\n",
		"./internal/service/idtext", "TestDigits|TestNoNewTextIsReadAsAnotherID",
	},
	{
		"a clock decides what a text means where it has not come yet", "internal/service/idtext/guess.go",
		"now.AddDate(ahead, 0, 0)", "now",
		"./internal/service/idtext", "TestDigits",
	},
	{
		"a message of a stream precedes the message before", "internal/service/grpcapi/stream.go",
		"				last = ids.Last()\n", "				_ = ids.Last()\n",
		"./internal/service/grpcapi", "TestStreamAscends",
	},
	{
		"a sequencer created again is taken for its former generation", "internal/core/peer/grant.go",
		"!ok || found.Created() != s.status.Load().created", "!ok",
		"./internal/core/peer", "CreatedAgain",
	},
	{
		"node IDs are claimed for a generation that is over", "internal/core/peer/tenure.go",
		"[]store.Condition{s.guard, floored}", "[]store.Condition{floored}",
		"./internal/core/peer", "ComesLate",
	},
	{
		"a member claims on a store that has lost a horizon of its own", "internal/core/peer/tenure.go",
		"err = s.m.checkKept(ctx)", "err = nil",
		"./internal/core/peer", "LooksForALoss",
	},
	{
		"a member joins again on a store that has lost its horizon", "internal/core/peer/incarnation.go",
		"m.checkKept(ctx)", "error(nil)",
		"./internal/core/peer", "TellsOfItsHorizonFirst",
	},
	{
		"a horizon that was set back is taken for kept", "internal/core/fence/fence.go",
		"kv.Version < known", "kv.Version < 0",
		"./internal/core/peer", "OnlyHorizonsAreLost",
	},
	{
		"a claim omits its condition on the floor", "internal/core/peer/tenure.go",
		"[]store.Condition{s.guard, floored}", "[]store.Condition{s.guard, floored}[:1]",
		"./internal/core/peer", "DoesNotKnowTheFloor",
	},
	{
		"a node ID taken over on an empty store stays in use", "internal/core/peer/floor.go",
		"taken || err != nil", "taken && err != nil",
		"./internal/core/peer", "TakenOverOn",
	},
	{
		"a member joins again without writing the floor after the store has lost data",
		"internal/core/peer/rollback.go",
		"	p.tellFloor(ctx, why)\n", "	_ = why\n",
		"./internal/core/peer", "LostData",
	},
	{
		"a member writes to a log that is not the one it knows", "internal/core/peer/rollback.go",
		"return e.ID == entry }) {", "return e.ID == entry }) || at > 0 {",
		"./internal/core/peer", "^TestAMemberTellsTheStoreFirst$",
	},
	{
		"the floor after lost data ignores clock skew", "internal/base/floor/floor.go",
		"max(v.Window, f.Window))).Add(Skew)", "max(v.Window, f.Window)))",
		"./internal/core/peer", "ReckonsWith",
	},
	{
		"the floor of an earlier loss is taken for that of the present one", "internal/base/floor/floor.go",
		"!f.From.Before(f.least(v))", "f.From.After(v.Now)",
		"./internal/core/peer", "TwoLosses",
	},
	{
		"a floor that is gone is not missed", "internal/core/peer/floor.go",
		"kv.Version < seen {", "kv.Version < 0 && seen > 0 {",
		"./internal/core/peer", "LossRightAfterAnother",
	},
	{
		"no step of the model: the floor of an earlier loss is taken for that of the present one",
		"internal/base/floor/floor.go",
		"!f.From.Before(f.least(v))", "f.From.After(v.Now)",
		"./internal/base/floor", "Model",
	},
	{
		"a refused clock settles the floor", "internal/base/floor/floor.go",
		"if v.Standing == Opposed {", "if false {",
		"./internal/core/peer", "RefusedClockSettles",
	},
	{
		"no step of the model: a refused clock settles the floor", "internal/base/floor/floor.go",
		"if v.Standing == Opposed {", "if false {",
		"./internal/base/floor", "Model",
	},
	{
		"a refused clock opens no floor", "internal/base/floor/floor.go",
		"write = !f.Open", "write = false",
		"./internal/core/peer", "KeepsNewcomersOut",
	},
	{
		"an open floor lets claims go on", "internal/base/floor/floor.go",
		"	case f.Open:\n		return f, Wait\n", "",
		"./internal/core/peer", "KeepsNewcomersOut",
	},
	{
		"a clock that was refused when the store lost data is believed once it is alone", "internal/core/peer/floor.go",
		"j.at.IsZero(), j.Out(), saw == refused:", "j.at.IsZero(), j.Out():",
		"./internal/core/peer", "OnlyRefused",
	},
	{
		"a clock that was refused at a loss is a witness of the next", "internal/core/peer/floor.go",
		"!j.at.IsZero() && w.saw == sawNothing:", "!j.at.IsZero():",
		"./internal/core/peer", "OnlyRefused",
	},
	{
		"a floor of before a loss makes a refused clock believed", "internal/core/peer/floor.go",
		"at.losses == w.since.losses && at.version >= w.since.version", "true",
		"./internal/core/peer", "TestWitness",
	},
	{
		"a floor beyond all clocks is believed", "internal/base/floor/floor.go",
		"return v.Standing == Agreed && !v.Living.IsZero() && f.From.After(f.most(v))", "return false",
		"./internal/core/peer", "BeyondAllClocks",
	},
	{
		"a floor is doubted that the horizon of another explains", "internal/base/floor/floor.go",
		"later(f.least(v), roundUp(v.Living.Add(Skew)))", "f.least(v)",
		"./internal/core/peer", "HorizonExplains",
	},
	{
		"a longer window is not written down before a claim", "internal/base/floor/floor.go",
		"case f.Window < v.Window:", "case false:",
		"./internal/core/peer", "LongestWindow",
	},
	{
		"a member does not remember the longest window", "internal/core/peer/floor.go",
		"max(m.options.Window, time.Duration(m.window.Load()))", "m.options.Window",
		"./internal/core/peer", "LongestWindow",
	},
	{
		"a floor ignores the longest window that the store has", "internal/base/floor/floor.go",
		"max(v.Window, f.Window)", "v.Window",
		"./internal/base/floor", "NotesTheLongest",
	},
	{
		"who resumes lets others go on before its own time", "internal/base/floor/floor.go",
		"Floor{From: v.Now, Window: f.Window, By: by, Why: \"resumed", "Floor{Window: f.Window, By: by, Why: \"resumed",
		"./internal/base/floor", "Model",
	},
	{
		"a horizon that went back is accepted", "internal/core/fence/fence.go",
		"v.Reported < known", "v.Reported < 0",
		"./internal/core/fence", "WentBack",
	},
	{
		"an older generation claims under the newer one", "internal/core/peer/generation.go",
		"false, m.stillLatest(ctx, name, created)", "false, nil",
		"./internal/core/peer", "ComesLate",
	},
	{
		"a generation that the log has ended is opened", "internal/core/peer/generation.go",
		"!ok || q.Created() != created", "!ok || q.Created() == 0",
		"./internal/core/peer", "NotOpened",
	},
	{
		"two layouts that two logs have at one position share a generation", "internal/core/peer/generation.go",
		"case i.Destroyed, !i.is(created, d):", "case i.Destroyed, i.Created != created:",
		"./internal/core/peer", "ALogThatWasLost",
	},
	{
		"a generation of a lost log is taken for the next one when it is destroyed", "internal/core/peer/destroy.go",
		"ok && i.is(next.Created(), next.Definition())", "ok && next.Created() > 0 || i.Created > q.Created()",
		"./internal/core/peer", "ReplacesAGeneration",
	},
	{
		"a destroyed sequencer is marked in a log that does not know it", "internal/core/peer/destroy.go",
		"v, err := m.catchUp(ctx)", "v, err := m.Value(), error(nil)",
		"./internal/core/peer", "NobodyPutsAGeneration",
	},
	{
		"the former generation is not closed", "internal/core/peer/generation.go",
		"		i.Former = &i.Definition\n", "",
		"./internal/core/peer", "Again|Generations",
	},
	{
		"a new generation begins below the former one's horizon", "internal/core/peer/generation.go",
		"i.After = max(i.After, last)", "_ = last",
		"./internal/core/peer", "Again|Generations",
	},
	{
		"a late close of a former generation revokes the next one's node IDs", "internal/core/peer/generation.go",
		"Revoke(ctx, m.store, fencePrefix(name), at)", "Revoke(ctx, m.store, fencePrefix(name))",
		"./internal/core/peer", "NextOne",
	},
	{
		"Destroy does not wait for members out of reach", "internal/core/peer/destroy.go",
		"return m.awaitQuiet(ctx, name, q, losses)", "_ = losses\n	return nil",
		"./internal/core/peer", "Destroy",
	},
	{
		"Destroy does not wait for owners of node IDs", "internal/core/peer/destroy.go",
		"case !live && rest <= 0:", "case rest <= 0:",
		"./internal/core/peer", "Destroy",
	},
	{
		"node IDs can be claimed for a destroyed sequencer", "internal/core/peer/destroy.go",
		"		i.Destroyed = true\n		return i, false, nil", "		return i, true, nil",
		"./internal/core/peer", "Destroy",
	},
	{
		"a detach is announced before the node ID is free", "internal/core/peer/grant.go",
		"attached && !st.wanted && st.state.Empty()", "attached && !st.wanted",
		"./internal/core/peer", "Detach|Standby",
	},
	{
		"an ID space is continued within the last tick of the former", "sequencer/definition.go",
		"l.TickStart(p.Tick + 1)", "l.TickStart(p.Tick)",
		"./sequencer", "Above",
	},
	{
		"a joiner whose target died waits for an outdated deadline", "internal/core/peer/joining.go",
		"			if c.Joiner == l.id {\n", "			if c.Joiner == \"\" {\n",
		"./internal/core/peer", "AllCrash",
	},
	{
		"a token is good for every sequencer", "internal/service/admit/auth/caller.go",
		"	case c.sequencers == nil:\n", "	case c.sequencers == nil || c != nil:\n",
		"./internal/service/admit/auth", "May",
	},
	{
		"every caller is trusted", "internal/service/admit/auth/policy.go",
		"	case p.Trusted:\n", "	case p.Trusted || p != nil:\n",
		"./internal/service/admit/auth", all,
	},
	{
		"a caller without the secret may make changes", "internal/service/admit/auth/local.go",
		"		return s.looker, nil\n", "		return s.owner, nil\n",
		"./internal/service/admit/auth", all,
	},
	{
		"a Unix socket listens before its file has its mode", "internal/base/unixsocket/listen_unix.go",
		"	if err := chmod(", "	_ = syscall.Listen(fd, backlog)\n	if err := chmod(",
		"./internal/base/unixsocket", "Mode",
	},
	{
		"the socket of a process that listens is replaced", "internal/base/unixsocket/listen_unix.go",
		"	case there:\n", "	case there && path == \"\":\n",
		"./internal/base/unixsocket", "Others",
	},
	{
		"two that start at once replace each other's sockets", "internal/base/unixsocket/listen_unix.go",
		"syscall.LOCK_EX|syscall.LOCK_NB", "syscall.LOCK_SH|syscall.LOCK_NB",
		"./internal/base/unixsocket", "OthersWait",
	},
	{
		"a listener that closes removes another's socket", "internal/base/unixsocket/listen_unix.go",
		"err == nil && os.SameFile(now, l.made)", "err == nil && now != nil",
		"./internal/base/unixsocket", "Close",
	},
	{
		"a socket of systemd lets other machines administer without tokens", "internal/service/node/servers.go",
		"if a == Admin && listener.Addr()", "if a == Metrics && listener.Addr()",
		"./cmd/firn", "SocketActivation",
	},
	{
		"the client sends the secret to any listener", "internal/service/admit/secretfile/secretfile.go",
		"		if a == server || listensAt(u, a) {\n", "		if a == server || listensAt(u, a) || true {\n",
		"./cmd/firn", "Squatter",
	},
	{
		"a page under another host name may administer", "internal/service/httpapi/methods.go",
		"h.policy.AdmitHost(r.Host)", "nil",
		"./internal/service/httpapi", "Host",
	},
	{
		"whoever may look gets a backup, with everything in it", "internal/service/calls/quorum.go",
		"	_, end, err := s.aboutQuorum(ctx, who, auth.Admin)\n",
		"	_, end, err := s.aboutQuorum(ctx, who, auth.Look)\n",
		"./internal/service/httpapi", "QuorumRights",
	},
	{
		"a backup that fails halfway looks whole", "internal/service/httpapi/quorum.go",
		"		came(w, h.service.Refuse(Origin(r), callOf(r), err))\n		panic(http.ErrAbortHandler)\n",
		"		came(w, h.service.Refuse(Origin(r), callOf(r), err))\n",
		"./internal/service/httpapi", "BrokenBackup",
	},
	{
		"part of a backup gets the name of the whole", "cmd/firn/quorum_backup.go",
		"	_, err = io.Copy(f, from)\n", "	_, _ = io.Copy(f, from)\n",
		"./cmd/firn", "^TestQuorumBackup$",
	},
	{
		"a machine that stops does not hand leadership over", "internal/service/node/store.go",
		"		n.quorum.Close()\n", "",
		"./internal/service/node", "^TestQuorum$",
	},
	{
		"the number of calls at a time is not limited", "internal/service/calls/service.go",
		"s.calls.Add(1) > int64(s.options.MaxCalls)", "s.calls.Add(1) < 0",
		"./internal/service/calls", "CallsAtATime",
	},
	{
		"one caller may hold all memory for answers", "internal/service/calls/shares.go",
		"s.callers[c.caller]+8*s.connections[c.connection]+c.size <= s.free", "c.size <= s.free",
		"./internal/service/calls", "Shares",
	},
	{
		"large calls leave no IDs for small ones", "internal/service/calls/turns.go",
		"leftShare = 1.0 / 32", "leftShare = -1.0",
		"./internal/service/calls", "LeaveAPart",
	},
	{
		"the caller with the most calls gets the most turns", "internal/service/calls/turns.go",
		"l.callers = append(l.callers, q)\n		}", "l.callers = append([]*queue{q}, l.callers...)\n		}",
		"./internal/service/calls", "TakeTurns",
	},
	{
		"a different command counts as a repeat", "internal/service/respapi/conn.go",
		"string(c.in[c.begin:c.begin+c.size]) == string(command)", "len(command) > 0",
		"./internal/service/respapi", all,
	},
	{
		"the age of IDs counts from the answer, not from the request", "client/prefetch.go",
		"	asked := k.clock.Sync()\n	b, err := k.s.ask(ctx, query{n: n})\n",
		"	b, err := k.s.ask(ctx, query{n: n})\n	asked := k.clock.Sync()\n",
		"./client", all,
	},
	{
		"packed IDs may come twice", "client/answer.go",
		"	if err := packed.ReadFrom(ids, body); err != nil {\n		return nil, err\n	}\n" +
			"	return ids, distinct(ids)", "	return ids, packed.ReadFrom(ids, body)",
		"./client", "Packed",
	},
	{
		"more packed IDs than were asked for are taken", "internal/base/packed/packed.go",
		"len(b) != len(ids)*Size", "len(b) < len(ids)*Size",
		"./internal/base/packed", all,
	},
	{
		"an answer with a packed ID too many is taken", "internal/base/packed/packed.go",
		"	case n > 0:\n", "	case n > 1:\n",
		"./internal/base/packed", "ReadFrom",
	},
	{
		"each piece of packed IDs replaces the one before", "internal/base/packed/packed.go",
		"fill(ids, done/Size, b[:n])", "fill(ids, 0, b[:n])",
		"./internal/base/packed", "ReadFrom",
	},
	{
		"the IDs of a sequencer that scatters them count as given twice", "client/answer.go",
		"if id <= last && !slices.IsSorted(ids) {", "if id < 0 && !slices.IsSorted(ids) {",
		"./client", "Packed",
	},
	{
		"who prefers JSON gets packed IDs", "internal/service/httpapi/accept.go",
		"case forPacked == greatest:", "case forPacked > 0:",
		"./internal/service/httpapi", "Packed",
	},
	{
		"who accepts JSON with strings gets numbers", "internal/service/httpapi/accept.go",
		"case forTexts == greatest:", "case forTexts > greatest:",
		"./internal/service/httpapi", "WhoGetsTexts",
	},
	{
		"many IDs that are to be strings are numbers", "internal/service/httpapi/answer.go",
		"err = l.append(ids, `\"`, as.text)", "err = l.append(ids, \"\", as.text)",
		"./internal/service/httpapi", "Texts",
	},
	{
		"FIRN.IDS replies with integers", "internal/service/respapi/give.go",
		"err != nil || len(form) == 0 {\n		return as, err",
		"err != nil || len(form) == 0 {\n		return c.s.numbers(), err",
		"./internal/service/respapi", "TestCommands",
	},
	{
		"another site's page takes IDs with Leaf's GET", "internal/service/httpapi/leaf.go",
		"h.notFromAfar(r); err != nil {", "h.notFromAfar(r); err != nil && false {",
		"./internal/service/httpapi", "Leaf",
	},
	{
		"the client retries its caller's mistake at another server", "client/errors.go",
		"return ok && e.final()", "return ok && e == nil",
		"./client", all,
	},
	{
		"clients of a quorum need no certificate", "store/quorum/internal/keyring/keyring.go",
		"tls.RequireAndVerifyClientCert", "tls.VerifyClientCertIfGiven",
		"./store/quorum/internal/keyring", "ServerRefuses",
	},
	{
		"clients of a quorum may have any certificate", "store/quorum/internal/keyring/keyring.go",
		"tls.RequireAndVerifyClientCert", "tls.RequireAnyClientCert",
		"./store/quorum/internal/keyring", "ServerRefuses",
	},
	{
		"the certificate of a quorum's machine is not checked", "store/quorum/internal/keyring/keyring.go",
		"		RootCAs:    r.roots(),\n", "		RootCAs:    r.roots(),\n		InsecureSkipVerify:   true,\n",
		"./store/quorum/internal/keyring", "ClientRefuses",
	},
	{
		"a certificate of any authority is accepted", "store/quorum/internal/keyring/keyring.go",
		"	if err != nil {\n		return &tls.CertificateVerificationError",
		"	if err != nil && host != \"\" {\n		return &tls.CertificateVerificationError",
		"./store/quorum/internal/keyring", "OwnAuthority",
	},
	{
		"a process shows the certificate of one key only", "store/quorum/internal/keyring/keyring.go",
		"shown.Certificate = append(shown.Certificate, signed)",
		"shown.Certificate = append(shown.Certificate[:1], signed)",
		"./store/quorum/internal/keyring", "SharesAKey",
	},
	{
		"a session outlives its key", "store/quorum/internal/keyring/keyring.go",
		"SessionTicketsDisabled: true,", "SessionTicketsDisabled: false,",
		"./store/quorum/internal/keyring", "Resumed",
	},
	{
		"a key that is added has a time of its own", "store/quorum/internal/keyring/key.go",
		"NewKey(keys.Since())", "NewKey(time.Now())",
		"./store/quorum/internal/keyring", "AnotherKey",
	},
	{
		"a cluster is as old as its newest key", "store/quorum/internal/keyring/key.go",
		"oldest = min(oldest, k.since)", "oldest = max(oldest%math.MaxInt64, k.since)",
		"./store/quorum/internal/keyring", "AnotherKey",
	},
	{
		"a process of a user replaces the key of another", "store/quorum/internal/keyring/file.go",
		"os.Link(temporary, path)", "os.Rename(temporary, path)",
		"./store/quorum/internal/keyring", "UserFile",
	},
	{
		"the newest handshake makes room", "store/quorum/internal/port/port.go",
		"n > most {", "n >= most {",
		"./store/quorum/internal/port", "Silent",
	},
	{
		"handshakes of any host make room", "store/quorum/internal/port/port.go",
		"		hosts[h.host]++\n", "		hosts[h.host] = 1\n",
		"./store/quorum/internal/port", "Silent",
	},
	{
		"a handshake takes for ever", "store/quorum/internal/port/port.go",
		"	_ = c.SetDeadline(time.Now().Add(handshakeLimit))\n", "",
		"./store/quorum/internal/port", "Strangers",
	},
	{
		"a stalled side keeps a pipe", "store/quorum/internal/port/pipe.go",
		"			_ = to.SetWriteDeadline(time.Now().Add(stallLimit)) // if it fails, so does the write\n", "",
		"./store/quorum/internal/port", "Pipe",
	},
	{
		"each member whose turn may come writes the minute", "internal/core/peer/history.go",
		"ok && written.At.Equal(at)", "ok && written.At.Equal(at) && turns == 0",
		"./internal/core/peer", "^TestOneMemberWritesEachMinute$",
	},
	{
		"members do not wait for the one whose turn it is", "internal/core/peer/history.go",
		"time.Duration(turn)*turnEvery", "0*time.Duration(turn)*turnEvery",
		"./internal/core/peer", "Minute$",
	},
	{
		"an expelled member goes on", "internal/core/peer/operator.go",
		"slices.Contains(p.ids, c.Member) && r.Value().Expelled(c.Member)", "false",
		"./internal/core/peer", "^TestExpelEndsAProcess$",
	},
	{
		"a member that was drained attaches under its next ID", "internal/core/peer/grant.go",
		"p.drained(name, q, id)", "q.Drained(id)",
		"./internal/core/peer", "^TestWhatIsDrainedStaysDrained$",
	},
	{
		"the former holder of a node ID that was moved goes on", "internal/core/peer/operator.go",
		"s.withdraw(t, errMoved)", "_ = t",
		"./internal/core/peer", "^TestANodeIDIsMoved$",
	},
	{
		"a node ID that becomes free waits for the next attempt to claim it", "internal/core/peer/tenure.go",
		"s.whenFree(ctx, err)", "s.whenFree(ctx, nil)",
		"./internal/core/peer", "^TestANodeIDIsClaimedOnceItIsFree$",
	},
	{
		"a definition's window is ignored", "internal/core/peer/options.go",
		"return min(d.Window, o.Window)", "return o.Window",
		"./internal/core/peer", "^TestAWindowOfItsOwn$",
	},
	{
		"a definition's window exceeds the member's", "internal/core/peer/options.go",
		"return min(d.Window, o.Window)", "return d.Window",
		"./internal/core/peer", "^TestAWindowOfItsOwn$",
	},
	{
		"minutes to come are shown as the last hour", "internal/core/peer/history.go",
		"ago < kept*time.Minute && ago > -time.Minute", "ago < kept*time.Minute",
		"./internal/core/peer", "^TestHistoryOf",
	},
	{
		"an overdue pulse passes for fresh", "internal/service/calls/look.go",
		"return age, true, age <= allowed", "return age, true, true",
		"./internal/service/calls", "^TestHowOldAPulseIs$",
	},
	{
		"a store is silent since somebody looked last", "internal/service/calls/look.go",
		"if l.answered = s.member.Answered(); l.answered.Before(l.read) {", "if true {",
		"./internal/service/calls", "^TestSinceWhenTheStoreIsSilent$",
	},
	{
		"a short window is reported to end all the time", "internal/service/calls/problems_time.go",
		"p.leftThen(m) < m.Every &&\n			!p.short(m) {", "p.leftThen(m) < m.Every {",
		"./internal/service/calls", "^TestProblems$",
	},
	{
		"the dashboard does not know that a machine is lost", "internal/service/calls/look.go",
		"return s.statusOf(s.member.Value(), r, q), nil", "return s.statusOf(s.member.Value(), r, nil), nil",
		"./internal/service/ui", "^TestProblemsOfTheQuorum$",
	},
	{
		"a late clock makes its pulse old", "internal/service/calls/look.go",
		"age = min(age, now.Sub(s.before))", "_ = now",
		"./internal/service/calls", "^TestHowOldAPulseIs$",
	},
	{
		"a late clock makes a pulse old that was just seen", "internal/service/calls/look.go",
		"case age > allowed+unsure && least <= allowed+unsure:", "case s.first.IsZero():",
		"./internal/service/calls", "^TestHowOldAPulseIs$",
	},
	{
		"a pulse is never overdue at first sight", "internal/service/calls/look.go",
		"case age > allowed+unsure && least <= allowed+unsure:", "case age > allowed+unsure:",
		"./internal/service/calls", "^TestHowOldAPulseIs$",
	},
	{
		"a clock ahead makes its pulse new forever", "internal/service/calls/look.go",
		"	age = max(age, least)\n", "	age = max(age, 0)\n",
		"./internal/service/calls", "^TestHowOldAPulseIs$",
	},
	{
		"a pulse tells the time left before its horizons are renewed", "internal/core/peer/vitals.go",
		"slices.Contains(renewed, t.fence)", "slices.Contains(renewed[:0], t.fence)",
		"./internal/core/peer", "^TestAPulseTellsTheTimeLeft$",
	},
	{
		"a pulse tells the time left of a horizon that is renewed without it", "internal/core/peer/vitals.go",
		"t.fence != nil && s.fences.Window == m.options.Window {", "t.fence != nil {",
		"./internal/core/peer", "^TestAPulseTellsTheTimeLeft$",
	},
	{
		"a member lacks a node ID that the allocation gives to none", "internal/core/cluster/sequencer.go",
		"min(holders(s.allocation, v.peers.len()), int64(s.wanting.len()-s.paused.len()))\n	var",
		"int64(s.wanting.len() - s.paused.len())\n	var",
		"./internal/core/cluster", "^TestLacking$",
	},
	{
		"a node waits for another's IDs as long as its callers do", "internal/service/calls/forward.go",
		"hangs+time.Duration(makes*float64(time.Second))", "time.Hour+time.Duration(makes*float64(time.Second))",
		"./internal/service/calls", "TestSilentNode",
	},
	{
		"a node that is cut off says that no node gives IDs", "internal/service/calls/problems_store.go",
		"case len(l.silent) > 0: // the network", "case false: // the network",
		"./internal/service/calls", "^TestProblems$",
	},
	{
		"what is not confirmed counts as a problem", "internal/service/calls/problems.go",
		"if m.Fresh && m.Vitals != nil && !yield(m) {", "if m.Vitals != nil && !yield(m) {",
		"./internal/service/calls", "^TestProblems$",
	},
	{
		"pulses are judged against now, not against the last reading", "internal/service/calls/look.go",
		"	if l.reading == nil {\n		return l.now", "	if true {\n		return l.now",
		"./internal/service/calls", "^TestAHealthyClusterHasNoProblems$",
	},
	{
		"reserved time is judged against now, not against the last reading", "internal/service/calls/problems_time.go",
		"return p.left(m) + p.status.At.Sub(*read)", "_ = read",
		"./internal/service/calls", "^TestAHealthyClusterHasNoProblems$",
	},
	{
		"a clock that differs makes reserved time look short at the first look", "internal/service/calls/look.go",
		"age = min(age, allowed)", "_ = allowed",
		"./internal/service/calls", "^TestAHealthyClusterHasNoProblems$",
	},
	{
		"one that leaves is said to be gone", "internal/service/calls/look.go",
		"	if len(r.gone) > 0 {", "	if false {",
		"./internal/service/calls", "^TestAHealthyClusterHasNoProblems$",
	},
	{
		"one that has come since is said to be gone", "internal/service/calls/look.go",
		"|| l.reading.gone[id] {", "|| true {",
		"./internal/service/calls", "^TestAHealthyClusterHasNoProblems$",
	},
	{
		"the log is never left alone", "internal/core/peer/replay.go",
		"_ = retry.Sleep(ctx, time.Duration(p.rest.Load()))", "_ = retry.Sleep",
		"./internal/core/peer", "^TestEntriesThatComeTogetherAreReplayedTogether$",
	},
	{
		"a member takes out all of the dead at once", "internal/core/peer/commands.go",
		"range min(len(dead), removeAtOnce)", "range dead",
		"./internal/core/peer", "^TestManyFindTheSameDead$",
	},
	{
		"everybody begins with the same one of the dead", "internal/core/peer/commands.go",
		"dead[(first+i)%len(dead)]", "dead[(0*first+i)%len(dead)]",
		"./internal/core/peer", "^TestManyFindTheSameDead$",
	},
	{
		"all in line call for a collection", "internal/core/peer/joining.go",
		" + perPlace*time.Duration(len(j.line.ahead))", "",
		"./internal/core/peer", "^TestOneOfManyCallsForACollection$",
	},
	{
		"who leaves the line and comes back overtakes others", "internal/core/peer/joining.go",
		"		maps.Copy(l.ahead, l.behind)", "		maps.Copy(l.ahead, map[string]bool{})",
		"./internal/core/peer", "^TestLine$",
	},
	{
		"a mark changes nothing", "internal/core/cluster/tree.go",
		"item[K, V]{key, n.value, marked}", "n.item",
		"./internal/core/cluster", "^TestTreeIsASortedMap$",
	},
	{
		"a replay changes the value that it has shown", "internal/core/cluster/apply.go",
		"	e := new(edit)\n", "	e := r.v.peers.edit\n	if e == nil {\n		e = new(edit)\n	}\n",
		"./internal/core/cluster", replayed,
	},
	{
		"a replay changes a value that it was given", "internal/core/cluster/tree.go",
		"n.edit != by {", "n.edit != by && n.edit != nil {",
		"./internal/core/cluster", replayed,
	},
}
