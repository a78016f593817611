package calls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/base/reason"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/quorum"
)

// Quorum is this process's part in a store that several machines keep together. *quorum.Quorum implements it; see its
// methods.
type Quorum interface {
	Status(ctx context.Context) quorum.Status
	Replace(ctx context.Context, lost, instead string) error
	Remove(ctx context.Context, machines ...string) error
	Backup(ctx context.Context, w io.Writer) error
}

// errNoQuorum is the error of calls about the quorum where there is none.
var errNoQuorum = reason.New(string(codes.NoQuorum),
	"this node is not part of a quorum: it was started without --quorum")

// errBackup is returned for a second backup at a time: each reads the whole store.
var errBackup = fmt.Errorf("%w: a backup is being made already", ErrCrowded)

// aboutQuorum begins a call about the quorum, as begin does.
func (s *Service) aboutQuorum(ctx context.Context, who *auth.Caller, right auth.Right) (context.Context,
	func(), error,
) {
	ctx, end, err := s.begin(ctx, who, right, "", 1)
	if err == nil && s.options.Quorum == nil {
		end()
		err = errNoQuorum
	}
	return ctx, end, err
}

// QuorumStatus returns the state of the quorum, as this process sees it. It needs neither a majority nor a member that
// has joined.
func (s *Service) QuorumStatus(ctx context.Context, who *auth.Caller) (quorum.Status, error) {
	ctx, end, err := s.aboutQuorum(ctx, who, auth.Look)
	if err != nil {
		return quorum.Status{}, err
	}
	defer end()
	return *s.quorum(ctx), nil
}

// LookQuorum is RecentQuorum for a caller.
func (s *Service) LookQuorum(ctx context.Context, who *auth.Caller) (*quorum.Status, error) {
	if err := who.May(auth.Look, ""); err != nil {
		return nil, err
	}
	return s.RecentQuorum(ctx), nil
}

// recent is the state of the quorum for those who watch it continuously: the machines are asked at most once in
// recentFor, however many watch, and nobody need wait for one that does not answer.
type recent struct {
	mu     sync.Mutex // guards what follows
	latest *quorum.Status
	asked  time.Time
	asking chan struct{} // closed when the machines have been asked; nil: they are not asked now
}

const recentFor = 2 * time.Second

// RecentQuorum returns the state of the quorum, at most two seconds old. If the machines have not all answered, or
// failed to, when ctx ends, it is the state from when they were last asked. It counts against no limit. Nil: there is
// no quorum, or the machines have not been asked before.
func (s *Service) RecentQuorum(ctx context.Context) *quorum.Status {
	if s.options.Quorum == nil {
		return nil
	}
	r := &s.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asking == nil && (r.latest == nil || time.Since(r.asked) >= recentFor) {
		asking := make(chan struct{})
		r.asking, r.asked = asking, time.Now()
		go func() {
			defer close(asking)
			status := s.quorum(context.WithoutCancel(ctx))
			r.mu.Lock()
			defer r.mu.Unlock()
			r.latest, r.asking = status, nil
		}()
	}
	if asking := r.asking; asking != nil {
		r.mu.Unlock()
		select {
		case <-asking:
		case <-ctx.Done():
		}
		r.mu.Lock()
	}
	return r.latest
}

// quorum returns the state of the quorum; nil: there is none.
func (s *Service) quorum(ctx context.Context) *quorum.Status {
	if s.options.Quorum == nil {
		return nil
	}
	status := s.options.Quorum.Status(ctx)
	if status.Record == nil { // not null in JSON
		status.Record = []string{}
	}
	if status.Machines == nil {
		status.Machines = []quorum.Machine{}
	}
	return &status
}

// ReplaceMachine has another machine take the place of a lost one, see MeantMachine, and returns the state of the
// quorum then.
func (s *Service) ReplaceMachine(ctx context.Context, who *auth.Caller, lost, instead string) (quorum.Status, error) {
	return s.changeQuorum(ctx, who, "replace machine", func(ctx context.Context) error {
		lost, err := MeantMachine(lost, *s.quorum(ctx))
		if err != nil {
			return err
		}
		return s.options.Quorum.Replace(ctx, lost, instead)
	})
}

// RemoveMachines takes machines out of the quorum, see MeantMachine, and returns its state then.
func (s *Service) RemoveMachines(ctx context.Context, who *auth.Caller, machines []string) (quorum.Status, error) {
	return s.changeQuorum(ctx, who, "remove machines", func(ctx context.Context) error {
		machines, known := slices.Clone(machines), *s.quorum(ctx)
		for i, text := range machines {
			var err error
			if machines[i], err = MeantMachine(text, known); err != nil {
				return err
			}
		}
		return s.options.Quorum.Remove(ctx, machines...)
	})
}

// changeQuorum changes which machines the quorum has.
func (s *Service) changeQuorum(ctx context.Context, who *auth.Caller, call string,
	change func(context.Context) error,
) (_ quorum.Status, err error) {
	defer func(ctx context.Context) { s.changed(ctx, who, call, "", err) }(ctx)
	ctx, end, err := s.aboutQuorum(ctx, who, auth.Admin)
	if err != nil {
		return quorum.Status{}, err
	}
	defer end()
	err = change(ctx)
	if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrAmbiguous) &&
		!errors.Is(err, quorum.ErrClient) {
		err = Input(err) // a wrong address
	}
	if err != nil {
		return quorum.Status{}, err
	}
	return *s.quorum(ctx), nil
}

// Backup writes a backup of the store. It may take as long as ctx lasts; only one is made at a time. Whoever may make a
// backup gets everything in the store, so that it needs the right to change the cluster.
func (s *Service) Backup(ctx context.Context, who *auth.Caller, w io.Writer) (err error) {
	defer func(ctx context.Context) { s.changed(ctx, who, "backup", "", err) }(ctx)
	_, end, err := s.aboutQuorum(ctx, who, auth.Admin)
	if err != nil {
		return err
	}
	defer end()
	select {
	case s.backup <- struct{}{}:
		defer func() { <-s.backup }()
		return s.options.Quorum.Backup(ctx, w)
	default:
		return errBackup
	}
}
