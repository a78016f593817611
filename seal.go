package firn

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"sync"
)

// Sealer encrypts IDs that strangers see, under a secret key: a sealed ID looks like a
// random number of 63 bits, and only the key opens it again.
//
// It hides when and where an ID was made, which of two is older, how many there are,
// and what the next one will be. It does not hide that two IDs are equal: under one
// key an ID always has the same seal. It does not authenticate: every number opens to
// some ID, so an opened number that somebody made up may by luck name something.
// Always check permissions.
//
// Sealed IDs do not sort by time, and nobody can open them without the key. Store the
// ID, and seal it on the way out.
//
// It is FF1, format-preserving encryption with AES, of NIST Special Publication
// 800-38G (https://doi.org/10.6028/NIST.SP.800-38G, algorithms 7 and 8), on
// numerals of 63 bits: radix 2, the most significant bit first. The tweak is empty
// unless [Sealer.WithTweak] gives one.
//
// [NewSealer] makes a Sealer; the zero value does not work. It is safe for concurrent
// use.
type Sealer struct {
	block cipher.Block

	// last is the input of the last encryption of a round but for what differs from
	// round to round: see round.
	last [aes.BlockSize]byte
}

// The halves that FF1 cuts a numeral into, in bits: A, the upper, and B, the lower.
// Every round replaces one of them, in turn.
const (
	upperBits = 31
	lowerBits = 32
	rounds    = 10
)

// buffer has what a round encrypts, and what comes out.
type buffer struct{ in, out [aes.BlockSize]byte }

// buffers holds those of the rounds. Without it every call would allocate one,
// because cipher.Block is an interface.
var buffers = sync.Pool{New: func() any { return new(buffer) }}

// NewSealer returns a Sealer with an AES key of 16, 24 or 32 random bytes, which it
// copies. Another key opens other IDs, so the key must not change once strangers have
// sealed IDs. It returns an error when the key has another length.
func NewSealer(key []byte) (*Sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("the key of a sealer has %d bytes; want 16, 24 or 32", len(key))
	}
	return (&Sealer{block: block}).WithTweak(nil), nil
}

// WithTweak returns a Sealer with the same key and another tweak: a text that need not be
// secret, such as the name of what the IDs belong to. Under each tweak an ID has another
// seal, so that strangers can't tell whether seals under two tweaks hide the same number. A
// seal also opens under another tweak, to an ID by chance. An empty tweak is that of
// [NewSealer].
//
// The tweak has at most 2^32-1 bytes. Its length does not matter to the speed of Seal and
// Open.
func (s *Sealer) WithTweak(tweak []byte) *Sealer {
	p := [aes.BlockSize]byte{
		1, 2, 1, // version, method, addition
		0, 0, 2, // radix
		rounds, upperBits,
		0, 0, 0, upperBits + lowerBits,
	}
	binary.BigEndian.PutUint32(p[12:], uint32(len(tweak)))

	// Q is the tweak and zeros before the 5 bytes that differ from round to round.
	q := make([]byte, (len(tweak)+5+aes.BlockSize-1)/aes.BlockSize*aes.BlockSize)
	copy(q, tweak)

	t := &Sealer{block: s.block}
	s.block.Encrypt(t.last[:], p[:])
	for len(q) > 0 {
		subtle.XORBytes(t.last[:], t.last[:], q[:aes.BlockSize])
		if q = q[aes.BlockSize:]; len(q) > 0 {
			s.block.Encrypt(t.last[:], t.last[:])
		}
	}
	return t
}

// Seal encrypts an ID. A negative number is not an ID and is returned unchanged.
func (s *Sealer) Seal(id ID) ID {
	if id < 0 {
		return id
	}
	a, b := uint64(id)>>lowerBits, uint64(id)&(1<<lowerBits-1)
	buf := buffers.Get().(*buffer)
	buf.in = s.last
	end := binary.BigEndian.Uint64(buf.in[8:])
	for i := range uint64(rounds) {
		a, b = b, (a+s.round(buf, end^i<<lowerBits^b))&half(i)
	}
	buffers.Put(buf)
	return ID(a<<lowerBits | b)
}

// Open undoes [Sealer.Seal]: under the same key Open(Seal(id)) is id. A negative
// number is not an ID and is returned unchanged.
func (s *Sealer) Open(id ID) ID {
	if id < 0 {
		return id
	}
	a, b := uint64(id)>>lowerBits, uint64(id)&(1<<lowerBits-1)
	buf := buffers.Get().(*buffer)
	buf.in = s.last
	end := binary.BigEndian.Uint64(buf.in[8:])
	for i := uint64(rounds); i > 0; {
		i--
		a, b = (b-s.round(buf, end^i<<lowerBits^a))&half(i), a
	}
	buffers.Put(buf)
	return ID(a<<lowerBits | b)
}

// half is the mask of the half that round i replaces.
func half(i uint64) uint64 {
	if i%2 == 0 {
		return 1<<upperBits - 1
	}
	return 1<<lowerBits - 1
}

// round is the pseudorandom number of round i for the half b, which FF1 calls y: the
// first 8 bytes of the CBC-MAC of the blocks P and Q. P and all blocks of Q but the last
// depend only on the format and the tweak. The last one, and so buf.in, ends with the 8
// bytes that are given here:
//
//	byte  0                       11   12 to 15
//	     +------------------------+----+-------------------+
//	     | end of the tweak, or 0 |  i | b, big-endian     |
//	     +------------------------+----+-------------------+
func (s *Sealer) round(buf *buffer, end uint64) uint64 {
	binary.BigEndian.PutUint64(buf.in[8:], end) // in one piece, for which AES waits less than for several
	s.block.Encrypt(buf.out[:], buf.in[:])
	return binary.BigEndian.Uint64(buf.out[:8])
}
