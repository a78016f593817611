// Package packed writes and reads IDs of 8 bytes each, big-endian, one after the other: the answers over HTTP to
// callers that accept application/octet-stream.
package packed

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/firn-id/firn"
)

// Type is the media type of packed IDs.
const Type = "application/octet-stream"

// Size is the bytes of an ID.
const Size = 8

// piece is how many bytes ReadFrom reads at once.
const piece = 32 << 10

// Append appends ids to b.
func Append(b []byte, ids ...firn.ID) []byte {
	b = slices.Grow(b, len(ids)*Size)
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
	return fill(ids, 0, b)
}

// ReadFrom is Read of all that r holds, piece by piece. It returns an error of r, too.
func ReadFrom(ids []firn.ID, r io.Reader) error {
	size := len(ids) * Size
	b := make([]byte, min(max(size, 1), piece))
	for done := 0; done < size; {
		n, err := io.ReadFull(r, b[:min(size-done, piece)])
		if err != nil {
			return fmt.Errorf("%d bytes; want %d for %d IDs: %w", done+n, size, len(ids), err)
		}
		if err := fill(ids, done/Size, b[:n]); err != nil {
			return err
		}
		done += n
	}
	switch n, err := io.ReadFull(r, b[:1]); {
	case n > 0:
		return fmt.Errorf("more than %d bytes; want %[1]d for %d IDs", size, len(ids))
	case err != io.EOF:
		return err
	}
	return nil
}

// fill fills ids, from the index at on, from b.
func fill(ids []firn.ID, at int, b []byte) error {
	for ; len(b) >= Size; b = b[Size:] {
		id := firn.ID(binary.BigEndian.Uint64(b))
		if id < 0 {
			return fmt.Errorf("ID %d of %d is %d; want 0 or more", at+1, len(ids), int64(id))
		}
		ids[at] = id
		at++
	}
	return nil
}
