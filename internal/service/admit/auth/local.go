package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/internal/base/reason"
	"github.com/firn-id/firn/internal/service/codes"
)

// Look is the right to look at the cluster without changing it. Admin includes it. It has no name in a file of tokens:
// it is for callers of a listener with a Secret who do not send that.
const Look Right = 1 << 7

// LocalSecret is the name of callers who send a Secret. No token can have it.
const LocalSecret = "(local secret)"

// Secret lets its owner administer by a listener without tokens. Each process has a new one and writes it into a file
// that only the process's user can read, so that this user and root can administer. Make it with NewSecret. Its methods
// are safe for concurrent use.
type Secret struct {
	token         string
	sum           [sha256.Size]byte
	owner, looker *Caller
	kept          atomic.Pointer[SecretError] // nil: Kept was not called yet

	mu    sync.Mutex // guards codes
	codes map[[sha256.Size]byte]*loginCode
}

// NewSecret returns a random secret. Kept must be called once it is in a file.
func NewSecret() *Secret {
	s := &Secret{token: NewToken(), codes: map[[sha256.Size]byte]*loginCode{}}
	s.sum = sha256.Sum256([]byte(s.token))
	s.owner = &Caller{name: LocalSecret, rights: All}
	s.looker = &Caller{rights: anyone.rights | Look, local: s}
	return s
}

// Token is the secret itself.
func (s *Secret) Token() string { return s.token }

// Kept says which file the secret is in, or why it could not be written to one: then nobody can administer by this
// listener.
func (s *Secret) Kept(file string, err error) {
	if err != nil {
		file = ""
	}
	s.kept.Store(&SecretError{File: file, Err: err})
}

// ErrNotKept is returned for a change before Kept was called.
var ErrNotKept = reason.New(string(codes.NotReady),
	"this node is starting and has not written the secret for administrators yet; try again")

// SecretError is returned for a change without the secret. It is an ErrUnauthenticated.
type SecretError struct {
	File  string // that holds the secret, with its full path; empty: none does
	Err   error  // why no file holds it
	Wrong bool   // the caller sent another token
}

func (e *SecretError) Error() string {
	switch {
	case e.Err != nil:
		return fmt.Sprintf("nobody can administer this node: it could not write its secret to a file (%v); start firn "+
			"serve with --tokens", e.Err)
	case e.Wrong:
		return fmt.Sprintf("wrong secret: send the one in %s, which is new at each start of the node", e.File)
	default:
		return fmt.Sprintf("changes need the secret in %s, which only its owner and root can read: firn commands find "+
			"it themselves, "+
			"other programs send its first line as `Authorization: Bearer ...`", e.File)
	}
}

// Reason returns the code of the error, as docs/errors.md has it.
func (*SecretError) Reason() string { return string(codes.Unauthenticated) }

// Is makes it an ErrUnauthenticated.
func (e *SecretError) Is(target error) bool { return target == ErrUnauthenticated }

// missing is the error of a caller that lacks the secret.
func (s *Secret) missing(wrong bool) error {
	kept := s.kept.Load()
	if kept == nil {
		return ErrNotKept
	}
	e := *kept
	e.Wrong = wrong
	return &e
}

// admit returns the owner for the secret, and a caller who may only look for no token.
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

// A login address logs a browser in: it holds a code, which the page exchanges for the secret.
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
		if now.After(c.until.Add(LoginWithin)) { // until then Login says that it has expired
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

// Login exchanges a code for the secret. The error is ErrUnauthenticated, and says what is wrong with the code.
func (s *Secret) Login(code string) (token string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.codes[sha256.Sum256([]byte(code))]
	switch {
	case c == nil:
		return "", badLogin("unknown login address: it is incomplete, or from an earlier start of the node")
	case c.used:
		return "", badLogin("this login address was used already, and works only once; if that was not you, restart " +
			"the node")
	case time.Now().After(c.until):
		return "", badLogin("this login address has expired: it works for %v", LoginWithin)
	}
	c.used = true
	return s.token, nil
}

func badLogin(format string, args ...any) error {
	return unauthenticated(format+"; `firn cluster dashboard` prints a new one", args...)
}
