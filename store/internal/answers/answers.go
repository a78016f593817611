// Package answers checks the answers of a service, for every store. A service may be wrong, or somebody else may answer
// in its place: so each store checks the shape of what it reads before it uses it, and takes no more memory than this.
package answers

import (
	"fmt"
	"strings"

	"github.com/firn-id/firn/store"
)

// Max is how many bytes a client takes in answer to one call. It is the memory of some hundred thousand keys.
const Max = 32 << 20

// Keys returns an error unless these are keys that a list of a prefix can have: present, in ascending order, each once.
func Keys(prefix string, kvs []store.KV) error {
	for i, kv := range kvs {
		switch {
		case !strings.HasPrefix(kv.Key, prefix):
			return fmt.Errorf("the service answers the key %.80q; want one that begins with %q", kv.Key, prefix)
		case kv.Version <= 0:
			return fmt.Errorf("the service answers version %d of %.80q; want one above zero", kv.Version, kv.Key)
		case i > 0 && kv.Key <= kvs[i-1].Key:
			return fmt.Errorf("the service answers the key %.80q after %.80q; want them in order, each once",
				kv.Key, kvs[i-1].Key)
		}
	}
	return nil
}

// Batch returns an error unless a batch can follow a position of a log.
func Batch(after store.Position, b store.Batch) error {
	if c := b.Checkpoint; c != nil {
		if c.Position <= after {
			return fmt.Errorf("the service answers a checkpoint at %d; want one after %d", c.Position, after)
		}
		after = c.Position
	}
	for _, e := range b.Entries {
		if e.Position <= after {
			return fmt.Errorf("the service answers an entry at %d; want one after %d", e.Position, after)
		}
		after = e.Position
	}
	return nil
}
