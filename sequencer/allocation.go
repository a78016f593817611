package sequencer

import (
	"fmt"
)

// Allocation is how many of the attached members get a node ID. It is comparable; the zero value means all.
type Allocation struct {
	Kind    AllocationKind `json:"kind"`
	Count   int64          `json:"count,omitempty"`   // for AllocateCount: at least 1
	Percent int64          `json:"percent,omitempty"` // for AllocatePercent: 1 to 100
}

// AllocationKind is the kind of an Allocation. The zero value is AllocateAll.
type AllocationKind uint8

// The kinds of allocation.
const (
	AllocateAll     AllocationKind = iota // every attached member
	AllocateCount                         // Count members
	AllocatePercent                       // Percent of all members of the cluster, rounded up
)

var allocationKinds = [...]string{"all", "count", "percent"}

func (k AllocationKind) String() string { return allocationKinds[k] }

// MarshalText returns the kind's name in JSON: all, count or percent.
func (k AllocationKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText wrote. An error is returned when the text names no kind.
func (k *AllocationKind) UnmarshalText(text []byte) error {
	for kind, name := range allocationKinds {
		if name == string(text) {
			*k = AllocationKind(kind)
			return nil
		}
	}
	return fmt.Errorf("the allocation kind %.40q; want all, count or percent", text)
}

// String returns who gets node IDs: "all members", "1 member", "2 members", "50% of the members".
func (a Allocation) String() string {
	switch a.Kind {
	case AllocateCount:
		return counted(a.Count, "member")
	case AllocatePercent:
		return fmt.Sprintf("%d%% of the members", a.Percent)
	default:
		return "all members"
	}
}

// Validate returns an error when a field is out of range.
func (a Allocation) Validate() error {
	switch {
	case a.Kind > AllocatePercent:
		return fmt.Errorf("there is no allocation kind %d", a.Kind)
	case a.Kind == AllocateCount && a.Count < 1:
		return fmt.Errorf("an allocation to a count of %d members; want at least 1", a.Count)
	case a.Kind == AllocatePercent && (a.Percent < 1 || a.Percent > 100):
		return fmt.Errorf("an allocation to %d percent of the members; want 1 to 100", a.Percent)
	}
	return nil
}

// Plain returns the allocation without a field that its kind does not use.
func (a Allocation) Plain() Allocation {
	switch a.Kind {
	case AllocateCount:
		a.Percent = 0
	case AllocatePercent:
		a.Count = 0
	default:
		a.Count, a.Percent = 0, 0
	}
	return a
}

// counted formats a number of things, whose name is in the singular.
func counted(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// AttachPolicy says when a node attaches to a sequencer. The zero value is AttachOnDemand.
type AttachPolicy uint8

// The policies. In JSON they are on-demand and explicit.
const (
	AttachOnDemand AttachPolicy = iota // when a caller who may attach calls for an ID
	AttachExplicit                     // only when a caller asks it to attach
)

var attachPolicies = [...]string{"on-demand", "explicit"}

func (a AttachPolicy) String() string { return attachPolicies[a] }

// MarshalText returns the policy's name in JSON: on-demand or explicit.
func (a AttachPolicy) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what MarshalText wrote. An error is returned when the text names no policy.
func (a *AttachPolicy) UnmarshalText(text []byte) error {
	for policy, name := range attachPolicies {
		if name == string(text) {
			*a = AttachPolicy(policy)
			return nil
		}
	}
	return fmt.Errorf("attach is %.40q; want on-demand or explicit", text)
}
