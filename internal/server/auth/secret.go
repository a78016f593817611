package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const (
	tokenPrefix = "firn_"
	tokenBytes  = 32
	maxToken    = 4 << 10 // bytes that are shown
)

// NewToken returns a token that nobody can guess: "firn_" and 43 of the characters A-Z, a-z, 0-9, '-' and '_'.
func NewToken() string {
	var b [tokenBytes]byte
	_, _ = rand.Read(b[:]) // it never fails
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// Hash is what a file of tokens says of a token: its SHA-256, in 64 lower-case hex digits.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// CheckToken returns an error when a token that somebody made up can't be used, or is guessed too easily. It takes 16
// to 4096 ASCII characters without spaces.
func CheckToken(token string) error {
	const least = 16
	switch {
	case len(token) < least || len(token) > maxToken:
		return fmt.Errorf("the token has %d characters; want %d to %d, hard to guess", len(token), least, maxToken)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("the token has a space, or a character that is not ASCII; want letters, digits and signs such as '-' and '_'")
	}
	return nil
}

// isToken tells what looks like a token of ours.
func isToken(text string) bool {
	return strings.HasPrefix(text, tokenPrefix) && len(text) == len(tokenPrefix)+base64.RawURLEncoding.EncodedLen(tokenBytes)
}

// shown is a text for errors. What may be a token, or have one in it, is not shown.
func shown(text string) string {
	if len(text) > 40 || strings.Contains(text, tokenPrefix) {
		return fmt.Sprintf("a text of %d bytes (not shown, as it may be a secret)", len(text))
	}
	return fmt.Sprintf("%q", text)
}
