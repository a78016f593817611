package main

const compares = "^Test(Against|Record|Scattered|Descents)"

// compared are faults by which firn bench does not notice what two generators have in common, or what it compared.
var compared = []mutant{
	{
		"an ID from both sides is not noticed", "internal/ops/load/record.go",
		"to := min(top.to, upTo[1-top.side])", "to := min(top.to, upTo[1-top.side]-1)",
		"./internal/ops/load", compares,
	},
	{
		"an ID that one side repeats comes from both", "internal/ops/load/record.go",
		"to := min(top.to, upTo[1-top.side])", "to := min(top.to, upTo[top.side])",
		"./internal/ops/load", compares,
	},
	{
		"an ID from both sides counts as often as it came", "internal/ops/load/record.go",
		"from := max(top.from, upTo[top.side]+1)", "from := top.from",
		"./internal/ops/load", compares,
	},
	{
		"an ID that the command repeats is not noticed", "internal/ops/load/against.go",
		"a.Again, _ = repeated(theirs)", "",
		"./internal/ops/load", compares,
	},
	{
		"IDs that descend are not noticed", "internal/ops/load/record.go",
		"			r.descents++\n", "",
		"./internal/ops/load", compares + "|Order",
	},
	{
		"a node ID on both sides is not noticed", "internal/ops/load/against.go",
		"slices.BinarySearch(a.Ours, node); ok", "slices.BinarySearch(a.Ours, node); !ok",
		"./internal/ops/load", compares,
	},
	{
		"only the first node ID is noticed", "internal/ops/load/against.go",
		"len(n.seen) < mostNodes", "len(n.seen) < 1",
		"./internal/ops/load", compares,
	},
	{
		"the node ID of a scattered ID is that of another one", "internal/ops/load/against.go",
		"made = firn.Gather(id)", "made = id",
		"./internal/ops/load", compares,
	},
	{
		"a line that is no ID is left out", "internal/ops/load/against.go",
		"		return fmt.Errorf(\"line %d of the command's output: %w\", c.lines, err)\n	}\n	made",
		"		return nil\n	}\n	made",
		"./internal/ops/load", "^TestAgainstErrors$/x2",
	},
	{
		"an ID of another layout is compared", "internal/ops/load/against.go",
		"c.seen.nodes.add(made); err != nil", "c.seen.nodes.add(made); false",
		"./internal/ops/load", compares,
	},
	{
		"a command that fails is compared", "internal/ops/load/against.go",
		"	case failed:", "	case false:",
		"./internal/ops/load", compares,
	},
	{
		"a command that was stopped has ended", "internal/ops/load/against.go",
		"c.stopped = canceled && failed", "c.stopped = false && failed",
		"./internal/ops/load", compares,
	},
	{
		"a command that ended was stopped", "internal/ops/load/against.go",
		"c.stopped = canceled && failed", "c.stopped = canceled",
		"./internal/ops/load", compares,
	},
	{
		"the last line is left out if it has no end", "internal/ops/load/against.go",
		"err := c.line(c.rest)\n", "err := c.line(c.rest[:0])\n",
		"./internal/ops/load", compares,
	},
	{
		"the command's IDs take all memory", "internal/ops/load/against.go",
		"memory.Store(half)", "memory.Store(1 << 40)",
		"./internal/ops/load", compares,
	},
	{
		"what the command has started goes on", "internal/ops/load/group_unix.go",
		"syscall.Kill(-process", "syscall.Kill(process",
		"./internal/ops/load", compares,
	},
	{
		"a reserved node ID is called unreserved", "cmd/firn/bench_against.go",
		"slices.Contains(r.Nodes, node)", "false",
		"./cmd/firn", "^TestScripts$/^bench-against$",
	},
	{
		"the same ID is no error", "cmd/firn/bench_against.go",
		"case a.Same > 0:", "case false:",
		"./cmd/firn", "^TestScripts$/^bench-against$",
	},
	{
		"the same node ID is no error", "cmd/firn/bench_against.go",
		"case len(a.Both) > 0:\n		return", "case false:\n		return",
		"./cmd/firn", "^TestScripts$/^bench-against$",
	},
}
