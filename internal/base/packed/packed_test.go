package packed_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/packed"
)

func TestWhatIsAppendedIsRead(t *testing.T) {
	ids := []firn.ID{0, 1, 0x0102030405060708, math.MaxInt64}
	b := packed.Append([]byte("x"), ids...)
	want := "x" + "\x00\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x01" +
		"\x01\x02\x03\x04\x05\x06\x07\x08" + "\x7f\xff\xff\xff\xff\xff\xff\xff"
	if string(b) != want {
		t.Fatalf("%x; want %x", b, want)
	}
	got := make([]firn.ID, len(ids))
	if err := packed.Read(got, b[1:]); err != nil || !slices.Equal(got, ids) {
		t.Errorf("%v, %v; want %v", got, err, ids)
	}
}

func TestWrongBytes(t *testing.T) {
	for want, b := range map[string][]byte{
		"0 bytes; want 16 for 2 IDs":                nil,
		"8 bytes; want 16 for 2 IDs":                make([]byte, 8),
		"15 bytes; want 16 for 2 IDs":               make([]byte, 15),
		"17 bytes; want 16 for 2 IDs":               make([]byte, 17),
		"24 bytes; want 16 for 2 IDs":               make([]byte, 24),
		"ID 2 of 2 is -1; want 0 or more":           append(make([]byte, 8), bytes.Repeat([]byte{0xff}, 8)...),
		"ID 1 of 2 is -9223372036854775808; want 0": append([]byte{0x80}, make([]byte, 15)...),
	} {
		if err := packed.Read(make([]firn.ID, 2), b); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%x: %v; want %s", b, err, want)
		}
	}
}

// What is read piece by piece is what is read at once, however little comes at a time, and so is what is wrong.
func TestReadFrom(t *testing.T) {
	const n = 20_000 // in several pieces
	want := make([]firn.ID, n)
	for i := range want {
		want[i] = firn.ID(i * i)
	}
	good, bad := packed.Append(nil, want...), packed.Append(packed.Append(nil, want[1:]...), -7)
	gone := errors.New("gone")
	for _, c := range []struct {
		r    io.Reader
		want string // empty: all IDs
	}{
		{bytes.NewReader(good), ""},
		{iotest.HalfReader(bytes.NewReader(good)), ""},
		{iotest.DataErrReader(bytes.NewReader(good)), ""},
		{bytes.NewReader(bad), "ID 20000 of 20000 is -7; want 0 or more"},
		{bytes.NewReader(good[:len(good)-1]), "159999 bytes; want 160000 for 20000 IDs: unexpected EOF"},
		{bytes.NewReader(good[:32<<10]), "32768 bytes; want 160000 for 20000 IDs: EOF"},
		{bytes.NewReader(append(good, 0)), "more than 160000 bytes; want 160000 for 20000 IDs"},
		{
			io.MultiReader(bytes.NewReader(good[:12]), iotest.ErrReader(gone)),
			"12 bytes; want 160000 for 20000 IDs: gone",
		},
		{io.MultiReader(bytes.NewReader(good), iotest.ErrReader(gone)), "gone"},
	} {
		got := make([]firn.ID, n)
		err := packed.ReadFrom(got, c.r)
		if c.want == "" && (err != nil || !slices.Equal(got, want)) {
			t.Errorf("%v, or other IDs", err)
		}
		if c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%v; want %s", err, c.want)
		}
		if strings.HasSuffix(c.want, "gone") && !errors.Is(err, gone) {
			t.Errorf("%v does not wrap the error of the reader", err)
		}
	}
	if err := packed.ReadFrom(nil, bytes.NewReader(nil)); err != nil {
		t.Errorf("none: %v", err)
	}
}
