package store

import "fmt"

// Validate checks what every store demands of a transaction before it is sent.
// ErrRefused is returned when a key is empty, when two operations are on one
// key, or when the transaction is larger than the limits allow.
func (t Txn) Validate() error {
	if len(t.If) > MaxOps || len(t.Then) > MaxOps {
		return fmt.Errorf("%w: a transaction of %d conditions and %d operations; at most %d of each are allowed",
			ErrRefused, len(t.If), len(t.Then), MaxOps)
	}
	for _, c := range t.If {
		if c.Key == "" {
			return fmt.Errorf("%w: a condition on an empty key", ErrRefused)
		}
	}
	size := 0
	seen := make(map[string]bool, len(t.Then))
	for _, op := range t.Then {
		if op.Key == "" {
			return fmt.Errorf("%w: an operation on an empty key", ErrRefused)
		}
		if seen[op.Key] {
			return fmt.Errorf("%w: two operations on the key %q in one transaction", ErrRefused, op.Key)
		}
		seen[op.Key] = true
		size += len(op.Key) + len(op.Value)
	}
	if size > MaxBytes {
		return fmt.Errorf("%w: a transaction of %d bytes; at most %d are allowed", ErrRefused, size, MaxBytes)
	}
	return nil
}
