// Package calls serves callers over a network, independent of the protocol: it issues and decodes IDs, and lets
// administrators create, destroy and inspect sequencers. The packages httpapi, grpcapi and respapi
// implement the protocols.
package calls

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/reason"
	"github.com/firn-id/firn/internal/base/space"
	"github.com/firn-id/firn/internal/base/throttle"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/service/idtext"
)

const (
	// MaxCount is the most IDs that one call can ask for.
	MaxCount = 100_000

	// DefaultMaxCalls is the most calls served at a time.
	DefaultMaxCalls = 10_000

	// DefaultMaxAnswers is the most bytes that undelivered answers with several IDs take.
	DefaultMaxAnswers = 64 << 20

	// DefaultMaxSequencers is the most sequencers in the cluster.
	DefaultMaxSequencers = 1000

	// callTimeout is how long a call waits for IDs or for the store.
	callTimeout = 10 * time.Second
)

// Issuer issues the IDs of a sequencer: a *peer.Sequencer or *peer.Counter, see their methods, or another node.
type Issuer interface {
	Next(ctx context.Context) (firn.ID, error)
	FillAfter(ctx context.Context, after firn.ID, most time.Duration, ids []firn.ID) error
	Ready() error
	Definition() cluster.Definition
}

// Options configure a Service. The zero value is valid.
type Options struct {
	// NoAutoAttach makes a call for an ID fail when the member is not attached to the sequencer. Otherwise the
	// call attaches it, if the caller's token and the sequencer's definition allow that.
	NoAutoAttach bool

	// MaxCalls is the most calls served at a time; more are refused at once. Zero: DefaultMaxCalls.
	MaxCalls int

	// MaxAnswers is the most bytes that undelivered answers with several IDs take. Callers that hold less go
	// before those that hold more. At least 4 MiB; zero: DefaultMaxAnswers.
	MaxAnswers int64

	// MaxSequencers is the number of sequencers in the cluster at which this node creates no more. Zero:
	// DefaultMaxSequencers.
	MaxSequencers int

	// Window is the member's window, by which people are told when its reserved time is over. Zero: unknown.
	Window time.Duration

	// Layout is the layout of the default sequencer until the member has attached to it. Zero value:
	// firn.Default.
	Layout firn.Layout

	// Keys returns the keys that seal and open IDs at present. Nil: there are none.
	Keys func() *idtext.Keys

	// Quorum is this process's part in a store that several machines keep. Nil: the store is another.
	Quorum Quorum

	// Disk returns the room where a quorum of one keeps the data; false: unknown. Nil: others keep it, or machines do.
	Disk func() (space.Room, bool)

	// Forwarder asks another node where this one has no IDs of a sequencer. Nil: the caller is told so.
	Forwarder Forwarder

	// Default replaces the issuer of the default sequencer, in tests. Nil: the member's.
	Default Issuer

	// Meter counts the calls. Nil: nothing is counted.
	Meter Meter

	// Log gets bugs only, neither refusals nor clients that disconnect. Nil: bugs are not logged.
	Log *slog.Logger

	// Audit gets changes and refused callers. Nil: they are not logged.
	Audit *throttle.Log
}

// Service is a node as its callers see it. Make it with New. Its methods are safe for concurrent use. They return
// auth.ErrForbidden when the caller lacks the right. CodeOf returns the code of an error.
type Service struct {
	options  Options
	member   *peer.Member
	timeout  time.Duration
	attaches attaches
	creating *shares       // of creates that go on
	backup   chan struct{} // held by the call that makes a backup
	calls    atomic.Int64  // served now
	shares   *shares       // of the memory for answers with several IDs
	turns    turns
	given    given
	recent   recent
	vitals   vitals
	sights   sights
	fences   fences
	peers    *peers

	forwarded forwarded
	failing   failing
	history   atomic.Pointer[History] // as it was read last; nil: never

	serving context.Context // ends with Drain
	drain   context.CancelFunc
}

