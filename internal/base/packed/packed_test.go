package packed_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

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
