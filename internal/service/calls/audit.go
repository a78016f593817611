package calls

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"regexp"
	"strings"

	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/codes"
)

// Origin is where a call comes from, for the audit trail. Zero value: unknown.
type Origin struct {
	Protocol string // http, grpc or redis
	Remote   string // the address of the peer, which may be a proxy
}

type originKey struct{}

// In returns a context that carries the origin of an administrator's calls to the audit trail.
func (o Origin) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// Anonymous is the name in the audit trail of a caller without a token. No token has this name, or that of
// auth.LocalSecret.
const Anonymous = "(anonymous)"

// Audit is one line of the audit trail: a call and its outcome.
type Audit struct {
	Origin
	Who       string // the name of the caller's token; empty: Anonymous
	Call      string // such as "DELETE /api/v1/sequencers/{name}"; never text that callers choose
	Sequencer string // empty: none, or unknown
	Member    string // that the call is about, as the caller named it where it is unknown; empty: none
	Outcome   codes.Code

	// asked: the caller sent no secret, as the command line does first, or no token to look, as doctor and the
	// dashboard do, and is told what to send.
	asked bool
}

// Audited writes a line of the audit trail. It writes each change; of refused calls it limits the lines per minute of
// one address, protocol, caller, call and outcome, and counts the others: see package throttle.
func (s *Service) Audited(a Audit) {
	refused := a.Outcome == codes.Unauthenticated || a.Outcome == codes.Forbidden || a.Outcome == codes.CrossOrigin
	if a.Who == "" {
		a.Who = Anonymous
	}
	args := []any{"who", a.Who, "remote", a.Remote, "protocol", a.Protocol, "call", a.Call}
	if a.Sequencer != "" {
		args = append(args, "sequencer", harmless(a.Sequencer))
	}
	if a.Member != "" {
		args = append(args, "member", harmless(a.Member))
	}
	args = append(args, "outcome", string(a.Outcome))
	if !refused {
		s.options.Audit.All(slog.LevelInfo, "audit: a change was asked for", args...)
		return
	}
	level := slog.LevelWarn
	if a.asked {
		level = slog.LevelInfo
	}
	s.options.Audit.WriteFrom(place(a.Remote), level,
		strings.Join([]string{a.Protocol, a.Who, a.Call, string(a.Outcome)}, " "), "audit: a call was refused", args...)
}

// place returns what one who calls from there can't change at will: an address without its port, of IPv6 the network
// (/64); the user of a Unix socket.
func place(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		user, _, _ := strings.Cut(remote, ", process ")
		return user
	}
	if ip := at.Addr().Unmap(); ip.Is4() {
		return ip.String()
	}
	network, _ := at.Addr().WithZone("").Prefix(64) // any IPv6 address has one
	return network.String()
}

// changed audits a finished call that changes something. Refuse audits calls that were refused before they began.
func (s *Service) changed(ctx context.Context, who *auth.Caller, call, sequencer string, err error) {
	s.finished(ctx, who, Audit{Call: call, Sequencer: sequencer}, err)
}

// finished is changed for calls that are about more than a sequencer.
func (s *Service) finished(ctx context.Context, who *auth.Caller, a Audit, err error) {
	var denied *auth.DeniedError
	if errors.As(err, &denied) {
		return
	}
	a.Origin, _ = ctx.Value(originKey{}).(Origin)
	a.Who, a.Outcome = who.Name(), codes.OK
	if err != nil {
		a.Outcome = CodeOf(err)
	}
	s.Audited(a)
}

// Refuse returns the code of an error. It audits callers that were not authenticated or not allowed, and logs
// bugs. Call names the call, in words that the caller did not choose.
func (s *Service) Refuse(from Origin, call string, err error) codes.Code {
	code := CodeOf(err)
	switch code {
	case codes.Internal, codes.Unreadable:
		if errors.Is(err, peer.ErrNotReady) {
			return code // the member has logged it, once
		}
		s.options.Log.Error("a call failed", "call", call, "err", err)
	case codes.Unauthenticated, codes.Forbidden:
		a := Audit{Origin: from, Call: call, Outcome: code}
		var denied *auth.DeniedError
		if errors.As(err, &denied) {
			a.Who, a.Sequencer = denied.Caller, denied.Sequencer
		}
		var secret *auth.SecretError
		unknown := errors.Is(err, auth.ErrNoToken) || code == codes.Forbidden && a.Who == ""
		a.asked = errors.As(err, &secret) && !secret.Wrong || unknown && strings.HasPrefix(call, "GET ")
		s.Audited(a)
	}
	return code
}

// mistaken matches tokens. A caller may send one in place of a name.
var mistaken = regexp.MustCompile(`firn_[-_A-Za-z0-9]{16,}`)

// harmless returns a caller's text for the log: shortened, and without tokens.
func harmless(text string) string {
	const most = 100
	text = mistaken.ReplaceAllString(text, "firn_(not shown)")
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}
