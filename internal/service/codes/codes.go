// Package codes is the one table of the kinds of errors that callers tell apart, and of what each is in each protocol.
// Package calls says which error is of which kind.
package codes

import (
	"time"

	"google.golang.org/grpc/codes"
)

// Code is a kind of error that programs tell apart. Each protocol sends it in its own way. One that is not in the
// table, such as that of a newer node, is sent as Internal is: as an error, whatever it says.
type Code string

// Results of calls that are no errors, for those who count calls. They are not in the table.
const (
	OK   Code = "ok"
	Gone Code = "gone" // the caller disconnected or canceled the call
)

// Whether a retry of the same call may help, and when.
const (
	never = 0
	soon  = time.Second
)

// The codes: the HTTP and gRPC status, the first word of an error to Redis clients (that of Redis, or the code without
// underscores), when a retry may help, and when callers get it. UNAVAILABLE is what gRPC's libraries retry, preferably
// on another server. It is for errors where that can help, and not for an overloaded server. RateLimited has the time
// of a retry in the error.
var (
	BadRequest = add("bad_request", 400, codes.InvalidArgument, "ERR", never,
		"a wrong count, ID, name or definition; the message says what would be right")
	Unauthenticated = add("unauthenticated", 401, codes.Unauthenticated, "NOAUTH", never,
		"the token, or the node's own secret, is missing or wrong")
	Forbidden = add("forbidden", 403, codes.PermissionDenied, "NOPERM", never,
		"the token, or a call without a token, does not allow this")
	UnknownSequencer = add("unknown_sequencer", 404, codes.NotFound, "UNKNOWNSEQUENCER", never,
		"no sequencer has this name, or it was destroyed")
	Exists = add("exists", 409, codes.AlreadyExists, "EXISTS", never,
		"a sequencer of this name has another definition")
	InUse = add("in_use", 409, codes.FailedPrecondition, "INUSE", never,
		"nobody can destroy the default sequencer")
	AttachedAgain = add("attached_again", 409, codes.FailedPrecondition, "ATTACHEDAGAIN", never,
		"the member attached again during the call")
	Refused = add("refused", 409, codes.FailedPrecondition, "REFUSED", never,
		"the cluster's rules, or the key of this node, do not allow this change now; the message says why")
	RateLimited = add("rate_limited", 429, codes.ResourceExhausted, "RATELIMITED", never,
		"more IDs than the token allows; without a time to retry, it never allows so many in one call")
	Quota = add("quota", 429, codes.ResourceExhausted, "QUOTA", never,
		"the cluster has as many sequencers as the node or the token allows; destroy some, or raise --max-sequencers "+
			"or the quota of the token")
	Internal = add("internal", 500, codes.Internal, "INTERNAL", never,
		"a bug, or the store refused a read; the node logs it")
	Unreadable = add("unreadable", 500, codes.Internal, "UNREADABLE", never,
		"the log has an entry that this program can't read, and the node's time is used up; start a newer program, or "+
			"see firn cluster skip")
	NotReady = add("not_ready", 503, codes.Unavailable, "NOTREADY", soon,
		"the node can't give IDs now: it has not joined yet, has reached its horizon, or is stopping; try another "+
			"server, or retry")
	Clock = add("clock", 503, codes.Unavailable, "CLOCK", soon,
		"this machine's clock disagrees with those of most other members, or its IDs would be smaller than existing "+
			"ones, or than one that the call is to exceed; try another server")
	Copied = add("copied", 503, codes.Unavailable, "COPIED", soon,
		"the node's process was copied, or set back to an earlier state, as by a snapshot of its machine, and starts "+
			"over as a new member; try another server")
	Waiting = add("waiting", 503, codes.Unavailable, "WAITING", soon,
		"all node IDs are taken, and the member waits for one; try another server")
	Detached = add("detached", 503, codes.Unavailable, "DETACHED", soon,
		"the member is not attached, and the caller's token, the sequencer's definition or --no-auto-attach does not "+
			"let this call attach it, or an administrator has drained it; try another server")
	Unfit = add("unfit", 503, codes.Unavailable, "UNFIT", soon,
		"the member's window is too short for the tick, or the sequencer has none of the node IDs that the member may "+
			"use; try another server")
	Unavailable = add("unavailable", 503, codes.Unavailable, "UNAVAILABLE", soon,
		"the store does not answer; it may have made a change or not")
	Overloaded = add("overloaded", 503, codes.ResourceExhausted, "OVERLOADED", soon,
		"the call wants more IDs than the node can make in 10 s, or the node has too many calls at a time")
	Lifetime = add("lifetime", 503, codes.Unavailable, "LIFETIME", soon,
		"the layout's time has run out, or has not begun")
	Exhausted = add("exhausted", 409, codes.FailedPrecondition, "EXHAUSTED", never,
		"a counter has fewer numbers left than the call wants, up to its maximum or until its next date")
	Lost = add("lost", 409, codes.FailedPrecondition, "LOST", never,
		"the store has lost data, so that numbers could come again; a counter goes on after firn sequencer resume, "+
			"and firn import with another job")
	NoQuorum = add("no_quorum", 404, codes.FailedPrecondition, "NOQUORUM", never,
		"only over HTTP: the node was started without --quorum")
	CrossOrigin = add("cross_origin", 403, codes.PermissionDenied, "CROSSORIGIN", never,
		"only over HTTP: a browser sent the call from another site's page")
	MethodNotAllowed = add("method_not_allowed", 405, codes.Unimplemented, "METHODNOTALLOWED", never,
		"only over HTTP: the path takes other methods; see the `Allow` header")
	NotFound = add("not_found", 404, codes.Unimplemented, "NOTFOUND", never, "only over HTTP: no such path")
	TooLarge = add("too_large", 413, codes.ResourceExhausted, "TOOLARGE", never,
		"only over HTTP: the body has more than 64 KiB")
	UnknownPosition = add("unknown_position", 404, codes.OutOfRange, "UNKNOWNPOSITION", never,
		"only over HTTP: the log no longer has, or does not yet have, this position or time; the message says "+
			"which it has")
)

// row is what the table says of a code.
type row struct {
	http  int
	grpc  codes.Code
	redis string
	retry time.Duration
	when  string
}

var (
	table = map[Code]row{}
	all   []Code // in the order of the table
)

// add puts a row into the table. A success is no error, in any protocol.
func add(c Code, http int, grpc codes.Code, redis string, retry time.Duration, when string) Code {
	if _, twice := table[c]; twice || c == OK || c == Gone || http < 400 || grpc == codes.OK || redis == "" ||
		when == "" {
		panic("the code " + string(c) + " is there twice, is a success somewhere, or lacks something")
	}
	table[c], all = row{http, grpc, redis, retry, when}, append(all, c)
	return c
}

func (c Code) row() row {
	if r, ok := table[c]; ok {
		return r
	}
	return table[Internal]
}

// All returns all codes of errors.
func All() []Code { return append([]Code(nil), all...) }

// HTTP is the status of an answer with the code.
func (c Code) HTTP() int { return c.row().http }

// GRPC is the status of a call with the code.
func (c Code) GRPC() codes.Code { return c.row().grpc }

// Redis is the first word of an error with the code.
func (c Code) Redis() string { return c.row().redis }

// Retry is how long to wait before a retry; zero: a retry does not help, unless the error itself says when.
func (c Code) Retry() time.Duration { return c.row().retry }

// When says when callers get the code.
func (c Code) When() string { return c.row().when }
