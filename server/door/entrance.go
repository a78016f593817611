package door

import "fmt"

// Identifier tells who shows a token. The error is ErrUnauthenticated when nobody is known by it.
type Identifier interface {
	Identify(token string) (*Caller, error)
}

// Entrance is what callers of one listener have to pass. The zero value lets anyone take IDs, and nobody administer.
type Entrance struct {
	// Tokens has every caller show a token. Nil: nobody need.
	Tokens Identifier

	// Trusted lets whoever comes administer, as long as there are no tokens: the listener is out of the reach of others.
	Trusted bool
}

// Admit tells who comes in with a token; empty is none. ErrUnauthenticated is returned when one is wanted and it is
// missing or nobody's. It is safe for concurrent use.
func (e *Entrance) Admit(token string) (*Caller, error) {
	switch {
	case e.Tokens != nil && token == "":
		return nil, fmt.Errorf("%w: a token is wanted, and none was shown", ErrUnauthenticated)
	case e.Tokens != nil:
		return e.Tokens.Identify(token)
	case e.Trusted:
		return trusted, nil
	default:
		return anyone, nil
	}
}
