// Package packed writes and reads IDs of 8 bytes each, big-endian, one after the other: the answers over HTTP to
// callers that accept application/octet-stream.
package packed

import (
	"encoding/binary"
	"fmt"

	"github.com/firn-id/firn"
)

// Type is the media type of packed IDs.
const Type = "application/octet-stream"

// Size is the bytes of an ID.
const Size = 8

// Append appends ids to b.
func Append(b []byte, ids ...firn.ID) []byte {
	for _, id := range ids {
		b = binary.BigEndian.AppendUint64(b, uint64(id))
	}
	return b
}

// Read fills ids from b. An error is returned when b holds more or fewer IDs, or one below zero; ids may then be filled
// in part.
func Read(ids []firn.ID, b []byte) error {
	if len(b) != len(ids)*Size {
		return fmt.Errorf("%d bytes; want %d for %d IDs", len(b), len(ids)*Size, len(ids))
	}
	for i := range ids {
		id := firn.ID(binary.BigEndian.Uint64(b[i*Size:]))
		if id < 0 {
			return fmt.Errorf("ID %d of %d is %d; want 0 or more", i+1, len(ids), int64(id))
		}
		ids[i] = id
	}
	return nil
}
