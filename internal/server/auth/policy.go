package auth

import (
	"errors"
	"fmt"
)

// Identifier tells who shows a token. The error is ErrUnauthenticated when nobody is known by it.
type Identifier interface {
	Identify(token string) (*Caller, error)
}

// Policy is what callers of one listener have to pass. The zero value lets anyone take IDs, and nobody administer.
type Policy struct {
	// Tokens has every caller show a token. Nil: nobody need.
	Tokens Identifier

	// Trusted lets whoever comes look at the cluster, as long as there are no tokens, and administer, unless there is a
	// Secret: the listener is out of the reach of others.
	Trusted bool

	// Secret is what a Trusted listener without tokens wants to be shown by who changes something. Nil: nothing.
	Secret *Secret
}

// Admit tells who comes in with a token; empty is none. ErrUnauthenticated is returned when one is wanted and it is
// missing or nobody's, or is not the Secret. It is safe for concurrent use.
func (p *Policy) Admit(token string) (*Caller, error) {
	switch {
	case p.Tokens != nil && token == "":
		return nil, fmt.Errorf("%w: a token is wanted, and none was shown", ErrUnauthenticated)
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

// ErrHost is returned for a host that no administrator of this machine would ask for.
var ErrHost = errors.New("door: a browser may have been sent here by another site's page, under a name of that site; ask for localhost or an address")

// AdmitHost refuses a browser that a page of another site has sent here, where nothing but the listener's address keeps
// such pages away: the name that was asked for must then be none that others can point here. The error is ErrHost.
func (p *Policy) AdmitHost(host string) error {
	if p.Trusted && p.Tokens == nil && !LocalHost(host) {
		return ErrHost
	}
	return nil
}
