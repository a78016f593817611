package keyring

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/base/fresh"
)

// Key is a secret that the machines of a quorum share, or the one for their clients that follows from it. Whoever has a
// machine's can do everything to the quorum. The zero value is not a key: NewKey, ForClients and Parse make one.
type Key struct {
	since  int64 // seconds since 1970, at least 0
	secret [secretSize]byte

	// machines, of a client's key, is the public key by which it knows the machines. Zero: this is a machine's key.
	machines [ed25519.PublicKeySize]byte
}

const (
	secretSize   = 32
	checksumSize = 3 // with it the text needs no padding, and one typing error in 16 million is missed
	prefix       = "firn1-"
	forClients   = "client-" // follows in a client's key
	textSize     = 200       // more than any key's text has
)

var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewKey makes a key for a cluster that does not exist before now, to the second.
func NewKey(now time.Time) Key {
	return Key{since: max(0, now.Unix()), secret: fresh.Bytes()}
}

// ForClients returns the key for clients: machines that have k admit them, and know them for clients. It tells nothing
// of k that would make a machine of its owner. That of a client's key is the same.
func (k Key) ForClients() Key {
	if k.IsClient() {
		return k
	}
	c := Key{since: k.since}
	copy(c.secret[:], k.derive("authority of clients", secretSize))
	copy(c.machines[:], k.public())
	return c
}

// IsClient reports whether this is a key for clients.
func (k Key) IsClient() bool { return k.machines != [ed25519.PublicKeySize]byte{} }

// String returns the text by which people pass the key on. It is the secret itself: it must not be logged.
func (k Key) String() string {
	return k.begin() + letters.EncodeToString(append(k.data(), k.checksum()...))
}

// begin is how the text begins: what is not secret.
func (k Key) begin() string {
	kind := ""
	if k.IsClient() {
		kind = forClients
	}
	return prefix + kind + strconv.FormatInt(k.since, 16) + "-"
}

// data is what else the text has, but for the checksum.
func (k Key) data() []byte {
	data := slices.Clone(k.secret[:])
	if k.IsClient() {
		data = append(data, k.machines[:]...)
	}
	return data
}

func (k Key) checksum() []byte {
	sum := sha256.Sum256(append([]byte(k.begin()), k.data()...))
	return sum[:checksumSize]
}

// Fingerprint returns 8 hexadecimal digits that tell keys apart and reveal nothing of them. A client's key has that of
// the machines' key.
func (k Key) Fingerprint() string {
	sum := sha256.Sum256(k.public())
	return hex.EncodeToString(sum[:4])
}

// public is the public key by which a machine with the key is known.
func (k Key) public() ed25519.PublicKey {
	if k.IsClient() {
		return k.machines[:]
	}
	return k.signer().Public().(ed25519.PublicKey)
}

// signer is the key pair of the authority that whoever has the key can be.
func (k Key) signer() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(k.derive("certificate authority", ed25519.SeedSize))
}

// derive returns bytes for one use. The key's time takes part, so that all who have the same key know the same time.
func (k Key) derive(use string, size int) []byte {
	b, err := hkdf.Key(sha256.New, k.secret[:], nil, "firn quorum: "+use+": "+strconv.FormatInt(k.since, 16), size)
	if err != nil {
		panic(err) // the size is ours
	}
	return b
}

// Parse reads the text of a key. Its errors do not contain the text.
func Parse(text string) (Key, error) {
	rest, ok := strings.CutPrefix(text, prefix)
	rest, client := strings.CutPrefix(rest, forClients)
	size := secretSize
	if client {
		size += ed25519.PublicKeySize
	}
	since, encoded, ok2 := strings.Cut(rest, "-")
	if !ok || !ok2 || len(text) > textSize {
		return Key{},
			fmt.Errorf("not a key; want %s, a time, a hyphen and 56 letters or digits, as firn quorum key prints it, "+
				"or one for clients", prefix)
	}
	if want := letters.EncodedLen(size + checksumSize); len(encoded) != want {
		return Key{},
			fmt.Errorf("the key has %d characters after its last hyphen; want %d: is it complete?", len(encoded), want)
	}
	var k Key
	seconds, err := strconv.ParseInt(since, 16, 64)
	data, err2 := letters.DecodeString(encoded)
	short := len(data) < size+checksumSize // the decoder passes over line breaks
	if err != nil || err2 != nil || short || seconds < 0 || seconds > lastSecond {
		return Key{}, errMistyped
	}
	k.since = seconds
	copy(k.secret[:], data)
	copy(k.machines[:], data[secretSize:size])
	if !bytes.Equal(data[size:], k.checksum()) || k.String() != text { // such as leading zeros
		return Key{}, errMistyped
	}
	return k, nil
}

var errMistyped = errors.New("the key is mistyped: its checksum is wrong; want it as firn quorum key printed it")

// Keys are 1 to MaxKeys keys, of which any one admits a machine. Those that a cluster has before and after a change
// of keys stand side by side in the file of each machine for a while.
type Keys []Key

// MaxKeys is how many keys a file has at most.
const MaxKeys = 4

// ParseFile reads the contents of a file of keys: one in each line, between empty lines and lines that begin with #.
// Its errors do not contain what is in the file.
func ParseFile(text []byte) (Keys, error) {
	var keys Keys
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		k, err := Parse(line)
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", number, err)
		case slices.Contains(keys, k):
			return nil, fmt.Errorf("line %d: key %s is there twice; want it once", number, k.Fingerprint())
		case len(keys) > 0 && keys[0].IsClient() != k.IsClient():
			return nil, fmt.Errorf("line %d: one key is for machines and another for clients; want one kind", number)
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 || len(keys) > MaxKeys {
		return nil, fmt.Errorf("%d keys; want 1 to %d, one in each line, as firn quorum key prints them",
			len(keys), MaxKeys)
	}
	return keys, nil
}

// Since returns when the oldest of the keys was made: before that, there was no cluster with any of them. It is zero
// without keys.
func (keys Keys) Since() time.Time {
	if len(keys) == 0 {
		return time.Time{}
	}
	oldest := int64(math.MaxInt64)
	for _, k := range keys {
		oldest = min(oldest, k.since)
	}
	return time.Unix(oldest, 0).UTC()
}

// Fingerprints returns those of the keys, for people.
func (keys Keys) Fingerprints() string {
	all := make([]string, len(keys))
	for i, k := range keys {
		all[i] = k.Fingerprint()
	}
	return strings.Join(all, ", ")
}

// ForClients returns the keys for clients, one for each.
func (keys Keys) ForClients() Keys {
	all := make(Keys, len(keys))
	for i, k := range keys {
		all[i] = k.ForClients()
	}
	return all
}

// IsClient reports whether the keys are those of a client.
func (keys Keys) IsClient() bool { return len(keys) > 0 && keys[0].IsClient() }

// Another returns one more key for the cluster that has these. Its time is that of the oldest: the cluster is no
// younger when its former keys are gone.
func (keys Keys) Another() Key { return NewKey(keys.Since()) }
