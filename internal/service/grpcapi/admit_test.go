package grpcapi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/test/servertest"
)

// keys are tokens, and what each opens.
type keys map[string]*auth.Caller

func (k keys) Identify(token string) (*auth.Caller, error) {
	if who, ok := k[token]; ok {
		return who, nil
	}
	return nil, fmt.Errorf("%w: the token is not known", auth.ErrUnauthenticated)
}

// two are tokens for an administrator and for who isn't one.
func two(t *testing.T) keys {
	t.Helper()
	k := keys{}
	for token, e := range map[string]*auth.Policy{"the-admin": {Trusted: true}, "the-shop": {}} {
		who, err := e.Admit("")
		if err != nil {
			t.Fatal(err)
		}
		k[token] = who
	}
	return k
}

func TestTokens(t *testing.T) {
	r := newRig(t, new(servertest.Issuer), servertest.Join(t), &auth.Policy{Tokens: two(t)})
	none := refusal{code: codes.Unauthenticated, reason: "unauthenticated", says: "missing token: send"}
	unknown := refusal{code: codes.Unauthenticated, reason: "unauthenticated", says: "the token is not known"}
	forbidden := refusal{code: codes.PermissionDenied, reason: "forbidden", says: "administration needs"}
	var ok refusal
	for _, tt := range []struct {
		shown       []string
		give, admin refusal
	}{
		{nil, none, none},
		{[]string{"authorization", ""}, none, none},
		{[]string{"authorization", "Basic dGhlLXNob3A="}, none, none},
		{[]string{"authorization", "the-shop"}, none, none},
		{[]string{"authorization", "Bearer stolen-one"}, unknown, unknown},
		{[]string{"authorization", "Bearer the-shop"}, ok, forbidden},
		{[]string{"Authorization", "bearer  the-shop "}, ok, forbidden},
		{[]string{"authorization", "Bearer the-admin"}, ok, ok},
		{[]string{"authorization", "Bearer stolen-one", "authorization", "Bearer the-shop"}, unknown, unknown},
	} {
		ctx := metadata.AppendToOutgoingContext(within(t), tt.shown...)
		what := fmt.Sprintf("%q", tt.shown)
		_, err := r.ids.Next(ctx, &firnv1.NextRequest{})
		wants(t, what+" Next", err, tt.give)
		stream, err := r.ids.Stream(ctx, &firnv1.StreamRequest{Total: 1})
		if err != nil {
			t.Fatal(err)
		}
		_, err = stream.Recv()
		wants(t, what+" Stream", err, tt.give)
		_, err = r.admin.ListSequencers(ctx, &firnv1.ListSequencersRequest{})
		wants(t, what+" ListSequencers", err, tt.admin)
		if err != nil && strings.Contains(err.Error(), "stolen") {
			t.Errorf("the error shows the token: %v", err)
		}
	}
	if log := r.log.String(); log != "" {
		t.Errorf("it was logged: %s", log)
	}
	trail := r.trail.String()
	for _, want := range []string{
		`msg="audit: a call was refused" who=(anonymous) remote=bufconn protocol=grpc call=/firn.v1.Firn/Next ` +
			`outcome=unauthenticated`,
		`msg="audit: a call was refused" who=(anonymous) remote=bufconn protocol=grpc call=/firn.v1.Firn/Stream ` +
			`outcome=unauthenticated`,
		`msg="audit: a call was refused" who=(anonymous) remote=bufconn protocol=grpc ` +
			`call=/firn.v1.Admin/ListSequencers outcome=forbidden`,
	} {
		if !strings.Contains(trail, want) {
			t.Errorf("the trail does not say %s:\n%s", want, trail)
		}
	}
	if strings.Contains(trail, "stolen-one") {
		t.Errorf("the trail shows a token:\n%s", trail)
	}
	if _, err := r.admin.DestroySequencer(metadata.AppendToOutgoingContext(within(t), "authorization",
		"Bearer the-admin"), &firnv1.DestroySequencerRequest{Name: "default"}); err == nil {
		t.Error("the default sequencer was destroyed")
	}
	if want := "remote=bufconn protocol=grpc call=destroy sequencer=default " +
		"outcome=in_use"; !strings.Contains(r.trail.String(), want) {
		t.Errorf("the trail does not say %s:\n%s", want, r.trail.String())
	}
}

// Without tokens anyone gets IDs, and nobody administers.
func TestAdminIsForbidden(t *testing.T) {
	r := newRig(t, new(servertest.Issuer), servertest.Join(t), &auth.Policy{})
	if _, err := r.ids.Next(within(t), &firnv1.NextRequest{}); err != nil {
		t.Error(err)
	}
	for name, call := range adminCalls(r.admin) {
		want := refusal{code: codes.PermissionDenied, reason: "forbidden"}
		if name == "GetSequencer" { // who takes its IDs may know what they are
			want = refusal{code: codes.NotFound, reason: "unknown_sequencer"}
		}
		wants(t, name, call(within(t), "orders"), want)
	}
}

