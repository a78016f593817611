package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Look is the right to look at the cluster, and to change nothing. Admin includes it, and so it has no name in a file of
// tokens: it is for who comes by a listener with a Secret and does not show that.
const Look Right = 1 << 7

// LocalSecret is the name of who shows a Secret. No token has it.
const LocalSecret = "(local secret)"

// Secret is what lets its owner administer by a listener where there are no tokens. Each process has a new one, and writes
// it into a file that only the process's user can read: so that whoever has started the process, and root, can administer.
// Make it with NewSecret. Its methods are safe for concurrent use.
type Secret struct {
	token         string
	sum           [sha256.Size]byte
	owner, looker *Caller
	kept          atomic.Pointer[SecretError] // nil: it is not known yet where the secret is

	mu    sync.Mutex // guards codes
	codes map[[sha256.Size]byte]*loginCode
}

// NewSecret returns a secret that nobody else knows, and that nobody can be told of before Kept is called.
func NewSecret() *Secret {
	s := &Secret{token: NewToken(), codes: map[[sha256.Size]byte]*loginCode{}}
	s.sum = sha256.Sum256([]byte(s.token))
	s.owner = &Caller{name: LocalSecret, rights: All}
	s.looker = &Caller{rights: anyone.rights | Look, local: s}
	return s
}

// Token is what is to be shown.
func (s *Secret) Token() string { return s.token }

// Kept says where the secret is, or why it could not be written to a file. Then nobody can administer by this listener.
func (s *Secret) Kept(file string, err error) {
	if err != nil {
		file = ""
	}
	s.kept.Store(&SecretError{File: file, Err: err})
}

// ErrNotKept is returned to who wants to change something before it is known where the secret is.
var ErrNotKept = errors.New("this node is starting, and has not written the secret for administrators yet")

// SecretError is returned to who wants to change something and does not show the secret. It is an ErrUnauthenticated.
type SecretError struct {
	File  string // that holds the secret, with its full path; empty: none does
	Err   error  // why no file holds it
	Wrong bool   // something else was shown
}

func (e *SecretError) Error() string {
	switch {
	case e.Err != nil:
		return fmt.Sprintf("nobody can administer this node: it could not write its secret to a file (%v); start firn serve with --tokens", e.Err)
	case e.Wrong:
		return fmt.Sprintf("what was shown is not this node's secret for administrators, which is new at each start, and is in %s", e.File)
	default:
		return fmt.Sprintf("changes need the secret in %s, which is its owner's and root's to read: firn commands find it by themselves, "+
			"other programs send its first line as Authorization: Bearer", e.File)
	}
}

// Is makes it an ErrUnauthenticated.
func (e *SecretError) Is(target error) bool { return target == ErrUnauthenticated }

// missing is why somebody can't change anything.
func (s *Secret) missing(wrong bool) error {
	kept := s.kept.Load()
	if kept == nil {
		return ErrNotKept
	}
	e := *kept
	e.Wrong = wrong
	return &e
}

// admit lets in who shows the secret, and who shows nothing, to look.
func (s *Secret) admit(token string) (*Caller, error) {
	if token == "" {
		return s.looker, nil
	}
	sum := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(sum[:], s.sum[:]) == 1 {
		return s.owner, nil
	}
	return nil, s.missing(true)
}

// A browser is logged in by an address that holds a code, which it exchanges for the secret.
const (
	// LoginWithin is how long a code can be used.
	LoginWithin = 15 * time.Minute

	maxCodes = 100 // that are remembered
)

type loginCode struct {
	until time.Time
	used  bool
}

// NewLogin returns a code that can be exchanged for the secret once, within LoginWithin.
func (s *Secret) NewLogin() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var oldest [sha256.Size]byte
	for sum, c := range s.codes {
		if now.After(c.until.Add(LoginWithin)) { // until then it is told that it has expired
			delete(s.codes, sum)
		} else if old := s.codes[oldest]; old == nil || c.until.Before(old.until) {
			oldest = sum
		}
	}
	if len(s.codes) >= maxCodes {
		delete(s.codes, oldest)
	}
	code := NewToken()[len(tokenPrefix):]
	s.codes[sha256.Sum256([]byte(code))] = &loginCode{until: now.Add(LoginWithin)}
	return code
}

// Login exchanges a code for the secret. The error is ErrUnauthenticated, and says what became of the code.
func (s *Secret) Login(code string) (token string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.codes[sha256.Sum256([]byte(code))]
	switch {
	case c == nil:
		return "", loginError("this login address is not known here: it may be of an earlier start of the node, or incomplete")
	case c.used:
		return "", loginError("this login address was used already, and is good for one time only; if that was not you, restart the node")
	case time.Now().After(c.until):
		return "", loginError(fmt.Sprintf("this login address has expired: it is good for %v", LoginWithin))
	}
	c.used = true
	return s.token, nil
}

// loginError is returned for a code that is good no longer.
type loginError string

func (e loginError) Error() string {
	return string(e) + "; `firn cluster dashboard` prints a new one"
}

func (loginError) Is(target error) bool { return target == ErrUnauthenticated }
