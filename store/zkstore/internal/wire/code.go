package wire

import "fmt"

// Code is an error that a server answers; zero is none. After each of them the request changed nothing.
type Code int32 //nolint:errname // what the protocol calls it

// The codes that callers tell apart.
const (
	errNotReached     Code = -2 // a part after the one that failed
	ErrNoNode         Code = -101
	ErrNoAuth         Code = -102
	ErrBadVersion     Code = -103
	ErrNodeExists     Code = -110
	ErrSessionExpired Code = -112
	ErrInvalidACL     Code = -114
	ErrAuthFailed     Code = -115
	ErrSessionMoved   Code = -118
	ErrQuota          Code = -125
)

var texts = map[Code]string{
	errNotReached:     "an earlier operation failed",
	-4:                "the server lost its connection",
	-5:                "the server can't read the request",
	-6:                "the server does not know the operation",
	-7:                "the operation timed out",
	-8:                "bad arguments",
	ErrNoNode:         "no such node",
	ErrNoAuth:         "not permitted",
	ErrBadVersion:     "the node has another version",
	-108:              "an ephemeral node can't have children",
	ErrNodeExists:     "the node exists",
	-111:              "the node has children",
	ErrSessionExpired: "the session has expired",
	ErrInvalidACL:     "the server accepts no such permissions",
	ErrAuthFailed:     "the login failed",
	ErrSessionMoved:   "the session is now at another server",
	-119:              "the server only reads at present",
	ErrQuota:          "a quota is used up",
	-127:              "too many requests",
}

// Error says what the code means.
func (c Code) Error() string {
	if c == 0 {
		return "no error"
	}
	if text := texts[c]; text != "" {
		return text
	}
	return fmt.Sprintf("ZooKeeper's error %d", int32(c))
}
