package grpcapi_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/store/memstore"
)

// newMembers serves real members over one store.
func newMembers(t *testing.T, names ...string) []*rig {
	t.Helper()
	return newMembersUnder(t, trusting, names...)
}

func newMembersUnder(t *testing.T, policy *auth.Policy, names ...string) (all []*rig) {
	t.Helper()
	service := memstore.NewService()
	for _, name := range names {
		client := service.Client(name)
		t.Cleanup(func() { client.Close() })
		m, err := peer.Join(t.Context(), client, peer.Options{Owner: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Leave() })
		q, err := m.EnsureSequencer(t.Context(), peer.DefaultSequencer, cluster.Define(firn.Default))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, newRig(t, q, m, policy))
	}
	return all
}

// A sequencer's life: it is created, shown, used, left, and destroyed.
func TestLifeOfASequencer(t *testing.T) {
	all := newMembers(t, "a", "b")
	a, b := all[0], all[1]
	ctx := within(t)

	definition := &firnv1.Definition{
		Nodes: new(int64(2)),
		Epoch: timestamppb.New(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
	created, err := a.admin.CreateSequencer(ctx, &firnv1.CreateSequencerRequest{Name: "orders", Definition: definition})
	q := created.GetSequencer()
	if err != nil || !created.GetCreated() || q.GetName() != "orders" || q.GetCapacity() != 2 || q.GetFree() != 2 ||
		q.GetHere().GetState() != firnv1.Here_STATE_NONE || q.GetRate() != 2097152000 || q.GetCreated() <= 0 {
		t.Fatalf("CreateSequencer: %v, %v", created, err)
	}
	if until := q.GetUntil().AsTime().Format(time.RFC3339Nano); until != "2068-09-06T15:47:35.552Z" {
		t.Errorf("until %s", until)
	}
	if d := q.GetDefinition(); d.GetNodes() != 2 || d.GetTimeBits() != 41 || d.Layout != nil ||
		!proto.Equal(d.GetEpoch(), definition.GetEpoch()) {
		t.Errorf("the definition %v", d)
	}
	// The answer is enough to create it again, elsewhere too.
	again, err := b.admin.CreateSequencer(ctx,
		&firnv1.CreateSequencerRequest{Name: "orders", Definition: q.GetDefinition()})
	if err != nil || again.GetCreated() {
		t.Errorf("again: %v, %v", again, err)
	}
	_, err = b.admin.CreateSequencer(ctx, &firnv1.CreateSequencerRequest{Name: "orders"})
	wants(t, "another definition", err,
		refusal{code: codes.AlreadyExists, reason: "exists", says: "nodes: 2 is in force, 1024 is wanted"})

	id, err := a.ids.Next(ctx, &firnv1.NextRequest{Sequencer: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	parts, err := b.ids.Decode(ctx, &firnv1.DecodeRequest{Sequencer: "orders", Id: id.GetId()})
	if off := time.Since(parts.GetTime().AsTime()).Abs(); err != nil || parts.GetId() != id.GetId() || off > patience {
		t.Errorf("Decode: %v, %v", parts, err)
	}
	stream, err := b.ids.Stream(ctx, &firnv1.StreamRequest{Sequencer: "orders", Total: 3})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := stream.Recv(); err != nil || len(got.GetIds()) != 3 {
		t.Errorf("Stream: %v, %v", got, err)
	}

	one, err := b.admin.GetSequencer(ctx, &firnv1.GetSequencerRequest{Name: "orders"})
	if q := one.GetSequencer(); err != nil || q.GetFree() != 0 || len(q.GetNodes()) != 2 ||
		q.GetHere().GetState() != firnv1.Here_STATE_ATTACHED || q.GetHere().Node == nil {
		t.Errorf("GetSequencer: %v, %v", one, err)
	}
	list, err := a.admin.ListSequencers(ctx, &firnv1.ListSequencersRequest{})
	if err != nil || len(list.GetSequencers()) != 2 || list.GetSequencers()[1].GetName() != "orders" {
		t.Errorf("ListSequencers: %v, %v", list, err)
	}
	status, err := b.admin.ClusterStatus(ctx, &firnv1.ClusterStatusRequest{})
	if err != nil || status.GetMember() == "" || status.GetPosition() == 0 || len(status.GetMembers()) != 2 ||
		len(status.GetSequencers()) != 2 ||
		!status.GetMembers()[0].GetPulse().GetAlive() || status.GetMembers()[0].GetPulse().GetOwner() != "a" {
		t.Errorf("ClusterStatus: %v, %v", status, err)
	}

	left, err := b.admin.DetachSequencer(ctx, &firnv1.DetachSequencerRequest{Name: "orders"})
	if h := left.GetHere(); err != nil || h.GetState() != firnv1.Here_STATE_DETACHED || h.Node != nil ||
		!strings.Contains(h.GetWhy(), "detached") {
		t.Errorf("DetachSequencer: %v, %v", left, err)
	}
	back, err := b.admin.AttachSequencer(ctx, &firnv1.AttachSequencerRequest{Name: "orders"})
	if err != nil || back.GetHere().GetState() != firnv1.Here_STATE_ATTACHED {
		t.Errorf("AttachSequencer: %v, %v", back, err)
	}

	if _, err := b.admin.DestroySequencer(ctx, &firnv1.DestroySequencerRequest{Name: "orders"}); err != nil {
		t.Error(err)
	}
	gone := refusal{code: codes.NotFound, reason: "unknown_sequencer", says: "there is no such sequencer"}
	for name, call := range adminCalls(b.admin) {
		if name == "CreateSequencer" || slices.Contains(ofNoSequencer, name) {
			continue
		}
		wants(t, name, call(ctx, "orders"), gone)
	}
	_, err = b.admin.DestroySequencer(ctx, &firnv1.DestroySequencerRequest{Name: "default"})
	wants(t, "the default one", err,
		refusal{code: codes.FailedPrecondition, reason: "in_use", says: "serves calls that name no sequencer"})
	for _, r := range all {
		if log := r.log.String(); log != "" {
			t.Errorf("it was logged: %s", log)
		}
	}
}

// Whoever finds all node IDs taken is told so.
func TestWaiting(t *testing.T) {
	all := newMembers(t, "a", "b")
	a, b := all[0], all[1]
	one := &firnv1.Definition{Nodes: new(int64(1))}
	if _, err := a.admin.CreateSequencer(within(t),
		&firnv1.CreateSequencerRequest{Name: "orders", Definition: one}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.ids.Next(within(t), &firnv1.NextRequest{Sequencer: "orders"}); err != nil {
		t.Fatal(err)
	}
	_, err := b.ids.Next(within(t), &firnv1.NextRequest{Sequencer: "orders"})
	wants(t, "Next", err, unavailable("waiting", ""))
	_, err = b.admin.AttachSequencer(within(t), &firnv1.AttachSequencerRequest{Name: "orders"})
	wants(t, "AttachSequencer", err, unavailable("waiting", ""))
	got, err := b.admin.GetSequencer(within(t), &firnv1.GetSequencerRequest{Name: "orders"})
	if h := got.GetSequencer().GetHere(); err != nil || h.GetState() != firnv1.Here_STATE_WAITING ||
		h.GetPlace() != 1 || len(got.GetSequencer().GetWaiting()) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// What is wrong with a call of Admin is said in words, and nothing is done.
func TestBadAdmin(t *testing.T) {
	r := newMembers(t, "a")[0]
	for _, name := range []string{"", "Orders", "a/b", strings.Repeat("a", 101)} {
		for call, do := range adminCalls(r.admin) {
			if slices.Contains(ofNoSequencer, call) {
				continue
			}
			wants(t, fmt.Sprintf("%s of %.10q", call, name), do(within(t), name), bad("the sequencer's name"))
		}
	}
	for _, tt := range []struct {
		definition *firnv1.Definition
		says       string
	}{
		{&firnv1.Definition{Nodes: new(int64(0))}, "0 nodes; want 1 to 1024"},
		{
			&firnv1.Definition{Epoch: &timestamppb.Timestamp{Seconds: 1 << 60}},
			"the epoch of 1152921504606846976 seconds",
		},
		{&firnv1.Definition{Epoch: timestamppb.New(time.Now().AddDate(1, 0, 0))}, "has not come; want one in the past"},
	} {
		_, err := r.admin.CreateSequencer(within(t),
			&firnv1.CreateSequencerRequest{Name: "orders", Definition: tt.definition})
		wants(t, tt.definition.String(), err, bad(tt.says))
	}
	list, err := r.admin.ListSequencers(within(t), &firnv1.ListSequencersRequest{})
	if err != nil || len(list.GetSequencers()) != 1 {
		t.Errorf("ListSequencers: %v, %v", list, err)
	}
}

// A token for some sequencers takes neither the prefix of another nor the quota of all.
func TestLimitedAdministrators(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	entries := fmt.Sprintf("- {name: root, sha256: %s, allow: [admin]}\n"+
		"- {name: inv, sha256: %s, allow: [admin], sequencers: ['inv-*'], prefixes: [inv], quota: 2}\n",
		auth.Hash("root"), auth.Hash("inv"))
	if err := os.WriteFile(file, []byte(entries), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.OpenTokens(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	all := newMembersUnder(t, &auth.Policy{Tokens: tokens}, "a", "b")
	create := func(r *rig, token, name, prefix string) error {
		ctx := metadata.AppendToOutgoingContext(within(t), "authorization", "Bearer "+token)
		_, err := r.admin.CreateSequencer(ctx,
			&firnv1.CreateSequencerRequest{Name: name, Definition: &firnv1.Definition{Prefix: prefix}})
		return err
	}
	var none refusal
	wants(t, "orders", create(all[0], "root", "orders", "ord"), none)
	wants(t, "its prefix", create(all[1], "inv", "inv-1", "ord"),
		refusal{code: codes.PermissionDenied, reason: "forbidden", says: "allows the prefixes inv, not"})
	wants(t, "its prefix again", create(all[1], "root", "other", "ord"), refusal{
		code:   codes.FailedPrecondition,
		reason: "refused", says: `is that of the sequencer "orders"; want another`,
	})
	wants(t, "the prefix", create(all[1], "inv", "inv-1", "inv"), none)
	wants(t, "a second one", create(all[0], "inv", "inv-2", ""), none)
	wants(t, "a third one", create(all[1], "inv", "inv-3", ""),
		refusal{
			code: codes.ResourceExhausted, reason: "quota",
			says: `there are 2 sequencers of the names inv-*, and the quota is 2; destroy one that nobody needs, or ` +
				`raise the quota of the token "inv"`,
		})
	wants(t, "another", create(all[1], "root", "inv-3", ""), none)
}
