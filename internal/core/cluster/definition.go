package cluster

import (
	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequencer"
)

// Allocation and the other names here are those of package sequencer, which has what applications say about sequencers.
type (
	Allocation     = sequencer.Allocation
	AllocationKind = sequencer.AllocationKind
	AttachPolicy   = sequencer.AttachPolicy
	Definition     = sequencer.Definition
	Difference     = sequencer.Difference
	NameError      = sequencer.NameError
	Range          = sequencer.Range
	Region         = sequencer.Region
)

// The constants of these types.
const (
	AttachOnDemand  = sequencer.AttachOnDemand
	AttachExplicit  = sequencer.AttachExplicit
	AllocateAll     = sequencer.AllocateAll
	AllocateCount   = sequencer.AllocateCount
	AllocatePercent = sequencer.AllocatePercent
)

// maxName is how many bytes the name of a sequencer or a member has at most.
const maxName = sequencer.MaxName

// Define is sequencer.Define.
func Define(l firn.Layout) Definition { return sequencer.Define(l) }

// CheckName is sequencer.CheckName.
func CheckName(name string) error { return sequencer.CheckName(name) }
