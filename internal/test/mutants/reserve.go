package main

const (
	ofReservations = "Reserv|Release|Free"
	ofLater        = "ForLater"
	ofThePast      = "Past|Use|Time|Give|Call|Job|Begin|Holds"
)

// reservations are faults by which a node ID that is reserved is used by a member, too.
var reservations = []mutant{
	{
		"a reserved node ID can be claimed", "internal/core/fence/reserve.go",
		"return endOfTime, reservedBy", "return floor, reservedBy",
		"./internal/core/fence", ofReservations,
	},
	{
		"a reservation does not look who has changed the node ID", "internal/core/fence/reserve.go",
		"Condition{Key: key, Version: v.Reported}", "Condition{Key: \"none\"}",
		"./internal/core/fence", ofReservations,
	},
	{
		"the owner of a reserved node ID can go on", "internal/core/fence/reserve.go",
		"if v.Live != 0 {", "if false {",
		"./internal/core/fence", ofReservations,
	},
	{
		"a reservation begins where the time of all begins", "internal/core/fence/reserve.go",
		"floor = max(floor, roundUp(notBefore))", "floor = roundUp(notBefore)",
		"./internal/core/fence", ofReservations,
	},
	{
		"what is freed is used again from where the member before stopped", "internal/core/fence/reserve.go",
		"return max(floor, roundUp(end))", "return floor",
		"./internal/core/fence", ofReservations,
	},
	{
		"what is freed is used again from before the member before stopped", "internal/core/fence/reserve.go",
		"max(floor, roundUp(end))", "max(floor-floor, roundUp(end))",
		"./internal/core/fence", ofReservations,
	},
	{
		"another generation reserves", "internal/core/fence/reserve.go",
		"If: slices.Clone(guards)}", "If: slices.Clone(guards[:0])}",
		"./internal/core/fence", ofReservations,
	},
	{
		"a member is told before the fence is there", "internal/core/peer/reserve.go",
		"from, err := m.fenceOff(ctx, sequencer, q, made)", "from, err := time.Time{}, error(nil)",
		"./internal/core/peer", ofReservations,
	},
	{
		"a late fence takes the place of a later one", "internal/core/fence/reserve.go",
		"case reserved && by > number:", "case false:",
		"./internal/core/fence", ofReservations,
	},
	{
		"a late release ends the next reservation", "internal/core/cluster/reserve.go",
		"r == nil || r.Since != c.Since", "r == nil",
		"./internal/core/peer", ofReservations,
	},
	{
		"a release leaves fences that are under way", "internal/core/fence/reserve.go",
		"fresh.Text(), !reserved || by <= number, nil",
		"fresh.Text(), reserved && by <= number, nil",
		"./internal/core/fence", ofReservations,
	},
	{
		"a release frees what a later reservation has", "internal/core/fence/reserve.go",
		"fresh.Text(), !reserved || by <= number, nil", "fresh.Text(), true || !reserved || by <= number, nil",
		"./internal/core/fence", ofReservations,
	},
	{
		"a reservation forgets where the one before it began", "internal/core/fence/reserve.go",
		"floor = max(floor, roundUp(notBefore))", "floor = max(floor*0, roundUp(notBefore))",
		"./internal/core/fence", ofReservations,
	},
	{
		"what is reserved for later has no fences", "internal/core/peer/create.go",
		"_, _, err = m.Reserve(ctx, name, cluster.Reserving{For: cluster.Later, Count: count})", "",
		"./internal/core/peer", ofLater,
	},
	{
		"members may have what is for later first", "internal/core/peer/create.go",
		"if later > 0 && !slices", "if false && !slices",
		"./internal/core/peer", ofLater,
	},
	{
		"what was for later, and is free again, keeps its fence", "internal/core/peer/reserve.go",
		"case len(still.Nodes) < len(made.Nodes):", "case superseded && len(still.Nodes) < len(made.Nodes):",
		"./internal/core/peer", ofLater,
	},
	{
		"what is for later has no fences after a loss", "internal/core/peer/reserve.go",
		"r.For == cluster.Later && there != nil", "false && r.For == cluster.Later && there != nil",
		"./internal/core/peer", ofLater,
	},
	{
		"a create is content with fewer node IDs for later", "internal/core/peer/create.go",
		"if int64(there) != count {", "if false {",
		"./internal/core/peer", ofLater,
	},
	{
		"what is taken of the node IDs for later stays there", "internal/core/cluster/reserve.go",
		"	s = s.keep(slices.Clip(kept[:left]))\n", "	_ = left\n",
		"./internal/core/cluster", ofReservations,
	},
	{
		"a node ID that is named stays for later", "internal/core/cluster/reserve.go",
		"return s.keep(kept), applied", "return s, applied",
		"./internal/core/cluster", ofReservations,
	},
	{
		"node IDs for later are for nothing", "internal/core/cluster/reserve.go",
		"case r.For == Later:", "case false:",
		"./internal/core/cluster", ofReservations,
	},
	{
		"a release meanwhile is not noticed", "internal/core/peer/reserve.go",
		"still != nil && still.Since == made.Since", "(still == nil || still.Since == made.Since)",
		"./internal/core/peer", ofReservations,
	},
	{
		"a fence that was abandoned keeps its name from all", "internal/core/peer/generation.go",
		"fence.FreeAll(ctx, m.store, fencePrefix(name), at)", "fence.FreeAll(ctx, m.store, \"none\", at)",
		"./internal/core/peer", ofReservations + "|Abandon",
	},
	{
		"what an abandoned reservation began after is used again", "internal/core/fence/reserve.go",
		"return floor, fresh.Text(), reserved, nil", "return 0 * floor, fresh.Text(), reserved, nil",
		"./internal/core/fence", ofReservations,
	},
	{
		"a reservation begins below the floor of all", "internal/core/peer/reserve.go",
		"floored}, later(from, floor), nil", "floored}, later(from, time.Time{}.Add(0*floor.Sub(floor))), nil",
		"./internal/core/peer", ofReservations,
	},
	{
		"a loss of data ends reservations", "internal/core/peer/rollback.go",
		"	p.keepReservations()\n", "",
		"./internal/core/peer", ofReservations,
	},
	{
		"a reserved node ID is moved", "internal/core/cluster/sequencer.go",
		"case s.ReservedFor(c.Node) != nil:", "case false:",
		"./internal/core/cluster", ofReservations,
	},
	{
		"a sequencer with reserved node IDs is destroyed", "internal/core/cluster/sequencer.go",
		"case s.reserved.len() > 0:", "case false:",
		"./internal/core/cluster", ofReservations,
	},
	{
		"two calls of a job take the same time", "internal/core/fence/use.go",
		"store.Condition{Key: kv.Key, Version: kv.Version}", "store.Condition{Key: \"none\"}",
		"./internal/core/fence", ofThePast,
	},
	{
		"a job's call that was applied is made again", "internal/core/fence/use.go",
		"case t.Then != nil && bytes.Equal", "case len(t.Then) > 1 && bytes.Equal",
		"./internal/core/fence", ofThePast,
	},
	{
		"what a job has given is not noticed to be lost", "internal/core/fence/use.go",
		"err == nil && kv.Version < known {", "err == nil && kv.Version < 0*known {",
		"./internal/core/fence", ofThePast,
	},
	{
		"a job that is over goes on", "internal/core/fence/use.go",
		"!ok || by != number", "!ok || by < 0",
		"./internal/core/fence", ofThePast,
	},
	{
		"a job gives an ID of a tick that it has left", "internal/core/past/past.go",
		"case ticks[i] < after.tick:", "case false:",
		"./internal/core/past", ofThePast,
	},
	{
		"two calls of a job get the same ID", "internal/core/past/past.go",
		"spot{place + 1, ticks[i]}", "spot{place, ticks[i]}",
		"./internal/core/past", ofThePast,
	},
	{
		"another call gets the IDs of the last one", "internal/core/past/past.go",
		"for _, t := range times {\n		b = binary", "for _, t := range times[:0] {\n		b = binary",
		"./internal/core/past", ofThePast,
	},
	{
		"a job ends before its last tick has", "internal/core/past/past.go",
		"(p.place-1)>>r.Layout.SequenceBits + 1)", "(p.place-1)>>r.Layout.SequenceBits)",
		"./internal/core/past", ofThePast,
	},
	{
		"a job gives IDs of what a loss of data may have made forgotten", "internal/core/peer/past.go",
		"rule.Begin(progress, from); err", "rule.Begin(progress, rule.Layout.Epoch); err",
		"./internal/core/peer", ofThePast,
	},
	{
		"nobody asks whether the store knows what a job has given", "internal/core/peer/past.go",
		"if p.After != 0 {", "if p.After < 0 {",
		"./internal/core/peer", ofThePast,
	},
	{
		"a job takes a node ID that was used where there are others", "internal/core/cluster/reserve.go",
		"(r == nil || r.For == Later)", "r == nil",
		"./internal/core/peer", ofLater,
	},
	{
		"a node ID that was reserved again is freed", "internal/core/fence/reserve.go",
		"append(slices.Clone(guards), store.Condition{Key: kv.Key, Version: kv.Version})", "slices.Clone(guards)",
		"./internal/core/fence", ofReservations,
	},
	{
		"a node ID is freed by a log that the store no longer has", "internal/core/fence/reserve.go",
		"if err := sure(); err != nil {", "if err := sure(); err != nil && false {",
		"./internal/core/fence", ofReservations,
	},
	{
		"what is left is freed from the beginning", "internal/core/fence/reserve.go",
		"reportedValue(floor, fresh.Text(), fresh.Text())", "reportedValue(0*floor, fresh.Text(), fresh.Text())",
		"./internal/core/fence", ofReservations,
	},
	{
		"a member waits for a reservation that is over", "internal/core/peer/tenure.go",
		"return s.freeLeft(ctx, err)", "return err",
		"./internal/core/peer", "AbandonedFence",
	},
}
