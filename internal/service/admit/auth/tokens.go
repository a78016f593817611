package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/firn-id/firn/internal/base/files"
	"golang.org/x/time/rate"
)

// Tokens are the callers in a file of tokens: a list of entries, in YAML.
//
//   - name: orders-service
//     sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 # of the token, as `firn token` prints
//     it
//     allow: [issue] # issue, open, import, order, attach, admin, or several of them
//     sequencers: [orders, "invoices-*"] # patterns; default: all
//     prefixes: [inv] # that it may give to sequencers, patterns; default: all, and none if sequencers are given
//     quota: 20 # of its sequencers; default: no limit, and a tenth of all that there may be if sequencers are given
//     rate: 10000 # IDs per second; default: no limit
//
// The file is read again within a second of use after it has changed. If it is then missing or wrong, or others can
// write it (see files.CheckWriters), that is logged, and the callers stay as they were. Replace the file by renaming
// another, so that half of it is never read.
type Tokens struct{ callers *files.Value[callers] }

// callers are those of the tokens with these SHA-256s.
type callers map[[sha256.Size]byte]*Caller

// OpenTokens reads a file of tokens. An error says what is wrong with it, where, and what would be right; it never
// shows a token. A file without any token is an error.
func OpenTokens(path string, log *slog.Logger) (*Tokens, error) {
	all, err := files.Open("tokens", log, func(contents [][]byte, last callers) (callers, error) {
		entries, err := parseTokens(contents[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return newCallers(entries, last), nil
	}, path)
	if err != nil {
		return nil, err
	}
	return &Tokens{all}, nil
}

// Identify returns the caller whose token it is. ErrUnauthenticated is returned when the token is unknown, or longer
// than 4 KiB. It is safe for concurrent use.
func (t *Tokens) Identify(token string) (*Caller, error) {
	if len(token) > maxToken {
		return nil, unauthenticated("the token has %d bytes; want at most %d", len(token), maxToken)
	}
	c, ok := t.callers.Get()[sha256.Sum256([]byte(token))]
	if !ok {
		return nil, unauthenticated("unknown token: it is not in this node's file of tokens")
	}
	if c.sent.Load() == nil {
		c.sent.Store(new(strings.Clone(token)))
	}
	return c, nil
}

// newCallers makes callers of valid entries. Those that were there keep the count of their calls, and with the same
// rate their limiter.
func newCallers(entries []Entry, last callers) callers {
	all := callers{}
	for _, e := range entries {
		var sum [sha256.Size]byte
		_, _ = hex.Decode(sum[:], []byte(e.SHA256)) // checked
		c := &Caller{
			name: e.Name, sequencers: e.Sequencers, prefixes: e.Prefixes, quota: e.Quota,
			calls: new(atomic.Int64),
		}
		old := last[sum]
		if old != nil {
			c.calls = old.calls
		}
		for _, text := range e.Allow {
			right, _ := ParseRight(text) // checked
			c.rights |= right
		}
		if e.Rate > 0 {
			c.limit = rate.NewLimiter(rate.Limit(e.Rate), max(1, int(e.Rate)))
			if old != nil && old.limit != nil && old.limit.Limit() == c.limit.Limit() {
				c.limit = old.limit
			}
		}
		all[sum] = c
	}
	return all
}