// New returns the service of a member, which need not have joined yet.
func New(m *peer.Member, o Options) *Service {
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
		attaches: attaches{byName: map[string]int{}}, creating: newShares(maxCreates), backup: make(chan struct{}, 1),
		shares: newShares(o.MaxAnswers), peers: newPeers(),
	}
	s.serving, s.drain = context.WithCancel(context.Background())
	return s
}

// Drain makes the service tell callers to ask another node, while it still issues IDs. Nothing undoes it.
func (s *Service) Drain() { s.drain() }

// Serving ends when the service begins to drain.
func (s *Service) Serving() context.Context { return s.serving }

// ErrDraining says that the service drains and no longer begins such a call.
var ErrDraining = fmt.Errorf("%w: it is shutting down", peer.ErrNotReady)

// Ready returns nil when the service can issue an ID of the default sequencer and does not drain.
func (s *Service) Ready() error {
	if s.serving.Err() != nil {
		return ErrDraining
	}
	m, err := s.find(peer.DefaultSequencer)
	if err != nil {
		return err
	}
	return m.Ready()
}

// ReadyFor returns nil if a call for an ID of a sequencer gets one, from this node or one that it asks, as far as is
// known. Else the error says why not.
func (s *Service) ReadyFor(ctx context.Context, name string) error {
	if s.serving.Err() != nil {
		return ErrDraining
	}
	if err := cluster.CheckName(name); err != nil {
		return Input(err)
	}
	m, err := s.find(name)
	if err == nil {
		err = m.Ready()
	}
	if err == nil {
		return nil
	}
	if _, ok := s.elsewhere(ctx, nil, name, err); ok {
		return nil
	}
	if s.opens(name) {
		return nil
	}
	q, ok := s.member.Value().Sequencer(name)
	if !ok || q.Definition().Claimed() {
		return err // the same for an unknown name: anybody may ask
	}
	if unfit := s.member.Fit(name, q.Definition()); unfit != nil {
		return unfit
	}
	if q.Taken() == 0 && s.member.Ready() == nil &&
		!s.options.NoAutoAttach && q.Definition().Attach == cluster.AttachOnDemand {
		return nil // nobody serves it yet, and the first call has the node that it comes to attach
	}
	return err
}

// opens reports whether the IDs of a sequencer are claimed, and no call has asked this node for one yet. What would
// stop it is not known then: anybody may ask whether a node is ready, and nobody makes it read the store by that.
func (s *Service) opens(name string) bool {
	q, ok := s.member.Value().Sequencer(name)
	_, opened := s.member.Counter(name)
	return ok && q.Definition().Claimed() && !opened && s.member.Ready() == nil
}

// Cluster returns the ID of the cluster, for every answer; empty while it is not known.
func (s *Service) Cluster() string { return s.member.Cluster() }

// MaxCalls returns the most calls served at a time.
func (s *Service) MaxCalls() int { return s.options.MaxCalls }

// ErrCrowded says that there are too many calls at a time.
var ErrCrowded = reason.New(string(codes.Overloaded), "too many calls at a time; ask another server, or try again")

// begin admits a call, as admit does. The function it returns ends the call. The context ends after s.timeout at most.
func (s *Service) begin(ctx context.Context, who *auth.Caller, rights auth.Right, sequencer string,
	worth int,
) (context.Context, func(), error) {
	if err := s.admit(who, rights, sequencer, worth); err != nil {
		return nil, nil, err
	}
	p := newLazyTimeout(ctx, s.timeout)
	return p, func() {
		p.end()
		s.end(who)
	}, nil
}

// admit admits a call, until end, if the caller has one of the rights and may spend that many IDs.
func (s *Service) admit(who *auth.Caller, rights auth.Right, sequencer string, worth int) error {
	if err := who.May(rights, sequencer); err != nil {
		return err
	}
	if !who.Begin(s.options.MaxCalls) {
		return ErrCrowded
	}
	if s.calls.Add(1) > int64(s.options.MaxCalls) {
		s.end(who)
		return ErrCrowded
	}
	if err := who.Spend(worth); err != nil {
		s.end(who)
		return err
	}
	return nil
}

// end ends a call that admit has counted.
func (s *Service) end(who *auth.Caller) {
	s.calls.Add(-1)
	who.End()
}
