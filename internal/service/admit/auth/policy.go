package auth

import (
	"fmt"
	"strings"
)

// Identifier finds callers by their tokens. The error is ErrUnauthenticated when the token is unknown.
type Identifier interface {
	Identify(token string) (*Caller, error)
}

// Policy says who may do what on one listener. The zero value lets everybody take IDs, and nobody administer.
type Policy struct {
	// Tokens makes every caller send a token. Nil: nobody needs one.
	Tokens Identifier

	// Trusted says that only users of this machine can reach the listener. Without Tokens they may look at the cluster,
	// and without a Secret administer it.
	Trusted bool

	// Secret is what callers of a Trusted listener without Tokens send to change something. Nil: nothing.
	Secret *Secret
}

// Admit returns the caller that sends a token; empty: it sends none. ErrUnauthenticated is returned when a token is
// required and missing or unknown, or is not the Secret. It is safe for concurrent use.
func (p *Policy) Admit(token string) (*Caller, error) {
	switch {
	case p.Tokens != nil && token == "":
		return nil, ErrNoToken
	case p.Tokens != nil:
		return p.Tokens.Identify(token)
	case p.Trusted && p.Secret != nil:
		return p.Secret.admit(token)
	case p.Trusted:
		return trusted, nil
	default:
		return anyone, nil
	}
}

// Bearer returns the token in the value of an Authorization header, for HTTP and gRPC alike; empty: it has none.
func Bearer(header string) string {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// AdmitHost returns an error when a page of another site may have sent the browser here, under a name that it points to
// this machine (DNS rebinding), and nothing but the listener's address keeps such pages away.
func (p *Policy) AdmitHost(host string) error {
	if p.Trusted && p.Tokens == nil && !LocalHost(host) {
		return fmt.Errorf("another site's page may have sent your browser here as %.100q; use localhost or an IP "+
			"address", host)
	}
	return nil
}
