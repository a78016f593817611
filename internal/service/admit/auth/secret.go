package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn/internal/base/fresh"
)

const (
	tokenPrefix = "firn_"
	tokenBytes  = 32
	maxToken    = 4 << 10 // bytes
)

// NewToken returns a random token: "firn_" and 43 of the characters A-Z, a-z, 0-9, '-' and '_'.
func NewToken() string {
	b := fresh.Bytes()
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// Hash is the SHA-256 of a token in 64 lower-case hex digits, as a file of tokens holds it.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// CheckToken returns an error unless a token that somebody made up has 16 to 4096 ASCII characters without spaces. A
// shorter one would be too easy to guess.
func CheckToken(token string) error {
	const least = 16
	switch {
	case len(token) < least || len(token) > maxToken:
		return fmt.Errorf("the token has %d characters; want %d to %d, hard to guess", len(token), least, maxToken)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("the token has a space or a character that is not ASCII; want letters, digits and signs " +
			"such as '-' and '_'")
	}
	return nil
}

// isToken tells whether a text looks like a token of NewToken.
func isToken(text string) bool {
	return strings.HasPrefix(text, tokenPrefix) &&
		len(text) == len(tokenPrefix)+base64.RawURLEncoding.EncodedLen(tokenBytes)
}

// shown quotes a text for errors, unless it may be or contain a token.
func shown(text string) string {
	if len(text) > 40 || strings.Contains(text, tokenPrefix) {
		return fmt.Sprintf("text of %d bytes (not shown, as it may be a secret)", len(text))
	}
	return fmt.Sprintf("%q", text)
}
