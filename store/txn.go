package store

import "fmt"

// Validate checks what every store demands of a transaction before it sends it. It
// returns ErrRefused when a key is empty, when two operations are on one key, or
// when the transaction is larger than MaxOps and MaxBytes allow.
func (t Txn) Validate() error {
	if len(t.If) > MaxOps || len(t.Then) > MaxOps {
		return fmt.Errorf("%w: a transaction of %d conditions and %d operations; want at most %d of each",
			ErrRefused, len(t.If), len(t.Then), MaxOps)
	}
	for _, c := range t.If {
		if c.Key == "" {
			return fmt.Errorf("%w: a condition on an empty key; want a key", ErrRefused)
		}
	}
	size := 0
	seen := make(map[string]bool, len(t.Then))
	for _, op := range t.Then {
		if op.Key == "" {
			return fmt.Errorf("%w: an operation on an empty key; want a key", ErrRefused)
		}
		if seen[op.Key] {
			return fmt.Errorf("%w: two operations on the key %q in one transaction; want one", ErrRefused, op.Key)
		}
		seen[op.Key] = true
		size += len(op.Key) + len(op.Value)
	}
	if size > MaxBytes {
		return fmt.Errorf("%w: a transaction of %d bytes; want at most %d", ErrRefused, size, MaxBytes)
	}
	return nil
}
