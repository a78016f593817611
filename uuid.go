package firn

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// UUID is a universally unique identifier, as RFC 9562 has it
// (https://www.rfc-editor.org/rfc/rfc9562). [Layout.UUID] writes an ID as one of version 7,
// for columns and programs that take nothing else.
//
// The zero value is the nil UUID, which is no ID. A UUID is comparable, and converts to and
// from the [16]byte of other packages.
type UUID [16]byte

const (
	uuidVersion = 7
	uuidVariant = 0b10
	uuidLower   = 62 // bits of the ID in the lower half of the UUID; one is in the upper half
	uuidTags    = 1<<11 - 1
	uuidEnd     = 1 << 48 // the first Unix millisecond for which there is no UUID, in the year 10889
)

// UUID writes an ID of the layout as a UUID of version 7: its time in Unix milliseconds,
// and the ID itself in the bits that the version leaves free, behind a tag, which is 0.
//
//	unix_ms 48 | version 4 | tag 11 | ID, upper 1 | variant 2 | ID, lower 62
//
// The UUIDs of one layout and tag sort like the IDs, byte by byte and as text. They are
// unique where the IDs are, in their sequencer, and not by chance: there is nothing random
// in them. [UUID.Tagged] tells those of several sequencers apart. [Layout.FromUUID] returns
// the ID.
//
// It returns an error when the ID is not one of the layout, or when its time is in the year
// 10889 or later, for which UUIDs have no bits.
func (l Layout) UUID(id ID) (u UUID, err error) {
	at, err := l.Time(id)
	if err != nil {
		return u, err
	}
	if at.Unix() >= uuidEnd/1000 {
		return u, fmt.Errorf("%d has no UUID: its time %s is too late; want one before the year 10889", id, stamp(at))
	}
	binary.BigEndian.PutUint64(u[:8], uint64(at.UnixMilli())<<16|uuidVersion<<12|uint64(id)>>uuidLower)
	binary.BigEndian.PutUint64(u[8:], uuidVariant<<uuidLower|uint64(id)&(1<<uuidLower-1))
	return u, nil
}

// Tagged returns u with the tag of a sequencer's name, in place of any other: so the UUIDs of
// two sequencers differ even where their IDs are equal, unless their names have one tag, as
// one pair of names in 2047 has. The tag is 1 more than the name's hash FNV-1a of 32 bits
// (https://datatracker.ietf.org/doc/draft-eastlake-fnv) modulo 2047. It is 0 for the empty
// name, and for "default", which is that of the sequencer of calls that name none.
func (u UUID) Tagged(sequencer string) UUID {
	upper := binary.BigEndian.Uint64(u[:8]) &^ (uuidTags << 1)
	if sequencer != "" && sequencer != "default" {
		hash := uint32(2166136261)
		for i := range len(sequencer) {
			hash = (hash ^ uint32(sequencer[i])) * 16777619
		}
		upper |= uint64(1+hash%uuidTags) << 1
	}
	binary.BigEndian.PutUint64(u[:8], upper)
	return u
}

// FromUUID returns the ID that [Layout.UUID] wrote as u, whatever its tag. It returns a
// [*ParseError] for any other UUID: of another version or variant, made by another program,
// or with another layout.
func (l Layout) FromUUID(u UUID) (ID, error) {
	upper, lower := binary.BigEndian.Uint64(u[:8]), binary.BigEndian.Uint64(u[8:])
	id := ID(upper&1<<uuidLower | lower&(1<<uuidLower-1))
	if version, variant := upper>>12&0xf, lower>>uuidLower; version != uuidVersion || variant != uuidVariant {
		return 0, reject("UUID", u.String(), "it has version %d and variant %02b; want 7 and 10", version, variant)
	}
	if want, err := l.UUID(id); err != nil {
		return 0, reject("UUID", u.String(), "%v", err)
	} else if want != u.Tagged("") {
		return 0, reject("UUID", u.String(),
			"another program or layout made it: its time is not that of its ID %d in the layout %v; want %v",
			id, l, want)
	}
	return id, nil
}

// ParseUUID reads a UUID of any version from 32 hex digits, in either case, with hyphens
// before the 9th, 13th, 17th and 21st. It reads the other usual texts of a UUID, too: the
// digits without hyphens, and the text with hyphens in braces or behind "urn:uuid:". It
// returns a [*ParseError] for anything else.
func ParseUUID(s string) (u UUID, err error) {
	err = u.UnmarshalText([]byte(s))
	return u, err
}

