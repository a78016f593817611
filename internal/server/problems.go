package server

import "time"

// Problem is something that is wrong in a cluster, or soon will be, as JSON.
type Problem struct {
	Level     ProblemLevel `json:"level"`
	Kind      ProblemKind  `json:"kind"`
	Text      string       `json:"text"`                // a sentence without a full stop, with names and numbers
	Members   []string     `json:"members,omitempty"`   // the IDs of those that it is about
	Sequencer string       `json:"sequencer,omitempty"` // that it is about; empty: none, or all
	Since     *time.Time   `json:"since,omitempty"`     // by the answering server's clock; absent: unknown
}

// ProblemLevel says how bad a problem is.
type ProblemLevel string

// The levels.
const (
	Failing ProblemLevel = "error"   // callers of some node are refused, or soon will be
	Warning ProblemLevel = "warning" // nobody is refused yet
)

// ProblemKind is a kind of problem that programs tell apart.
type ProblemKind string

// The kinds.
const (
	StoreProblem    ProblemKind = "store"       // out of reach
	QuorumProblem   ProblemKind = "quorum"      // machines are lost
	ClockProblem    ProblemKind = "clock"       // a majority disagrees with a node's clock
	NotReadyProblem ProblemKind = "not_ready"   // nodes can't issue IDs
	HorizonProblem  ProblemKind = "horizon"     // reserved time runs out
	GoneProblem     ProblemKind = "gone"        // a member's pulse is gone
	LateProblem     ProblemKind = "late"        // a member's pulse is overdue
	LayoutProblem   ProblemKind = "layout"      // the time of a layout ends
	NodeIDsProblem  ProblemKind = "node_ids"    // few are free, or members wait for one
	TieProblem      ProblemKind = "tie"         // clocks disagree, and no majority agrees
	SmallerProblem  ProblemKind = "smaller_ids" // IDs are smaller than existing ones
	VersionProblem  ProblemKind = "version"     // versions differ
)

// Problems returns what is wrong, worst first. It is pure.
func Problems(Status) []Problem { return []Problem{} }
