package fence

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrLost is returned when Revoke has taken the node ID, or its session has ended: the owner can never extend the
// fence again, but may use the time up to its horizon.
var ErrLost = errors.New("the node ID is lost")

// ErrCopied is returned when another process holds the node ID under the same operation ID: one of the two is a copy of
// the other, or was set back to an earlier state. What this one has reserved must not be used any more. It wraps
// ErrLost.
var ErrCopied = fmt.Errorf("%w: another process has written as its owner", ErrLost)

func isCopied(node int64) error { return fmt.Errorf("%w: node ID %d", ErrCopied, node) }

// ErrClosed is returned when a guard of a claim no longer holds: no owner can claim a node ID under it any more.
var ErrClosed = errors.New("closed to claims")

// HeldError is returned when another owner holds a node ID.
type HeldError struct {
	Node int64
	Live string // the key that is gone once the owner has released the node ID, or its session has ended
	by   string // the operation ID in it
}

// sqlPrefix begins the operation IDs of owners in SQL, see deploy.SQLNext.
const sqlPrefix = "sql-"

// Lasting reports whether the owner has no session, so that it keeps the node ID until it releases it.
func (e *HeldError) Lasting() bool { return strings.HasPrefix(e.by, sqlPrefix) }

func (e *HeldError) Error() string {
	return fmt.Sprintf("node ID %d is held by another owner", e.Node)
}

// ClockBehindError is returned when a node ID is free, but its floor lies further ahead of the clock than
// MaxWait: the clock is wrong, or an earlier owner's was, or it is reserved.
type ClockBehindError struct {
	Node     int64
	Behind   time.Duration // how far the clock is behind the floor
	MaxWait  time.Duration
	Reserved bool
}

func (e *ClockBehindError) Error() string {
	if e.Reserved {
		return fmt.Sprintf("the node ID %d is reserved", e.Node)
	}
	if e.Behind >= unreadable {
		return fmt.Sprintf("the horizon of node ID %d can't be read, so nobody may use the node ID", e.Node)
	}
	return fmt.Sprintf("this machine's clock is %v behind the time up to which node ID %d was used; up to %v is "+
		"waited for",
		e.Behind, e.Node, e.MaxWait)
}
