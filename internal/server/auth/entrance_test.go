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
		entrance Entrance
		token    string
		want     *Caller // nil: ErrUnauthenticated
	}{
		{Entrance{}, "", anyone},
		{Entrance{}, "known", anyone},
		{Entrance{Trusted: true}, "", trusted},
		{Entrance{Trusted: true}, "known", trusted},
		{Entrance{Tokens: one{known}}, "", nil},
		{Entrance{Tokens: one{known}}, "other", nil},
		{Entrance{Tokens: one{known}}, "known", known},
		{Entrance{Tokens: one{known}, Trusted: true}, "", nil},
		{Entrance{Tokens: one{known}, Trusted: true}, "known", known},
	} {
		got, err := tt.entrance.Admit(tt.token)
		if got != tt.want || (got == nil) != errors.Is(err, ErrUnauthenticated) {
			t.Errorf("%+v: %q is %+v, %v; want %+v", tt.entrance, tt.token, got, err, tt.want)
		}
	}
}
