// Package store says what firn needs of a coordination service, and nothing of
// any particular one: it is the port. Adapters live in the folders below it, and
// store/storetest holds the contract that each of them must pass.
//
// A store is linearizable and does not forget what it committed; clients that
// notice that it did return ErrRolledBack. It promises nothing about time: a call
// may take effect long after its caller gave up.
package store

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrConflict means that a condition of a transaction did not hold.
	// Nothing was applied, and this transaction never will be.
	ErrConflict = errors.New("a condition of the transaction does not hold")

	// ErrSessionEnded means that the transaction puts a key under a session that
	// has ended, or whose Done is closed. Nothing was applied, and this transaction
	// never will be.
	ErrSessionEnded = errors.New("the session has ended")

	// ErrRefused means that the service rejected the call for a lasting reason:
	// permissions, size, a version too old. Nothing was applied.
	ErrRefused = errors.New("refused by the store")

	// ErrAmbiguous means that nobody can tell whether the transaction was
	// applied. It may still be applied later, even after a read has shown that
	// it was not. The caller settles it by writing: it commits its next
	// transaction under the same conditions, so that at most one of the two can
	// ever apply, and if that one conflicts it reads and looks for its own mark.
	ErrAmbiguous = errors.New("the store may or may not have applied the transaction")

	// ErrUnavailable means that nothing was applied and that another try may
	// succeed: a call that changes no key got no answer in time, or the service
	// rejected a call because it is too busy.
	ErrUnavailable = errors.New("the store is unavailable")

	// ErrRolledBack means that the service is behind what this client has read from
	// it: it has lost data, or was restored from a backup. Versions and positions
	// from before mean nothing any more. Later calls work on the store as it is now.
	ErrRolledBack = errors.New("the store has lost committed data")
)

// A Version changes at every write of a key. It never repeats for a key that
// exists, and later writes have greater ones. Zero stands for an absent key.
type Version int64

// KV is a key with its value at one moment. An absent key has Version zero. A key is 1 to
// MaxKey bytes of valid UTF-8 without control characters. Keys are compared byte by byte,
// whatever the language. A store refuses another key, see ValidateKey.
type KV struct {
	Key     string
	Value   []byte
	Version Version
}

// Store is a coordination service as one of its clients sees it. All methods
// are safe for concurrent use. Every call ends with its context, or sooner by a
// deadline of the store's own. A store never sends a call again that may have taken
// effect, except in Log.Append, which adds its entry once all the same.
type Store interface {
	Log

	// Get reads one key. An absent key is no error: its Version is zero.
	// Errors: ErrUnavailable, ErrRefused.
	Get(ctx context.Context, key string) (KV, error)

	// List reads every key that begins with prefix as they were at one moment,
	// in ascending order of the keys. The prefix is one of a valid key, or empty. Errors:
	// ErrUnavailable, ErrRefused.
	List(ctx context.Context, prefix string) ([]KV, error)

	// Commit applies a transaction: all of it if all its conditions hold, else
	// nothing. It returns the version that every key put by it now has. After
	// ErrConflict, ErrSessionEnded, ErrRefused and ErrUnavailable nothing was or
	// will be applied; it returns ErrAmbiguous in every other case.
	Commit(ctx context.Context, txn Txn) (Version, error)

	// OpenSession begins a session that ends when nobody has renewed it for ttl,
	// which must be positive; the store renews it until it is closed. A store may
	// grant a longer TTL, or one that is up to a second shorter, if the service ends
	// sessions late; see Session.TTL. Errors: ErrUnavailable, ErrRefused.
	OpenSession(ctx context.Context, ttl time.Duration) (Session, error)

	// Gone watches a key until ctx ends. The channel is closed when the key is
	// absent as the watch begins, or disappears at any time after that, even
	// if it is put again at once. The watch has begun when Gone returns. It
	// never fires because ctx ended, nor because a connection broke.
	// Errors: ErrUnavailable, ErrRefused.
	Gone(ctx context.Context, key string) (<-chan struct{}, error)

	// Traits returns in what the store differs from others. It sends nothing, and the
	// answer never changes, whether the service can be reached or the store is closed.
	Traits() Traits

	// Close ends every session, watch and Follow of this client and frees its
	// resources. Later calls fail with ErrRefused.
	Close() error
}

// Traits are what some stores have and others have not.
type Traits struct {
	// Shared says that other processes may know of data that the service has lost,
	// without a trace. So a member that finds no log there waits before it begins one.
	Shared bool

	// OldestTransaction returns for how long the oldest transaction of the database that
	// holds the store has been open, of whatever program, and zero when there is none.
	// Known is false until the database has told. Nil: the store is not in a database.
	OldestTransaction func() (open time.Duration, known bool)
}

// Session owns ephemeral keys: they disappear when it ends. Nothing about safety
// may rest on a session: the service may end one that its client has just renewed,
// and Done may be late.
type Session interface {
	// Done is closed when the session has or may have ended: the client learned of
	// the end, or could not renew for a whole TTL.
	Done() <-chan struct{}

	// TTL is how long the session lives without renewal, as granted.
	TTL() time.Duration

	// Close ends the session and with it every key put under it. It is safe to
	// call more than once. It returns ErrUnavailable when the service did not
	// confirm; the session then ends by itself within its TTL.
	Close(ctx context.Context) error

	// Abandon stops the renewals and closes Done, and leaves the session to the
	// service, which ends it within its TTL, unless a copy of this process renews it
	// still. It sends nothing, nor does a later Close of the store end the session.
	Abandon()
}

// A transaction may have up to MaxOps conditions and up to MaxOps operations, etcd's
// default, and up to MaxBytes bytes of keys and values in its operations, so that with all
// that surrounds them it stays below ZooKeeper's limit of 1 MiB. A store refuses more.
const (
	MaxOps   = 128
	MaxBytes = 512 << 10
)

// MaxKey is how many bytes a key may have.
const MaxKey = 512

// Txn is a transaction: if all conditions hold, then all operations apply at one
// moment. An operation's key must not appear in another operation of the same Txn, and
// all sessions in it must be the same one.
type Txn struct {
	If   []Condition
	Then []Op
}

// Condition holds when the key has exactly this version; zero means absent.
type Condition struct {
	Key     string
	Version Version
}

// Op is one put or delete. Make it with Put, PutEphemeral or Delete.
type Op struct {
	Key     string
	Value   []byte
	Session Session // the session that owns the key; nil: the key stays
	Delete  bool
}

// Put sets a key that stays until it is deleted.
func Put(key string, value []byte) Op { return Op{Key: key, Value: value} }

// PutEphemeral sets a key that disappears when the session ends.
func PutEphemeral(key string, value []byte, session Session) Op {
	return Op{Key: key, Value: value, Session: session}
}

// Delete removes a key; an absent key is no error.
func Delete(key string) Op { return Op{Key: key, Delete: true} }