// String returns the text with hyphens, in lower case.
func (u UUID) String() string { return string(u.append(nil)) }

// AppendText implements [encoding.TextAppender]: it appends the text that String returns.
// The error is nil.
func (u UUID) AppendText(b []byte) ([]byte, error) { return u.append(b), nil }

// MarshalText implements [encoding.TextMarshaler]. The error is nil.
func (u UUID) MarshalText() ([]byte, error) { return u.append(nil), nil }

func (u UUID) append(b []byte) []byte {
	b = append(b, room[:36]...)
	t := (*[36]byte)(b[len(b)-36:])
	t[8], t[13], t[18], t[23] = '-', '-', '-', '-'
	pair := func(at int, c byte) { binary.LittleEndian.PutUint16(t[at:], hexPairs[c]) }
	pair(0, u[0])
	pair(2, u[1])
	pair(4, u[2])
	pair(6, u[3])
	pair(9, u[4])
	pair(11, u[5])
	pair(14, u[6])
	pair(16, u[7])
	pair(19, u[8])
	pair(21, u[9])
	pair(24, u[10])
	pair(26, u[11])
	pair(28, u[12])
	pair(30, u[13])
	pair(32, u[14])
	pair(34, u[15])
	return b
}

// hexPairs has the two hex digits of each byte, the first in the lower byte.
var hexPairs = func() (pairs [256]uint16) {
	for i := range pairs {
		pairs[i] = binary.LittleEndian.Uint16(hex.AppendEncode(nil, []byte{byte(i)}))
	}
	return pairs
}()

// hyphens has the places of the hyphens in the text of a UUID.
var hyphens = [...]int{8, 13, 18, 23}

// UnmarshalText implements [encoding.TextUnmarshaler]: it reads what [ParseUUID] reads. For
// anything else it returns a [*ParseError] and does not change u.
func (u *UUID) UnmarshalText(text []byte) error {
	const want = "want 36 characters such as 01a1fc23-5529-7000-81a1-522b4a720005"
	var a, b, c, d uint64 // 8 digits in each
	if len(text) == 32 {
		a, b = binary.BigEndian.Uint64(text), binary.BigEndian.Uint64(text[8:])
		c, d = binary.BigEndian.Uint64(text[16:]), binary.BigEndian.Uint64(text[24:])
	} else {
		at := 0 // where the text with hyphens begins
		switch n := len(text); {
		case n == 36:
		case n == 45 && strings.EqualFold(string(text[:9]), "urn:uuid:"):
			at = 9
		case n == 38 && text[0] == '{' && text[37] == '}':
			at = 1
		default:
			return reject("UUID", text, "it has %d bytes; %s", n, want)
		}
		t := text[at : at+36]
		if (t[8]^'-')|(t[13]^'-')|(t[18]^'-')|(t[23]^'-') != 0 {
			i := slices.IndexFunc(hyphens[:], func(i int) bool { return t[i] != '-' })
			return reject("UUID", text, "it has no hyphen at byte %d; %s", at+hyphens[i], want)
		}
		a, d = binary.BigEndian.Uint64(t), binary.BigEndian.Uint64(t[28:])
		b = uint64(binary.BigEndian.Uint32(t[9:]))<<32 | uint64(binary.BigEndian.Uint32(t[14:]))
		c = uint64(binary.BigEndian.Uint32(t[19:]))<<32 | uint64(binary.BigEndian.Uint32(t[24:]))
	}
	a, wrongA := hexValue(lower(a))
	b, wrongB := hexValue(lower(b))
	c, wrongC := hexValue(lower(c))
	d, wrongD := hexValue(lower(d))
	if wrongA|wrongB|wrongC|wrongD != 0 {
		return reject("UUID", text, "it has a character that is not a hex digit; %s", want)
	}
	binary.BigEndian.PutUint64(u[:8], a<<32|b)
	binary.BigEndian.PutUint64(u[8:], c<<32|d)
	return nil
}

// lower returns 8 characters with letters in lower case. What is no letter stays a character that is no hex digit.
func lower(text uint64) uint64 { return text | text>>1&(0x20*bytes1) }
