package main

// horizonFile are faults of a generator that keeps its horizon in a file.
var horizonFile = []mutant{
	{
		"the file's horizon is not the floor", "horizon_file.go",
		"g.place(f.floor.Add(g.layout.Tick-1))", "g.place(time.Time{})",
		".", "^TestNoIDComesAgain",
	},
	{
		"the disk need not confirm a horizon", "horizon_file.go",
		"	if err := f.disk.Sync(); err != nil {\n		return err\n	}\n	f.last", "	f.last",
		".", "^TestNoIDComesAgainUnderAnyFault$",
	},
	{
		"a horizon counts although its write failed", "horizon_file.go",
		"	if err := f.disk.Sync(); err != nil {\n		return err\n	}\n	f.last, f.slot = next, 1-f.slot\n" +
			"	return nil",
		"	f.last, f.slot = next, 1-f.slot\n	return f.disk.Sync()",
		".", "^TestTheDiskIsFull$",
	},
	{
		"the bound moves although the horizon does not", "horizon_file.go",
		"			g.open() // those that wait return it\n			continue\n",
		"			g.open() // those that wait return it\n" +
			"			g.setBound(time.Unix(0, g.now()).Add(f.window))\n",
		".", "^TestTheDiskIsFull$",
	},
	{
		"the latest record is written over", "horizon_file.go",
		"	f.last, f.slot = next, 1-f.slot\n", "	f.last = next\n",
		".", "^TestATornWriteLeavesTheRecordBefore$",
	},
	{
		"a damaged slot is read", "horizon_record.go",
		"len(slot) != slotSize || string(sum) != fmt.Sprintf(\"%08x\", crc32.ChecksumIEEE(text))",
		"len(slot) != slotSize || len(sum) != 8",
		".", "^TestADamagedSlotIsNotRead$",
	},
	{
		"a generator that gave no ID lowers the floor", "horizon_file.go",
		"f.write(later(f.floor, used))", "f.write(used)",
		".", "^TestWhenTheNextOneBegins$",
	},
	{
		"crashes of a process add up", "horizon_file.go",
		"	if f.last.Horizon.Sub(now) > f.window/2 {\n		return nil\n	}\n	return f.write(now",
		"	return f.write(later(now, f.last.Horizon)",
		".", "^TestCrashesDoNotAddUp$",
	},
	{
		"two generators share a horizon file", "horizon_unix.go",
		"syscall.LOCK_EX|syscall.LOCK_NB", "syscall.LOCK_SH|syscall.LOCK_NB",
		".", "^TestOneGeneratorForEachHorizonFile$",
	},
	{
		"a copy of a horizon file is taken for the file", "horizon_record.go",
		"	case r.File != mine.File:\n", "	case r.File == \"\":\n",
		".", "^TestHorizonFilesThatAreRefused$",
	},
	{
		"a horizon file of another node ID is taken", "horizon_record.go",
		"r.Layout != mine.Layout || r.NodeID != mine.NodeID", "r.Layout != mine.Layout",
		".", "^TestHorizonFilesThatAreRefused$",
	},
	{
		"a horizon file that was replaced stays in use", "horizon_file.go",
		"	if !os.SameFile(info, f.info) {\n", "	if info == nil {\n",
		".", "^TestAHorizonFileThatIsTakenAway$",
	},
	{
		"an application moves the bound beyond the file", "generator.go",
		"	if g.file == nil {\n		g.setBound(t)\n", "	if g != nil {\n		g.setBound(t)\n",
		".", "^TestAHorizonFileMovesTheBoundAlone$",
	},
	{
		"callers wait while the disk is full", "horizon_file.go",
		"failure := f.failure.Load(); failure != nil {",
		"failure := f.failure.Load(); failure != nil && f.window == 0 {",
		".", "^Test(TheDiskIsFull|WhoWaitsLearns)",
	},
}
