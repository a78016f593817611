package grpcapi

import (
	"context"
	"errors"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/service/calls"
)

// admin is the service Admin.
type admin struct {
	firnv1.UnimplementedAdminServer
	service *calls.Service
}

func (a *admin) ListSequencers(ctx context.Context, _ *firnv1.ListSequencersRequest) (*firnv1.ListSequencersResponse,
	error,
) {
	all, err := a.service.Sequencers(ctx, callerOf(ctx))
	if err != nil {
		return nil, err
	}
	return &firnv1.ListSequencersResponse{Sequencers: sequencerMessages(all)}, nil
}

func (a *admin) GetSequencer(ctx context.Context, r *firnv1.GetSequencerRequest) (*firnv1.GetSequencerResponse, error) {
	q, err := a.service.Sequencer(ctx, callerOf(ctx), r.GetName())
	if err != nil {
		return nil, err
	}
	return &firnv1.GetSequencerResponse{Sequencer: sequencerMessage(q)}, nil
}

func (a *admin) CreateSequencer(ctx context.Context, r *firnv1.CreateSequencerRequest) (*firnv1.CreateSequencerResponse,
	error,
) {
	d, err := readDefinition(r.GetDefinition())
	if err != nil {
		return nil, calls.Input(err)
	}
	c, created, err := a.service.Create(origin(ctx).In(ctx), callerOf(ctx), r.GetName(), d, r.GetReserve())
	if err != nil {
		return nil, err
	}
	return &firnv1.CreateSequencerResponse{
		Sequencer: sequencerMessage(c.StatusSequencer), Created: created,
		Warnings: c.Warnings,
	}, nil
}

func (a *admin) DestroySequencer(ctx context.Context,
	r *firnv1.DestroySequencerRequest,
) (*firnv1.DestroySequencerResponse, error) {
	d, err := a.service.Destroy(origin(ctx).In(ctx), callerOf(ctx), r.GetName())
	if err != nil {
		return nil, err
	}
	m := &firnv1.DestroySequencerResponse{Message: d.Message}
	if d.Until != nil {
		m.Until = timestamppb.New(*d.Until)
	}
	return m, nil
}

func (a *admin) AttachSequencer(ctx context.Context, r *firnv1.AttachSequencerRequest) (*firnv1.AttachSequencerResponse,
	error,
) {
	here, err := a.service.Attach(origin(ctx).In(ctx), callerOf(ctx), r.GetName())
	if err != nil {
		return nil, err
	}
	return &firnv1.AttachSequencerResponse{Here: hereMessage(here)}, nil
}

func (a *admin) DetachSequencer(ctx context.Context, r *firnv1.DetachSequencerRequest) (*firnv1.DetachSequencerResponse,
	error,
) {
	here, err := a.service.Detach(origin(ctx).In(ctx), callerOf(ctx), r.GetName())
	if err != nil {
		return nil, err
	}
	return &firnv1.DetachSequencerResponse{Here: hereMessage(here)}, nil
}

func (a *admin) DrainMember(ctx context.Context, r *firnv1.DrainMemberRequest) (*firnv1.DrainMemberResponse, error) {
	p, err := a.service.DrainMember(origin(ctx).In(ctx), callerOf(ctx), r.GetName(), r.GetMember())
	if err != nil {
		return nil, err
	}
	return &firnv1.DrainMemberResponse{Member: p.Member, Sequencer: sequencerMessage(p.StatusSequencer)}, nil
}

func (a *admin) UndrainMember(ctx context.Context, r *firnv1.UndrainMemberRequest) (*firnv1.UndrainMemberResponse,
	error,
) {
	p, err := a.service.UndrainMember(origin(ctx).In(ctx), callerOf(ctx), r.GetName(), r.GetMember())
	if err != nil {
		return nil, err
	}
	return &firnv1.UndrainMemberResponse{Member: p.Member, Sequencer: sequencerMessage(p.StatusSequencer)}, nil
}

func (a *admin) MoveNode(ctx context.Context, r *firnv1.MoveNodeRequest) (*firnv1.MoveNodeResponse, error) {
	p, err := a.service.MoveNode(origin(ctx).In(ctx), callerOf(ctx), r.GetName(), r.GetNode(), r.GetTo())
	if err != nil {
		return nil, err
	}
	return &firnv1.MoveNodeResponse{Member: p.Member, Sequencer: sequencerMessage(p.StatusSequencer)}, nil
}

