package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// errShort is the error of a record that ends too early.
var errShort = errors.New("the server's answer ends too early")

// writer appends records in ZooKeeper's format, jute: big-endian numbers, and lengths before what has one.
type writer struct{ buf []byte }

func (w *writer) int(n int32)  { w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(n)) }
func (w *writer) long(n int64) { w.buf = binary.BigEndian.AppendUint64(w.buf, uint64(n)) }

func (w *writer) bool(b bool) {
	if b {
		w.buf = append(w.buf, 1)
	} else {
		w.buf = append(w.buf, 0)
	}
}

func (w *writer) bytes(b []byte) {
	w.int(int32(len(b)))
	w.buf = append(w.buf, b...)
}

func (w *writer) string(s string) {
	w.int(int32(len(s)))
	w.buf = append(w.buf, s...)
}

// reader takes records apart. After the first error everything is zero, and err says why.
type reader struct {
	buf []byte
	err error
}

// fail notes what is wrong, unless something was wrong before.
func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("the server answers "+format, args...)
	}
}

// take returns the next n bytes.
func (r *reader) take(n int) []byte {
	if r.err == nil && (n < 0 || n > len(r.buf)) {
		r.err = errShort
	}
	if r.err != nil {
		return nil
	}
	taken := r.buf[:n:n]
	r.buf = r.buf[n:]
	return taken
}

func (r *reader) int() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) long() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *reader) bool() bool {
	b := r.take(1)
	return b != nil && b[0] != 0
}

// bytes returns what shares the answer's memory; nil where the server wrote no bytes at all.
func (r *reader) bytes() []byte {
	n := r.int()
	if n < -1 {
		r.fail("a length of %d; want -1 or more", n)
	}
	if n < 0 {
		return nil
	}
	return r.take(int(n))
}

func (r *reader) string() string { return string(r.bytes()) }

// maxNames is how many names one list may have. In memory each takes 16 bytes more than its text.
const maxNames = 1 << 20

func (r *reader) strings() []string {
	n := int(r.int())
	switch {
	case n < -1 || n > maxNames:
		r.fail("a list of %d names; want at most %d", n, maxNames)
	case n > len(r.buf)/4: // each has its length, at least
		r.fail("a list of %d names in %d bytes", n, len(r.buf))
	}
	if r.err != nil || n <= 0 {
		return nil
	}
	all := make([]string, n)
	for i := range all {
		all[i] = r.string()
	}
	return all
}
