package keyring

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"io"
	"slices"
)

// MACSize is how many bytes the authentication codes have that MACs makes: one for each key that a file can have.
const MACSize = MaxKeys * sha256.Size

// MACs makes codes over what is written to it, by which the owners of a key, and nobody else, know that they wrote it.
type MACs struct {
	io.Writer
	codes []hash.Hash
}

// MACs returns one for the keys of machines. That of keys for clients, and of none, makes and knows no code.
func (keys Keys) MACs() *MACs {
	m := &MACs{Writer: io.Discard}
	var all []io.Writer
	for _, k := range keys {
		if !k.IsClient() {
			code := hmac.New(sha256.New, k.derive("backups", sha256.Size))
			m.codes, all = append(m.codes, code), append(all, code)
		}
	}
	m.Writer = io.MultiWriter(all...)
	return m
}

// MACs returns those of the ring's keys.
func (r *Ring) MACs() *MACs { return r.keys.MACs() }

// Sum returns the codes, MACSize bytes; zeros in place of those that there are not.
func (m *MACs) Sum() []byte {
	sum := make([]byte, 0, MACSize)
	for _, code := range m.codes {
		sum = code.Sum(sum)
	}
	return sum[:MACSize]
}

// Know reports whether one of the keys has made one of the codes.
func (m *MACs) Know(sum []byte) bool {
	for _, code := range m.codes {
		mine := code.Sum(nil)
		for theirs := range slices.Chunk(sum, sha256.Size) {
			if hmac.Equal(mine, theirs) {
				return true
			}
		}
	}
	return false
}