func (a *admin) ReserveNodes(ctx context.Context, r *firnv1.ReserveNodesRequest) (*firnv1.ReserveNodesResponse,
	error,
) {
	made, err := a.service.Reserve(origin(ctx).In(ctx), callerOf(ctx), r.GetName(),
		cluster.Reserving{For: r.GetFor(), Count: r.GetCount(), Nodes: r.GetNodes()})
	if err != nil {
		return nil, err
	}
	return &firnv1.ReserveNodesResponse{
		Reservation: reservationMessage(made.Reservation), From: timestamppb.New(made.From),
	}, nil
}

func (a *admin) ReleaseNodes(ctx context.Context, r *firnv1.ReleaseNodesRequest) (*firnv1.ReleaseNodesResponse,
	error,
) {
	var used calls.Used
	switch by := r.GetUsed().(type) {
	case *firnv1.ReleaseNodesRequest_Greatest:
		used.Greatest = new(firn.ID(by.Greatest))
	case *firnv1.ReleaseNodesRequest_UsedUntil:
		if err := by.UsedUntil.CheckValid(); err != nil {
			return nil, calls.Input(err)
		}
		used.Until = new(by.UsedUntil.AsTime())
	}
	q, err := a.service.Release(origin(ctx).In(ctx), callerOf(ctx), r.GetName(), r.GetFor(), used)
	if err != nil {
		return nil, err
	}
	return &firnv1.ReleaseNodesResponse{Sequencer: sequencerMessage(q)}, nil
}

func (a *admin) ResumeCounter(ctx context.Context, r *firnv1.ResumeCounterRequest) (*firnv1.ResumeCounterResponse,
	error,
) {
	if r.After == nil {
		return nil, calls.Input(errors.New("no after; want the greatest number that anybody was given"))
	}
	q, err := a.service.ResumeCounter(origin(ctx).In(ctx), callerOf(ctx), r.GetName(), r.GetAfter())
	if err != nil {
		return nil, err
	}
	return &firnv1.ResumeCounterResponse{Sequencer: sequencerMessage(q)}, nil
}

func (a *admin) SetAllocation(ctx context.Context, r *firnv1.SetAllocationRequest) (*firnv1.SetAllocationResponse,
	error,
) {
	to, err := readAllocation(r.GetAllocation())
	if err != nil {
		return nil, calls.Input(err)
	}
	q, err := a.service.Allocate(origin(ctx).In(ctx), callerOf(ctx), r.GetName(), to)
	if err != nil {
		return nil, err
	}
	return &firnv1.SetAllocationResponse{Sequencer: sequencerMessage(q)}, nil
}

func (a *admin) ExpelMember(ctx context.Context, r *firnv1.ExpelMemberRequest) (*firnv1.ExpelMemberResponse, error) {
	e, err := a.service.Expel(origin(ctx).In(ctx), callerOf(ctx), r.GetMember(), r.GetEndTheMajority())
	if err != nil {
		return nil, err
	}
	return &firnv1.ExpelMemberResponse{Member: e.Member, Owner: e.Owner}, nil
}

func (a *admin) ForgetNode(ctx context.Context, r *firnv1.ForgetNodeRequest) (*firnv1.ForgetNodeResponse, error) {
	f, err := a.service.Forget(origin(ctx).In(ctx), callerOf(ctx), r.GetName())
	if err != nil {
		return nil, err
	}
	return &firnv1.ForgetNodeResponse{Name: f.Name}, nil
}

func (a *admin) GetPolicy(ctx context.Context, _ *firnv1.GetPolicyRequest) (*firnv1.GetPolicyResponse, error) {
	p, err := a.service.Policy(ctx, callerOf(ctx))
	if err != nil {
		return nil, err
	}
	return &firnv1.GetPolicyResponse{Policy: policyMessage(p)}, nil
}

func (a *admin) SetPolicy(ctx context.Context, r *firnv1.SetPolicyRequest) (*firnv1.SetPolicyResponse, error) {
	var shares []cluster.Share
	for _, s := range r.GetShares() {
		shares = append(shares, cluster.Share{Sequencer: s.GetSequencer(), Percent: s.GetPercent()})
	}
	p, err := a.service.SetPolicy(origin(ctx).In(ctx), callerOf(ctx), shares)
	if err != nil {
		return nil, err
	}
	return &firnv1.SetPolicyResponse{Policy: policyMessage(p)}, nil
}

func (a *admin) ClusterStatus(ctx context.Context, _ *firnv1.ClusterStatusRequest) (*firnv1.ClusterStatusResponse,
	error,
) {
	status, err := a.service.Status(ctx, callerOf(ctx))
	if err != nil {
		return nil, err
	}
	return statusMessage(status), nil
}
