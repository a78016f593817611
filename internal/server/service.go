// Package server serves callers over a network, independent of the protocol: it gives out IDs, takes them apart,
// and lets administrators create, destroy and inspect sequencers. The packages httpapi, grpcapi and respapi below
// it implement the protocols.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/internal/throttle"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/store"
)

const (
	// MaxCount is how many IDs one call can ask for.
	MaxCount = 100_000

	// DefaultMaxCalls is how many calls are served at a time.
	DefaultMaxCalls = 10_000

	// DefaultMaxAnswers is how many bytes answers with several IDs take at a time.
	DefaultMaxAnswers = 64 << 20

	// DefaultMaxSequencers is up to how many sequencers one is created.
	DefaultMaxSequencers = 1000

	// callTimeout is how long a call waits for IDs that the node can't give yet, or for the store.
	callTimeout = 10 * time.Second
)

// Issuer gives out the IDs of a sequencer: a *member.Sequencer. See its methods.
type Issuer interface {
	Next(ctx context.Context) (firn.ID, error)
	Fill(ctx context.Context, ids []firn.ID) error
	Ready() error
	Layout() firn.Layout
}

// Member is a member of the cluster, which need not have joined yet: a *member.Member. See its methods.
type Member interface {
	Ready() error
	ID() string
	Value() cluster.Value
	Log() (store.Log, error)
	Pulses(ctx context.Context) (map[string]member.Pulse, error)
	Owners(ctx context.Context, name string) ([]member.Owner, error)
	Resume(ctx context.Context) (until time.Time, err error)

	Create(ctx context.Context, name string, d cluster.Definition) (created bool, err error)
	Attach(ctx context.Context, name string) (*member.Sequencer, error)
	AttachOnDemand(ctx context.Context, name string) (*member.Sequencer, error)
	Sequencer(name string) (*member.Sequencer, bool)
	Lookup(ctx context.Context, name string) (cluster.Sequencer, error)
	Destroy(ctx context.Context, name string) error
}

// Options are how a Service differs from others.
type Options struct {
	// NoAutoAttach has a call for an ID fail where the member is not attached to the sequencer. Otherwise it
	// attaches by itself, if the caller may have it do so and the sequencer's definition says that a call for an ID is
	// enough.
	NoAutoAttach bool

	// MaxCalls is how many calls are served at a time; more are refused at once. Zero: DefaultMaxCalls.
	MaxCalls int

	// MaxAnswers is how many bytes the answers with several IDs may take at a time, until they are delivered. A caller who
	// has less than others goes before them. At least 4 MiB; zero: DefaultMaxAnswers.
	MaxAnswers int64

	// MaxSequencers is how many sequencers there may be in the cluster for this node to create another. Zero:
	// DefaultMaxSequencers.
	MaxSequencers int

	// Layout is that of the default sequencer, for as long as the member has not attached to it. The zero value:
	// firn.Default.
	Layout firn.Layout

	// Default gives out the IDs of the default sequencer in place of the member, in tests. Nil: the member does.
	Default Issuer

	// Meter counts the calls. Nil: nobody does.
	Meter Meter

	// Log is told about bugs only: neither refusals nor clients that went away are logged. Nil: nobody is told.
	Log *slog.Logger

	// Audit is told who has changed something, or was not let in. Nil: nobody is told.
	Audit *throttle.Log
}

// Service is a node as its callers see it. Make it with New. Its methods are safe for concurrent use. Those that
// take a caller return auth.ErrForbidden when the caller may not do that. CodeOf tells errors apart.
type Service struct {
	options  Options
	member   Member
	timeout  time.Duration
	attaches attaches
	creating chan struct{} // held by the call that creates a sequencer
	calls    atomic.Int64  // that are served now
	shares   *shares       // of the memory for answers with several IDs
	turns    turns
	given    given

	serving context.Context // ends with Drain
	drain   context.CancelFunc
}

// New returns the service of a member.
func New(m Member, o Options) *Service {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxCalls == 0 {
		o.MaxCalls = DefaultMaxCalls
	}
	if o.MaxAnswers == 0 {
		o.MaxAnswers = DefaultMaxAnswers
	}
	if o.MaxSequencers == 0 {
		o.MaxSequencers = DefaultMaxSequencers
	}
	if o.Layout == (firn.Layout{}) {
		o.Layout = firn.Default
	}
	s := &Service{
		options: o, member: m, timeout: callTimeout,
		attaches: attaches{byName: map[string]int{}}, creating: make(chan struct{}, 1), shares: newShares(o.MaxAnswers),
	}
	s.serving, s.drain = context.WithCancel(context.Background())
	return s
}

// Drain makes the service tell callers to ask another node, while it still gives out IDs. It can't be undone.
func (s *Service) Drain() { s.drain() }

// Serving ends when the service begins to drain.
func (s *Service) Serving() context.Context { return s.serving }

// ErrDraining is returned for what does not begin any more while the service drains.
var ErrDraining = fmt.Errorf("%w: it is shutting down", member.ErrNotReady)

// Ready returns nil when an ID of the default sequencer would be given, and shall be asked for here.
func (s *Service) Ready() error {
	if s.serving.Err() != nil {
		return ErrDraining
	}
	m, err := s.find(member.DefaultSequencer)
	if err != nil {
		return err
	}
	return m.Ready()
}

// MaxCalls is how many calls are served at a time.
func (s *Service) MaxCalls() int { return s.options.MaxCalls }

// ErrCrowded is returned when too many want something at a time.
var ErrCrowded = errors.New("too many calls at a time; ask another server, or try again")

// begin lets a call in of who has one of the rights, worth so many IDs, and returns how it ends. It lasts for s.timeout
// at most.
func (s *Service) begin(ctx context.Context, who *auth.Caller, rights auth.Right, sequencer string, worth int) (context.Context, func(), error) {
	if err := who.May(rights, sequencer); err != nil {
		return nil, nil, err
	}
	if s.calls.Add(1) > int64(s.options.MaxCalls) {
		s.calls.Add(-1)
		return nil, nil, ErrCrowded
	}
	if err := who.Spend(worth); err != nil {
		s.calls.Add(-1)
		return nil, nil, err
	}
	p := newLazyTimeout(ctx, s.timeout)
	return p, func() {
		p.end()
		s.calls.Add(-1)
	}, nil
}
