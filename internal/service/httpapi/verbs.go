package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
)

// Meaning is the body of a call about one member; see calls.Meant.
type Meaning struct {
	Member string `json:"member"`
}

// Move says which member gets a node ID; see calls.Meant.
type Move struct {
	Node *int64 `json:"node"`
	To   string `json:"to"`
}

// Reserve says which node IDs no member gets, see cluster.Reserving.
type Reserve struct {
	For   string  `json:"for"`
	Count int64   `json:"count,omitempty"`
	Nodes []int64 `json:"nodes,omitempty"`
}

// Release says of which reservation members get the node IDs again.
type Release struct {
	For string `json:"for"`
	calls.Used
}

// NewPolicy has the shares of a policy.
type NewPolicy struct {
	Shares []cluster.Share `json:"shares"`
}

var (
	errNoNode   = errors.New(`the body: no node; want a field such as "node":5`)
	errNoShares = errors.New(`the body: no shares; want a field such as "shares":[{"sequencer":"a","percent":75},` +
		`{"sequencer":"b"}], or DELETE /api/v1/cluster/policy`)
)

// serveVerbs serves the calls that change where members stand.
func (h *Handler) serveVerbs() {
	const one = "/api/v1/sequencers/{name}"
	h.post("/api/v1/cluster/expel", bare(omit, h.expel))
	h.post("/api/v1/cluster/forget", bare(omit, h.forget))
	h.post("/api/v1/cluster/skip", bare(omit, h.skip))
	h.post(one+"/drain", bare(omit, h.placeMember(h.service.DrainMember)))
	h.post(one+"/undrain", bare(omit, h.placeMember(h.service.UndrainMember)))
	h.post(one+"/move", bare(omit, h.move))
	h.post(one+"/reserve", bare(omit, h.reserve))
	h.post(one+"/release", bare(omit, h.release))
	h.post(one+"/past", h.few(bare(omit, h.past)))
	h.post(one+"/resume", bare(omit, h.resumeCounter))
	h.handle(one+"/allocation", map[string]http.HandlerFunc{http.MethodPut: h.admit(bare(omit, h.allocate))})
	h.handle("/api/v1/cluster/policy", map[string]http.HandlerFunc{
		http.MethodGet:    h.admit(h.few(bare(omit, h.policyInForce))),
		http.MethodPut:    h.admit(bare(omit, h.setPolicy)),
		http.MethodDelete: h.admit(bare(omit, h.clearPolicy)),
	})
}

// Expulsion is the body of POST /api/v1/cluster/expel.
type Expulsion struct {
	Meaning
	EndTheMajority bool `json:"end_the_majority,omitempty"`
}

func (h *Handler) expel(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	var body Expulsion
	if readBody(w, r, &body, "member or end_the_majority") {
		expelled, err := h.service.Expel(Origin(r).In(r.Context()), who, body.Member, body.EndTheMajority)
		h.answer(w, r, expelled, err)
	}
}

// Forget is the body of POST /api/v1/cluster/forget.
type Forget struct {
	Name string `json:"name"`
}

func (h *Handler) forget(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	var body Forget
	if readBody(w, r, &body, "name") {
		forgotten, err := h.service.Forget(Origin(r).In(r.Context()), who, body.Name)
		h.answer(w, r, forgotten, err)
	}
}

// Skip is the body of POST /api/v1/cluster/skip.
type Skip struct {
	Position int64 `json:"position"`
}

func (h *Handler) skip(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	var body Skip
	if readBody(w, r, &body, "position") {
		skipped, err := h.service.Skip(Origin(r).In(r.Context()), who, body.Position)
		h.answer(w, r, skipped, err)
	}
}

// placeMember serves a change of what a member has of a sequencer.
func (h *Handler) placeMember(change func(ctx context.Context, who *auth.Caller, sequencer,
	member string) (calls.Placed, error),
) call {
	return func(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
		var body Meaning
		if readBody(w, r, &body, "member") {
			placed, err := change(Origin(r).In(r.Context()), who, sequencerOf(r), body.Member)
			h.answer(w, r, placed, err)
		}
	}
}

func (h *Handler) move(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	var body Move
	if !readBody(w, r, &body, "node and to") {
		return
	}
	if body.Node == nil {
		badRequest(w, errNoNode)
		return
	}
	placed, err := h.service.MoveNode(Origin(r).In(r.Context()), who, sequencerOf(r), *body.Node, body.To)
	h.answer(w, r, placed, err)
}

func (h *Handler) reserve(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	var body Reserve
	if readBody(w, r, &body, "for, count or nodes") {
		reserved, err := h.service.Reserve(Origin(r).In(r.Context()), who, sequencerOf(r),
			cluster.Reserving{For: body.For, Count: body.Count, Nodes: body.Nodes})
		h.answer(w, r, reserved, err)
	}
}

func (h *Handler) release(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	var body Release
	if readBody(w, r, &body, "for, greatest or used_until") {
		q, err := h.service.Release(Origin(r).In(r.Context()), who, sequencerOf(r), body.For, body.Used)
		h.answer(w, r, q, err)
	}
}

// maxTimes is how long the body of a call for IDs of past instants may be.
const maxTimes = calls.MaxTimes*40 + 4<<10

func (h *Handler) past(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	if err := h.service.MayImport(who, sequencerOf(r)); err != nil { // before the body is read
		h.refuse(w, r, err)
		return
	}
	var body calls.Past
	if readLong(w, r, &body, "job, key, times, if_full, after or end", maxTimes) {
		given, err := h.service.GivePast(Origin(r).In(r.Context()), who, sequencerOf(r), body)
		h.answer(w, r, given, err)
	}
}

// Resumption is the body of POST /api/v1/sequencers/{name}/resume.
type Resumption struct {
	After *int64 `json:"after"` // no greater number was given
}

var errNoAfter = errors.New(`the body: no after; want a field such as "after":4711, the greatest number that was given`)

func (h *Handler) resumeCounter(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	var body Resumption
	if !readBody(w, r, &body, "after") {
		return
	}
	if body.After == nil {
		badRequest(w, errNoAfter)
		return
	}
	q, err := h.service.ResumeCounter(Origin(r).In(r.Context()), who, sequencerOf(r), *body.After)
	h.answer(w, r, q, err)
}

func (h *Handler) allocate(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	var body cluster.Allocation
	if readBody(w, r, &body, "kind, count or percent") {
		q, err := h.service.Allocate(Origin(r).In(r.Context()), who, sequencerOf(r), body)
		h.answer(w, r, q, err)
	}
}

func (h *Handler) policyInForce(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	p, err := h.service.Policy(r.Context(), who)
	h.answer(w, r, p, err)
}

func (h *Handler) setPolicy(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	var body NewPolicy
	if !readBody(w, r, &body, "shares") {
		return
	}
	if len(body.Shares) == 0 {
		badRequest(w, errNoShares)
		return
	}
	p, err := h.service.SetPolicy(Origin(r).In(r.Context()), who, body.Shares)
	h.answer(w, r, p, err)
}

func (h *Handler) clearPolicy(w http.ResponseWriter, r *http.Request, who *auth.Caller) {
	p, err := h.service.SetPolicy(Origin(r).In(r.Context()), who, nil)
	h.answer(w, r, p, err)
}
