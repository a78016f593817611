package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"

	"github.com/firn-id/firn/store/internal/etcdserver"
	"github.com/firn-id/firn/store/quorum/internal/plan"
)

// care does what plan.Care says.
func (q *Quorum) care(ctx context.Context, s *server, members []plan.Member, answers map[string]answer) error {
	mine := q.disk.get().Cluster
	situation := plan.Situation{
		Cluster: mine, Record: s.record().Machines, Own: q.config.Machines, Members: members,
		Said: said(answers), CaughtUp: map[uint64]bool{},
	}
	applied := s.AppliedIndex()
	for _, m := range members {
		if a := answers[m.Address]; m.Learner && m.Started && a.err == nil && a.Status.Index+maxBehind >= applied {
			situation.CaughtUp[m.ID] = true
		}
	}
	action := plan.Care(situation)
	if action.Kind == plan.Nothing {
		return q.tidy(ctx, s, answers)
	}
	q.log.Info("the quorum: "+action.Kind.String(), "machine", action.Add, "member", fmt.Sprintf("%x", action.ID),
		"why", action.Why)
	ctx, cancel := context.WithTimeout(ctx, doWithin)
	defer cancel()
	var err error
	switch action.Kind {
	case plan.SetRecord:
		err = q.setRecord(ctx, s.local, func(r record) ([]string, error) {
			if !slices.Equal(r.Machines, situation.Record) {
				return nil, errors.New("it has changed meanwhile")
			}
			return action.Record, nil
		})
	case plan.Add:
		now := time.Now()
		urls, wrong := types.NewURLs([]string{etcdserver.URL(action.Add)})
		if wrong != nil {
			return wrong
		}
		_, err = s.AddMember(ctx, *membership.NewMemberAsLearner("", urls, "", &now))
	case plan.Remove:
		_, err = s.RemoveMember(ctx, action.ID)
	case plan.Promote:
		_, err = s.PromoteMember(ctx, action.ID)
	case plan.HandOver:
		err = s.MoveLeader(ctx, uint64(s.MemberID()), action.ID)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", action.Kind, err)
	}
	return nil
}

// maxBehind is how many entries a learner may be behind when it gets a vote.
const maxBehind = 100

// members returns those of etcd's cluster as this server knows them.
func (s *server) members() (all []plan.Member) {
	leader := s.Leader()
	for _, m := range s.Cluster().Members() {
		address := ""
		if len(m.PeerURLs) > 0 {
			address = strings.TrimPrefix(m.PeerURLs[0], etcdserver.URL(""))
		}
		all = append(all, plan.Member{
			ID: uint64(m.ID), Address: address, Learner: m.IsLearner, Started: m.Name != "",
			Leader: m.ID == leader,
		})
	}
	return all
}
