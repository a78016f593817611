package store

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ValidateKey checks what every store demands of a key before it sends it. It returns
// ErrRefused when the key is empty, longer than MaxKey, not valid UTF-8, or has a control
// character: U+0000 to U+001F and U+007F to U+009F.
func ValidateKey(key string) error {
	if key == "" {
		return fmt.Errorf("%w: an empty key; want 1 to %d bytes", ErrRefused, MaxKey)
	}
	return ValidatePrefix(key)
}

// ValidatePrefix is ValidateKey for what a key begins with, which may be empty.
func ValidatePrefix(prefix string) error {
	switch {
	case len(prefix) > MaxKey:
		return fmt.Errorf("%w: the key %.80q... has %d bytes; want at most %d", ErrRefused, prefix, len(prefix), MaxKey)
	case !utf8.ValidString(prefix) || strings.ContainsFunc(prefix, unicode.IsControl):
		return fmt.Errorf("%w: the key %q; want UTF-8 without control characters", ErrRefused, prefix)
	}
	return nil
}

// Validate checks what every store demands of a transaction before it sends it. It
// returns ErrRefused when ValidateKey does for a key, when two operations are on one key,
// when they are under two sessions, or when the transaction is larger than MaxOps and
// MaxBytes allow.
func (t Txn) Validate() error {
	if len(t.If) > MaxOps || len(t.Then) > MaxOps {
		return fmt.Errorf("%w: a transaction of %d conditions and %d operations; want at most %d of each",
			ErrRefused, len(t.If), len(t.Then), MaxOps)
	}
	for _, c := range t.If {
		if err := ValidateKey(c.Key); err != nil {
			return err
		}
	}
	size := 0
	seen := make(map[string]bool, len(t.Then))
	var session Session
	for _, op := range t.Then {
		if err := ValidateKey(op.Key); err != nil {
			return err
		}
		if seen[op.Key] {
			return fmt.Errorf("%w: two operations on the key %q in one transaction; want one", ErrRefused, op.Key)
		}
		seen[op.Key] = true
		if op.Session != nil && !op.Delete {
			if session != nil && session != op.Session {
				return fmt.Errorf("%w: the key %q is put under a second session; want one in a transaction",
					ErrRefused, op.Key)
			}
			session = op.Session
		}
		size += len(op.Key) + len(op.Value)
	}
	if size > MaxBytes {
		return fmt.Errorf("%w: a transaction of %d bytes; want at most %d", ErrRefused, size, MaxBytes)
	}
	return nil
}
