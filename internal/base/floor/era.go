package floor

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/firn-id/firn/internal/base/fresh"
	"github.com/firn-id/firn/store"
)

// EraKey is the key of the store's era. Its value is a number in decimal. Whoever finds that the store has lost data
// changes it, so that no block of a counter is claimed before an operator has looked: a floor helps only who knows the
// time. It is absent, which is era zero, until somebody has.
const EraKey = "era"

// NewEra returns the operation that changes the store's era to one that never was.
func NewEra() store.Op {
	b := fresh.Bytes()
	era := int64(binary.BigEndian.Uint64(b[:8])&math.MaxInt64 | 1)
	return store.Put(EraKey, strconv.AppendInt(nil, era, 10))
}

// ParseEra reads the value of the key; an empty one is that of an absent key.
func ParseEra(value []byte) (era int64, err error) {
	if len(value) == 0 {
		return 0, nil
	}
	if era, err = strconv.ParseInt(string(value), 10, 64); err != nil {
		return 0, fmt.Errorf("the key %q holds %.100q; want a number, which whoever notices that the store has lost "+
			"data puts there", EraKey, value)
	}
	return era, nil
}
