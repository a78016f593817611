// Package fresh makes names and secrets that nobody else makes: not even a copy of this process, as the snapshot of a
// virtual machine or a checkpoint is, which may go on with the same state of the system's random numbers. So each is
// made of random bits and of the nanosecond at which it was made. Everything by which a process knows itself or its
// writes again is from here. Delays and other choices that may come twice are not.
package fresh

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"os"
	"sync/atomic"
	"time"
)

var (
	began = time.Now()
	count atomic.Uint64
)

// Bytes returns 32 bytes. They are as hard to guess as those of crypto/rand. It is safe for concurrent use.
func Bytes() [32]byte {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	now := time.Now()
	return mix(random, now.UnixNano(), int64(now.Sub(began)), int64(os.Getpid()), int64(count.Add(1)))
}

// Text returns 26 of the characters A-Z and 2-7, which hold 130 bits. It is safe for concurrent use.
func Text() string {
	b := Bytes()
	return base32.StdEncoding.EncodeToString(b[:])[:26]
}

// mix returns other bytes if a single bit of what it gets is another.
func mix(random [32]byte, differs ...int64) [32]byte {
	all := random[:]
	for _, d := range differs {
		all = binary.LittleEndian.AppendUint64(all, uint64(d))
	}
	return sha256.Sum256(all)
}
