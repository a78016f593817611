package main

const ofImports = "Progress|Crash|WrongIDs|Table|Lost|Torn|SetBack"

// imports are faults by which rows that exist get wrong IDs.
var imports = []mutant{
	{
		"a row gets an ID of another time", "internal/ops/importer/give.go",
		"moved && !w.Next || parts.Tick < tick", "false",
		"./internal/ops/importer", ofImports,
	},
	{
		"a row gets an ID that another row has", "internal/ops/importer/give.go",
		"made <= w.last {", "false {",
		"./internal/ops/importer", ofImports,
	},
	{
		"an import that goes on forgets what was given last", "internal/ops/importer/give.go",
		"w.progress.append(a.IDs)", "w.progress.append(a.IDs[:len(a.IDs):len(a.IDs)][:len(a.IDs)-len(a.IDs)/2])",
		"./internal/ops/importer", ofImports,
	},
	{
		"a call that is made again is another one", "internal/ops/importer/give.go",
		`key := w.progress.head.Token + "-"`, `key := fresh.Text() + "-"`,
		"./internal/ops/importer", ofImports,
	},
	{
		"an import goes on with another input", "internal/ops/importer/give.go",
		"if err := p.check(want); err != nil {", "if err := p.check(want); err != nil && false {",
		"./internal/ops/importer", ofImports,
	},
	{
		"a store that was set back is not noticed by an import", "internal/ops/importer/call.go",
		"i.progress.given > 0 {", "false {",
		"./internal/ops/importer", ofImports,
	},
	{
		"a torn record of progress is read", "internal/ops/importer/progress.go",
		"if r.checksum(r.at, r.record[:length]) != binary.BigEndian.Uint32(r.record[4:]) ||", "if",
		"./internal/ops/importer", ofImports,
	},
	{
		"two imports share a file of progress", "internal/base/filelock/filelock_unix.go",
		"syscall.LOCK_EX|syscall.LOCK_NB", "syscall.LOCK_SH|syscall.LOCK_NB",
		"./internal/base/filelock", "OneAtATime",
	},
	{
		"an empty line is no row", "internal/ops/importer/table.go",
		"t.returned = t.from <= t.due;", "t.returned = true;",
		"./internal/ops/importer", ofImports,
	},
	{
		"a run of a large sort is lost", "internal/base/bigsort/bigsort.go",
		"sink(heads, 0)\n	return heads, nil", "return heads, nil",
		"./internal/base/bigsort", "Sort",
	},
}
