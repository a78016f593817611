package calls

import (
	"context"
	"fmt"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/service/admit/auth"
)

// Counts reports whether a sequencer is a counter, to a caller who may take its IDs.
func (s *Service) Counts(ctx context.Context, who *auth.Caller, name string) (bool, error) {
	if err := who.May(auth.Issue, name); err != nil {
		return false, err
	}
	within := newLazyTimeout(ctx, s.timeout)
	defer within.end()
	q, err := s.textsOf(within, name)
	return q.Kind == cluster.Counter, err
}

// Take gives count consecutive numbers of a counter, and returns the last of them. The error has the code BadRequest
// when the sequencer is of another kind, too.
func (s *Service) Take(ctx context.Context, who *auth.Caller, name string, count int) (last firn.ID, err error) {
	if err := checkCount(count); err != nil {
		return 0, err
	}
	ctx, end, err := s.begin(ctx, who, auth.Issue, name, count)
	if err != nil {
		return 0, err
	}
	defer end()
	// Another node would make them in pieces, between which others take some.
	_, err = s.from(Forwarded(ctx), who, name, func(m Issuer) (err error) {
		c, ok := m.(interface {
			Take(ctx context.Context, n int64) (firn.ID, error)
		})
		if !ok {
			return Input(fmt.Errorf("the sequencer %q gives no consecutive IDs: it is no counter", name))
		}
		last, err = c.Take(ctx, int64(count))
		return err
	})
	if err != nil {
		return 0, err
	}
	s.given.add(name, count)
	return last, nil
}

func checkCount(count int) error {
	if count < 1 || count > MaxCount {
		return Input(fmt.Errorf("count is %d; want a number from 1 to %d", count, MaxCount))
	}
	return nil
}
