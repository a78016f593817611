package server

import (
	"context"
	"errors"
	"log/slog"
	"regexp"

	"github.com/firn-id/firn/internal/server/auth"
)

// Origin is where a call comes from, for the audit trail. The zero value: nobody knows.
type Origin struct {
	Protocol string // http, grpc or redis
	Remote   string // the address of who has connected, which may be a proxy
}

type originKey struct{}

// In returns a context for the calls of an administrator, so that the audit trail says where they come from.
func (o Origin) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// Anonymous stands in the audit trail for who has shown no token. No token has this name, nor that of auth.LocalSecret.
const Anonymous = "(anonymous)"

// Audit is one line of the audit trail: what became of something that was asked for.
type Audit struct {
	Origin
	Who       string // the name of the caller's token; empty: Anonymous
	Call      string // such as "DELETE /api/v1/sequencers/{name}"; never what callers can choose
	Sequencer string // empty: none, or it is not known
	Outcome   Code

	// asked: whoever shows nothing is told what to show, as the command line always is before it does.
	asked bool
}

// Audited writes a line of the audit trail. Of the same kind, who and outcome only so many are written in a minute, and
// the others counted, see package throttle.
func (s *Service) Audited(a Audit) {
	level, message := slog.LevelWarn, "audit: a call was refused"
	switch a.Outcome {
	case Unauthenticated, Forbidden, CrossOrigin:
	default:
		level, message = slog.LevelInfo, "audit: a change was asked for"
	}
	if a.asked {
		level = slog.LevelInfo
	}
	if a.Who == "" {
		a.Who = Anonymous
	}
	args := []any{"who", a.Who, "remote", a.Remote, "protocol", a.Protocol, "call", a.Call}
	if a.Sequencer != "" {
		args = append(args, "sequencer", harmless(a.Sequencer))
	}
	s.options.Audit.Write(level, a.Protocol+" "+a.Who+" "+string(a.Outcome), message, append(args, "outcome", string(a.Outcome))...)
}

// changed is for calls that change something, when they are done. Those that were refused before they began are in the trail by Refuse.
func (s *Service) changed(ctx context.Context, who *auth.Caller, call, sequencer string, err error) {
	var denied *auth.DeniedError
	if errors.As(err, &denied) {
		return
	}
	outcome := OK
	if err != nil {
		outcome = CodeOf(err)
	}
	from, _ := ctx.Value(originKey{}).(Origin)
	s.Audited(Audit{Origin: from, Who: who.Name(), Call: call, Sequencer: sequencer, Outcome: outcome})
}

// Refuse tells the kind of an error. A caller that was not let in, or may not do that, is in the audit trail; a bug is logged: call is
// what was asked for, in words that are not the caller's.
func (s *Service) Refuse(from Origin, call string, err error) Code {
	code := CodeOf(err)
	switch code {
	case Internal, Unreadable:
		s.options.Log.Error("a call failed", "call", call, "err", err)
	case Unauthenticated, Forbidden:
		a := Audit{Origin: from, Call: call, Outcome: code}
		var denied *auth.DeniedError
		if errors.As(err, &denied) {
			a.Who, a.Sequencer = denied.Caller, denied.Sequencer
		}
		var secret *auth.SecretError
		a.asked = errors.As(err, &secret) && !secret.Wrong
		s.Audited(a)
	}
	return code
}

// mistaken is what tokens look like. Somebody may give one where a name is wanted.
var mistaken = regexp.MustCompile(`firn_[-_A-Za-z0-9]{16,}`)

// harmless is a text of a caller for the log: short, and without a token in it.
func harmless(text string) string {
	const most = 100
	text = mistaken.ReplaceAllString(text, "firn_(not shown)")
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}
