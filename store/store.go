// Package store is the port: what firn needs of a coordination service, and
// nothing of any particular one. Adapters live in the folders below it, and
// store/storetest holds the contract that each of them must pass.
//
// A store is linearizable and does not forget what it committed; one that did is
// told apart where that can be seen, see ErrRolledBack. It makes no
// promise about time: a call may take effect long after its caller gave up on it.
package store

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrConflict is returned when a condition of a transaction did not hold.
	// Nothing was applied, and this transaction never will be.
	ErrConflict = errors.New("store: a condition of the transaction does not hold")

	// ErrSessionEnded is returned when a key was to be put under a session that
	// has ended. Nothing was applied, and this transaction never will be.
	ErrSessionEnded = errors.New("store: the session has ended")

	// ErrRefused is returned when the service turned the call down for a reason
	// that stays: permissions, size, a version too old. Nothing was applied.
	ErrRefused = errors.New("store: refused")

	// ErrAmbiguous is returned when nobody can tell whether the transaction was
	// applied. It may still be applied later, even after a read has shown that
	// it was not. The caller settles it by writing: it commits its next
	// transaction under the same conditions, so that at most one of the two can
	// ever apply, and if that one conflicts it reads and looks for its own mark.
	ErrAmbiguous = errors.New("store: it is not known whether the transaction was applied")

	// ErrUnavailable is returned when nothing was applied and the call is worth
	// sending again: one that changes no key got no answer in time, or the service
	// turned a call down because it is too busy.
	ErrUnavailable = errors.New("store: unavailable")

	// ErrRolledBack is returned when the service is behind what this client has read from it: it has
	// lost data, or was set back to a backup. Versions and positions that were read before mean
	// nothing any more. What a client does next, it does on the store as it is now.
	ErrRolledBack = errors.New("store: it has lost what it had committed")
)

// A Version is what changes at every write of a key. It never repeats for a key
// that exists, and later writes have greater ones. Zero stands for an absent key.
type Version int64

// KV is a key with its value at one moment. An absent key has Version zero.
type KV struct {
	Key     string
	Value   []byte
	Version Version
}

// Store is a coordination service as one of its clients sees it. All methods
// are safe for concurrent use. Every call ends with its context, or sooner by a
// deadline of the store's own; none but Log.Append, whose entry is added once all
// the same, is retried behind the caller's back once it may have taken effect.
type Store interface {
	Log

	// Get reads one key. An absent key is no error: its Version is zero.
	// ErrUnavailable or ErrRefused is returned when it can't be read.
	Get(ctx context.Context, key string) (KV, error)

	// List reads every key that begins with prefix as they were at one moment,
	// in ascending order of the keys.
	// ErrUnavailable or ErrRefused is returned when they can't be read.
	List(ctx context.Context, prefix string) ([]KV, error)

	// Commit applies a transaction: all of it if all its conditions hold, else
	// nothing. It returns the version that every key put by it now has.
	// ErrConflict, ErrSessionEnded, ErrRefused or ErrUnavailable is returned when
	// nothing was or will be applied, and ErrAmbiguous in every other case.
	Commit(ctx context.Context, txn Txn) (Version, error)

	// OpenSession begins a session that ends once it has not been renewed for
	// ttl; the store renews it until it is closed. A store may grant a longer
	// TTL than was asked for, see Session.TTL.
	// ErrUnavailable or ErrRefused is returned when there is no session.
	OpenSession(ctx context.Context, ttl time.Duration) (Session, error)

	// Gone watches a key until ctx ends. The channel is closed when the key is
	// absent as the watch begins, or disappears at any time after that, even
	// if it is put again at once. The watch has begun when Gone returns. It
	// never fires because ctx ended, nor because a connection broke.
	// ErrUnavailable or ErrRefused is returned when the watch can't begin.
	Gone(ctx context.Context, key string) (<-chan struct{}, error)

	// Close ends every session, watch and Follow of this client and frees what it
	// holds. Later calls fail with ErrRefused.
	Close() error
}

// Session is what ephemeral keys are put under: they disappear when it ends.
// Nothing about safety may rest on one: the service may end a session that its
// client has just renewed, and Done may tell of it late.
type Session interface {
	// Done is closed when the session has ended, or may have for all that the
	// client knows: it learned of the end, or could not renew for a whole TTL.
	Done() <-chan struct{}

	// TTL is how long the session lives on without being renewed, as granted.
	TTL() time.Duration

	// Close ends the session and with it every key put under it. It is safe to
	// call more than once. ErrUnavailable is returned when the service did not
	// confirm; the session then ends by itself within its TTL.
	Close(ctx context.Context) error
}

// A transaction may have up to MaxOps conditions and up to MaxOps operations, etcd's
// default, and up to MaxBytes bytes of keys and values in its operations. More is
// refused.
const (
	MaxOps   = 128
	MaxBytes = 1 << 20
)

// Txn is a transaction: if all conditions hold, then all operations apply at one
// moment. An operation's key must not appear in another operation of the same Txn.
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
	Session Session // the session that the key is put under; nil for one that stays
	Delete  bool
}

// Put sets a key that stays until it is deleted.
func Put(key string, value []byte) Op { return Op{Key: key, Value: value} }

// PutEphemeral sets a key that disappears when the session ends.
func PutEphemeral(key string, value []byte, session Session) Op {
	return Op{Key: key, Value: value, Session: session}
}

// Delete removes a key; removing an absent one is no error.
func Delete(key string) Op { return Op{Key: key, Delete: true} }
