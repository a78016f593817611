package auth

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Without tokens whoever comes by a trusted listener may look and take IDs; to change something the secret is wanted,
// and that is told with where it is.
func TestSecret(t *testing.T) {
	s := NewSecret()
	e := Policy{Trusted: true, Secret: s}
	who, err := e.Admit("")
	if err != nil || who.May(Look, "") != nil || who.May(Look, "orders") != nil || who.May(Issue, "orders") != nil ||
		who.Name() != "" {
		t.Errorf("who shows nothing is %v, %v", who, err)
	}
	if err := who.May(Admin, "orders"); !errors.Is(err, ErrNotKept) || errors.Is(err, ErrUnauthenticated) {
		t.Errorf("before it is known where the secret is: %v", err)
	}
	s.Kept("/data/admin.token", nil)
	var missing *SecretError
	if err := who.May(Admin, "orders"); !errors.Is(err, ErrUnauthenticated) || !errors.As(err, &missing) ||
		missing.File != "/data/admin.token" || missing.Wrong {
		t.Errorf("who shows nothing changes something: %v", err)
	}
	owner, err := e.Admit(s.Token())
	if err != nil || owner.May(Admin, "orders") != nil || owner.May(Look, "") != nil || owner.Name() != LocalSecret {
		t.Errorf("who shows the secret is %v, %v", owner, err)
	}
	for _, wrong := range []string{NewSecret().Token(), s.Token()[1:], s.Token() + "x", strings.ToUpper(s.Token())} {
		if who, err := e.Admit(wrong); who != nil || !errors.Is(err, ErrUnauthenticated) || !errors.As(err, &missing) ||
			!missing.Wrong || strings.Contains(err.Error(), s.Token()) {
			t.Errorf("%s is %v, %v", wrong, who, err)
		}
	}
	s.Kept("", errors.New("read-only file system"))
	if err := who.May(Admin, "orders"); !errors.As(err, &missing) || missing.File != "" ||
		!strings.Contains(err.Error(), "read-only file system") || !strings.Contains(err.Error(), "--tokens") {
		t.Errorf("where it can't be written: %v", err)
	}
	if LocalSecret != strings.TrimSpace(LocalSecret) || CheckName(LocalSecret) == nil {
		t.Errorf("a token can be called %q", LocalSecret)
	}

	// By other listeners, and where there are tokens, it is good for nothing.
	public, err := (&Policy{Secret: s}).Admit(s.Token())
	if err != nil || public.May(Admin, "orders") == nil || public.May(Look, "") == nil {
		t.Errorf("by another listener: %v, %v", public, err)
	}
	if who, err := (&Policy{Trusted: true, Secret: s, Tokens: one{nil}}).Admit(s.Token()); err == nil && who != nil {
		t.Errorf("where there are tokens: %v", who)
	}
}

// Who may administer may look; who may take IDs may not.
func TestLook(t *testing.T) {
	admin, shop := &Caller{name: "a", rights: Admin}, &Caller{name: "b", rights: Issue}
	if admin.May(Look, "") != nil || !errors.Is(shop.May(Look, ""), ErrForbidden) ||
		!strings.Contains(text(shop.May(Look, "")), "not admin") {
		t.Errorf("an administrator looks: %v; another: %v", admin.May(Look, ""), shop.May(Look, ""))
	}
	if _, err := ParseRight("look"); err == nil {
		t.Error("a file of tokens can allow it")
	}
}

// The address of a login is good once, and for a while; what became of it is told.
func TestLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSecret()
		says := func(code, want string) {
			t.Helper()
			token, err := s.Login(code)
			if token != "" || !errors.Is(err, ErrUnauthenticated) || !strings.Contains(text(err), want) ||
				strings.Contains(text(err), code) && code != "" {
				t.Errorf("%q logs in: %q, %v; want that it %s", code, token, err, want)
			}
		}
		code := s.NewLogin()
		if token, err := s.Login(code); err != nil || token != s.Token() {
			t.Errorf("it logs in: %v", err)
		}
		says(code, "was used already")
		says("", "unknown login address")
		says(NewSecret().NewLogin(), "unknown login address")
		late := s.NewLogin()
		time.Sleep(LoginWithin + time.Second)
		says(late, "has expired")
		says(code, "was used already")

		// However many there are, the latest are good and the others forgotten.
		first := s.NewLogin()
		time.Sleep(time.Second)
		var last string
		for range 3 * maxCodes {
			last = s.NewLogin()
			if len(s.codes) > maxCodes {
				t.Fatalf("%d are remembered", len(s.codes))
			}
		}
		says(first, "unknown login address")
		if _, err := s.Login(last); err != nil {
			t.Errorf("the last: %v", err)
		}
	})
}