// Whoever shows no token is told so by every call of Admin, and nothing is done. The trail tells of each.
func TestAdminNeedsAToken(t *testing.T) {
	r := newRig(t, new(servertest.Issuer), servertest.Join(t), &auth.Policy{Tokens: two(t)})
	for name, call := range adminCalls(r.admin) {
		wants(t, name, call(within(t), "orders"),
			refusal{code: codes.Unauthenticated, reason: "unauthenticated", says: "missing token: send"})
		if want := "call=/firn.v1.Admin/" + name +
			" outcome=unauthenticated\n"; !strings.Contains(r.trail.String(), want) {
			t.Errorf("the trail does not say %s:\n%s", want, r.trail.String())
		}
	}
}

// ofNoSequencer are the calls of Admin that are about no sequencer.
var ofNoSequencer = []string{"ListSequencers", "GetPolicy", "ExpelMember", "ClusterStatus"}

// adminCalls are the calls of Admin by name, each for a sequencer.
func adminCalls(c firnv1.AdminClient) map[string]func(context.Context, string) error {
	return map[string]func(context.Context, string) error{
		"ListSequencers": func(ctx context.Context, _ string) error {
			_, err := c.ListSequencers(ctx, &firnv1.ListSequencersRequest{})
			return err
		},
		"GetSequencer": func(ctx context.Context, name string) error {
			_, err := c.GetSequencer(ctx, &firnv1.GetSequencerRequest{Name: name})
			return err
		},
		"CreateSequencer": func(ctx context.Context, name string) error {
			_, err := c.CreateSequencer(ctx, &firnv1.CreateSequencerRequest{Name: name})
			return err
		},
		"DestroySequencer": func(ctx context.Context, name string) error {
			_, err := c.DestroySequencer(ctx, &firnv1.DestroySequencerRequest{Name: name})
			return err
		},
		"AttachSequencer": func(ctx context.Context, name string) error {
			_, err := c.AttachSequencer(ctx, &firnv1.AttachSequencerRequest{Name: name})
			return err
		},
		"DetachSequencer": func(ctx context.Context, name string) error {
			_, err := c.DetachSequencer(ctx, &firnv1.DetachSequencerRequest{Name: name})
			return err
		},
		"DrainMember": func(ctx context.Context, name string) error {
			_, err := c.DrainMember(ctx, &firnv1.DrainMemberRequest{Name: name, Member: "a"})
			return err
		},
		"UndrainMember": func(ctx context.Context, name string) error {
			_, err := c.UndrainMember(ctx, &firnv1.UndrainMemberRequest{Name: name, Member: "a"})
			return err
		},
		"MoveNode": func(ctx context.Context, name string) error {
			_, err := c.MoveNode(ctx, &firnv1.MoveNodeRequest{Name: name, To: "a"})
			return err
		},
		"ResumeCounter": func(ctx context.Context, name string) error {
			_, err := c.ResumeCounter(ctx, &firnv1.ResumeCounterRequest{Name: name, After: new(int64(7))})
			return err
		},
		"SetAllocation": func(ctx context.Context, name string) error {
			_, err := c.SetAllocation(ctx, &firnv1.SetAllocationRequest{Name: name})
			return err
		},
		"SetPolicy": func(ctx context.Context, name string) error {
			_, err := c.SetPolicy(ctx, &firnv1.SetPolicyRequest{Shares: []*firnv1.Share{{Sequencer: name}}})
			return err
		},
		"GetPolicy": func(ctx context.Context, _ string) error {
			_, err := c.GetPolicy(ctx, &firnv1.GetPolicyRequest{})
			return err
		},
		"ExpelMember": func(ctx context.Context, _ string) error {
			_, err := c.ExpelMember(ctx, &firnv1.ExpelMemberRequest{Member: "a"})
			return err
		},
		"ClusterStatus": func(ctx context.Context, _ string) error {
			_, err := c.ClusterStatus(ctx, &firnv1.ClusterStatusRequest{})
			return err
		},
	}
}

// Balancers have no token.
func TestHealthNeedsNoToken(t *testing.T) {
	r := newRig(t, new(servertest.Issuer), servertest.Join(t), &auth.Policy{Tokens: two(t)})
	got, err := healthpb.NewHealthClient(r.conn).Check(within(t), &healthpb.HealthCheckRequest{})
	if err != nil || got.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("%v, %v", got, err)
	}
}
