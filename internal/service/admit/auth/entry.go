package auth

import (
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxName    = 100
	maxPattern = 1000
	maxRate    = 1_000_000_000
	maxQuota   = 1_000_000

	// maxPatterns is how many bytes the patterns of an entry's sequencers may have together: they stand in the log with
	// each sequencer that its caller creates.
	maxPatterns = 16 << 10
)

// Entry is one token in a file of tokens, which is a list of them in YAML.
type Entry struct {
	// as CheckName wants it; no other entry's
	Name string `json:"name" yaml:"name"`
	// of the token: Hash; no other entry's
	SHA256 string   `json:"sha256" yaml:"sha256"`
	Allow  []string `json:"allow" yaml:"allow,flow"` // rights, at least one
	// patterns of path.Match; none: all
	Sequencers []string `json:"sequencers,omitempty" yaml:"sequencers,flow,omitempty"`
	Prefixes   []string `json:"prefixes,omitempty" yaml:"prefixes,flow,omitempty"` // patterns, see Caller.MayPrefix
	Quota      int      `json:"quota,omitempty" yaml:"quota,omitempty"`            // sequencers, see Caller.Quota
	Rate       float64  `json:"rate,omitempty" yaml:"rate,omitempty"`              // IDs per second; zero: no limit
}

// CheckName returns an error unless a name has 1 to 100 printable characters without spaces. It must not look like a
// token, as it stands in logs and errors.
func CheckName(name string) error {
	const want = "want 1 to 100 printable characters without spaces"
	switch {
	case name == "":
		return errors.New("it is empty; " + want)
	case isToken(name):
		return errors.New("the name looks like a token, which must stay secret; want a name that logs may show")
	case utf8.RuneCountInString(name) > maxName:
		return fmt.Errorf("it has %d characters; %s", utf8.RuneCountInString(name), want)
	case !printable(name):
		return fmt.Errorf("%s is not a valid name; %s", shown(name), want)
	}
	return nil
}

func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return r == ' ' || !unicode.IsPrint(r)
	})
}

// ParseRight reads the name of one right: issue, open, import, order, attach or admin.
func ParseRight(text string) (Right, error) {
	for _, known := range rights {
		if text == known.name {
			return known.right, nil
		}
	}
	return 0, fmt.Errorf("%s is not a right; want issue, open, import, order, attach or admin", shown(text))
}

// CheckPattern returns an error unless a text of 1 to 1000 bytes is a pattern of sequencers' names as path.Match has
// them: * stands for any characters, ? for any one, and [a-z] for one of some.
func CheckPattern(pattern string) error {
	return checkPattern(pattern, "want the name of a sequencer, or a pattern such as orders-*")
}

// CheckPrefix is CheckPattern for the prefixes of sequencers.
func CheckPrefix(pattern string) error {
	return checkPattern(pattern, "want a prefix such as inv, or a pattern such as inv*")
}

func checkPattern(pattern, want string) error {
	switch _, err := path.Match(pattern, ""); {
	case pattern == "":
		return errors.New("it is empty; " + want)
	case len(pattern) > maxPattern:
		return fmt.Errorf("it has %d bytes; want at most %d", len(pattern), maxPattern)
	case err != nil, !printable(pattern):
		return fmt.Errorf("%s is not a pattern; %s", shown(pattern), want)
	}
	return nil
}

// CheckRate returns an error unless a rate, in IDs per second, is above 0 and at most 1000000000.
func CheckRate(rate float64) error {
	if rate > 0 && rate <= maxRate {
		return nil
	}
	return fmt.Errorf("%v is not a valid rate; want IDs per second, above 0 and at most %d", rate, maxRate)
}

// CheckQuota returns an error unless a number of sequencers is 1 to 1000000.
func CheckQuota(n int) error {
	if n >= 1 && n <= maxQuota {
		return nil
	}
	return fmt.Errorf("%d is not a valid quota; want 1 to %d sequencers", n, maxQuota)
}

func checkHash(text string) error {
	const want = "want the 64 hex digits that `firn token` prints" // and never the value, which may be the token
	_, err := hex.DecodeString(text)
	switch {
	case isToken(text):
		return errors.New("a token, which must stay secret; " + want)
	case len(text) != 64:
		return fmt.Errorf("it has %d characters; %s", utf8.RuneCountInString(text), want)
	case err != nil:
		return errors.New("characters that are not hex digits; " + want)
	}
	return nil
}
