package cluster

import (
	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequencer"
)

// The names of package sequencer, which has what applications say about sequencers, are names here, too.
type (
	// Allocation is sequencer.Allocation.
	Allocation = sequencer.Allocation

	// AllocationKind is sequencer.AllocationKind.
	AllocationKind = sequencer.AllocationKind

	// AttachPolicy is sequencer.AttachPolicy.
	AttachPolicy = sequencer.AttachPolicy

	// Definition is sequencer.Definition.
	Definition = sequencer.Definition

	// Difference is sequencer.Difference.
	Difference = sequencer.Difference

	// Kind is sequencer.Kind.
	Kind = sequencer.Kind

	// NameError is sequencer.NameError.
	NameError = sequencer.NameError

	// Range is sequencer.Range.
	Range = sequencer.Range

	// Order is sequencer.Order.
	Order = sequencer.Order

	// Region is sequencer.Region.
	Region = sequencer.Region
)

// The constants of these types.
const (
	Snowflake       = sequencer.Snowflake
	Counter         = sequencer.Counter
	OrderNode       = sequencer.OrderNode
	OrderStrict     = sequencer.OrderStrict
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
