package auth

import (
	"errors"
	"testing"
)

// one knows one caller, by the token "known".
type one struct{ caller *Caller }

func (o one) Identify(token string) (*Caller, error) {
	if token != "known" {
		return nil, ErrUnauthenticated
	}
	return o.caller, nil
}

func TestAdmit(t *testing.T) {
	known := &Caller{name: "a"}
	for _, tt := range []struct {
		policy Policy
		token  string
		want   *Caller // nil: ErrUnauthenticated
	}{
		{Policy{}, "", anyone},
		{Policy{}, "known", anyone},
		{Policy{Trusted: true}, "", trusted},
		{Policy{Trusted: true}, "known", trusted},
		{Policy{Tokens: one{known}}, "", nil},
		{Policy{Tokens: one{known}}, "other", nil},
		{Policy{Tokens: one{known}}, "known", known},
		{Policy{Tokens: one{known}, Trusted: true}, "", nil},
		{Policy{Tokens: one{known}, Trusted: true}, "known", known},
	} {
		got, err := tt.policy.Admit(tt.token)
		if got != tt.want || (got == nil) != errors.Is(err, ErrUnauthenticated) {
			t.Errorf("%+v: %q is %+v, %v; want %+v", tt.policy, tt.token, got, err, tt.want)
		}
	}
}
