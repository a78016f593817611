package firn

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// The functions below make texts fast: they handle eight characters as the bytes of one word, or four with two
// look-ups. Those that read say only whether they can: Parse then finds out what is wrong.

// Words with a 1 in each byte, in each second, and in each fourth; times c they have c there.
const (
	bytes1 = 0x0101010101010101
	bytes2 = 0x0001000100010001
	bytes4 = 0x0000000100000001
)

// room makes place for n characters at the end of b.
const room = "                                    "

// appendDecimal appends a number in base 10.
func appendDecimal(b []byte, id ID) []byte {
	if id < 1e16 {
		return strconv.AppendInt(b, int64(id), 10)
	}
	high, low := uint64(id)/1e16, uint64(id)%1e16
	if high >= 100 {
		b = append(b, byte('0'+high/100))
	}
	if high >= 10 {
		b = append(b, byte('0'+high/10%10))
	}
	b = append(append(b, byte('0'+high%10)), room[:16]...)
	text := b[len(b)-16:]
	binary.LittleEndian.PutUint64(text, decimalText(low/1e8))
	binary.LittleEndian.PutUint64(text[8:], decimalText(low%1e8))
	return b
}

// decimalText returns the 8 digits of a number below 10^8, the first in the lowest byte. It divides by 10,000, then
// both parts by 100, and all four by 10: by a multiplication and a shift, which are exact for numbers that small.
func decimalText(n uint64) uint64 {
	n = n/10_000 + n%10_000<<32
	q := n * 10_486 >> 20 & (0x7f * bytes4)
	n = q + (n-100*q)<<16
	q = n * 103 >> 10 & (0xf * bytes2)
	n = q + (n-10*q)<<8
	return n + '0'*bytes1
}

// decimalValue returns the number of 8 digits, the first in the lowest byte, and whether they are digits. It joins
// digits to pairs, pairs to fours, and these.
func decimalValue(text uint64) (n uint64, ok bool) {
	n = text - '0'*bytes1
	ok = (n|(n+(0x80-10)*bytes1))&(0x80*bytes1) == 0
	n = 10*n + n>>8
	n = n&(0xff*bytes4)*(100+1_000_000<<32) + n>>16&(0xff*bytes4)*(1+10_000<<32)
	return n >> 32, ok
}

// quickDecimal is Parse in base 10.
func quickDecimal(s []byte) (id ID, ok bool) {
	if len(s) == 0 || len(s) > 19 || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	var n uint64
	odd := len(s) % 8
	for _, c := range s[:odd] {
		d := uint64(c) - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + d
	}
	for s = s[odd:]; len(s) >= 8; s = s[8:] {
		d, ok := decimalValue(binary.LittleEndian.Uint64(s))
		if !ok {
			return 0, false
		}
		n = n*1e8 + d
	}
	return ID(n), n <= math.MaxInt64
}

// quickChecked is Parse of a number with check digits.
func quickChecked(s []byte) (id ID, ok bool) {
	n := len(s) - 3
	if n < 0 || s[n] != '-' {
		return 0, false
	}
	id, ok = quickDecimal(s[:n])
	return id, ok && checkDigits(id) == [2]byte(s[n+1:])
}

// appendHex appends a number in base 16.
func appendHex(b []byte, n uint64) []byte {
	b = append(b, room[:16]...)
	text := b[len(b)-16:]
	binary.BigEndian.PutUint64(text, hexText(uint32(n>>32)))
	binary.BigEndian.PutUint64(text[8:], hexText(uint32(n)))
	return b
}

// hexText returns the 8 digits of a number, the first in the highest byte.
func hexText(half uint32) uint64 {
	n := uint64(half)
	n = (n | n<<16) & (0xffff * bytes4)
	n = (n | n<<8) & (0xff * bytes2)
	n = (n | n<<4) & (0xf * bytes1)
	return hexDigits(n)
}

// hexDigits returns the digit of each byte, which is at most 15.
func hexDigits(n uint64) uint64 {
	letters := (n + 6*bytes1) >> 4 & bytes1
	return n + '0'*bytes1 + ('a'-10-'0')*letters
}

// hexValue returns the number of 8 digits in lower case, the first in the highest byte. wrong is not 0 when one of them
// is no digit.
func hexValue(text uint64) (n, wrong uint64) {
	n = text&(0xf*bytes1) + text>>6&bytes1*9 // a letter counts from 1
	wrong = n&(0xf0*bytes1) | (hexDigits(n) ^ text)
	n = (n | n>>4) & (0xff * bytes2)
	n = (n | n>>8) & (0xffff * bytes4)
	return (n | n>>16) & math.MaxUint32, wrong
}

// quickHex is Parse in base 16.
func quickHex(s []byte) (id ID, ok bool) {
	if len(s) != 16 {
		return 0, false
	}
	high, wrong := hexValue(binary.BigEndian.Uint64(s))
	low, wrong2 := hexValue(binary.BigEndian.Uint64(s[8:]))
	id = ID(high<<32 | low) //nolint:gosec // when it is negative, it is not returned
	return id, wrong|wrong2 == 0 && id >= 0
}

// appendDigits appends a number in base 32, 58 or 62: the last twelve digits, of which the width leaves out some, and
// in base 32 the one before.
func (e *Encoding) appendDigits(b []byte, n uint64) []byte {
	var first uint32 // four of the twelve, and
	var rest uint64  // eight; the first is in the lowest byte
	width := 12
	switch e.base {
	case 32:
		b = append(b, e.alphabet[n>>60])
		x, y, z := split(n&(1<<60-1), 32)
		first, rest = e.four(x, 32), uint64(e.four(y, 32))|uint64(e.four(z, 32))<<32
	case 58:
		x, y, z := split(n, 58)
		first, rest = e.four(x, 58), uint64(e.four(y, 58))|uint64(e.four(z, 58))<<32
		zeros := bits.TrailingZeros32(first^'1'*bytes1&math.MaxUint32) / 8
		if zeros == 4 {
			zeros += min(bits.TrailingZeros64(rest^'1'*bytes1)/8, 7)
		}
		width -= zeros
	case 62:
		x, y, z := split(n, 62)
		first, rest = e.four(x, 62), uint64(e.four(y, 62))|uint64(e.four(z, 62))<<32
		width = 11
	}
	b = slices.Grow(b, width)
	text := b[len(b) : len(b)+width]
	if width > 8 {
		binary.LittleEndian.PutUint32(text, first>>(8*(12-width)))
		binary.LittleEndian.PutUint64(text[width-8:], rest) // and over zeros of the first
	} else {
		for i := range text {
			text[i] = byte(rest >> (8 * (8 - width + i)))
		}
	}
	return b[:len(b)+width]
}

// split cuts a number into what is above its last 8 digits, 4 digits, and 4 digits. The base is a constant where it is
// called, so that the compiler turns divisions into multiplications.
func split(n, base uint64) (x, y, z uint32) {
	four := base * base * base * base
	x, n = uint32(n/(four*four)), n%(four*four)
	return x, uint32(n / four), uint32(n % four)
}

// four returns the 4 digits of a number, the first in the lowest byte.
func (e *Encoding) four(n, base uint32) uint32 {
	return uint32(e.pairs[n/(base*base)]) | uint32(e.pairs[n%(base*base)])<<16
}

// fourValue returns the number of the first 4 digits, in a base that is a constant where it is called. wrong is at
// least foreign when one of them is no digit.
func (e *Encoding) fourValue(s []byte, base uint64) (n, wrong uint64) {
	_ = s[3]
	a, b, c, d := uint64(e.digits[s[0]]), uint64(e.digits[s[1]]), uint64(e.digits[s[2]]), uint64(e.digits[s[3]])
	return (a*base+b)*(base*base) + c*base + d, a | b | c | d
}

// quick32 is Parse in base 32.
func (e *Encoding) quick32(s []byte) (id ID, ok bool) {
	if len(s) != 13 {
		return 0, false
	}
	top := uint64(e.digits[s[0]])
	x, wrong1 := e.fourValue(s[1:5], 32)
	y, wrong2 := e.fourValue(s[5:9], 32)
	z, wrong3 := e.fourValue(s[9:13], 32)
	return ID(top<<60 | x<<40 | y<<20 | z), top < 8 && wrong1|wrong2|wrong3 < foreign
}

// quick62 is Parse in base 62.
func (e *Encoding) quick62(s []byte) (id ID, ok bool) {
	const four = 62 * 62 * 62 * 62
	if len(s) != 11 {
		return 0, false
	}
	a, b, c := uint64(e.digits[s[0]]), uint64(e.digits[s[1]]), uint64(e.digits[s[2]])
	x := (a*62+b)*62 + c
	y, wrong1 := e.fourValue(s[3:7], 62)
	z, wrong2 := e.fourValue(s[7:11], 62)
	n := x*(four*four) + y*four + z
	return ID(n), a|b|c|wrong1|wrong2 < foreign && x <= math.MaxInt64/(four*four) && n <= math.MaxInt64
}

// quick58 is Parse in base 58: it reads one digit after the other while their number is not a multiple of 4, then 4 at
// once.
func (e *Encoding) quick58(s []byte) (id ID, ok bool) {
	const four = 58 * 58 * 58 * 58
	if len(s) == 0 || len(s) > 11 || len(s) > 1 && s[0] == '1' {
		return 0, false
	}
	var n, before, wrong uint64
	odd := len(s) % 4
	for _, c := range s[:odd] {
		d := uint64(e.digits[c])
		n, wrong = n*58+d, wrong|d
	}
	for s = s[odd:]; len(s) >= 4; s = s[4:] {
		d, w := e.fourValue(s, 58)
		before, n, wrong = n, n*four+d, wrong|w
	}
	return ID(n), wrong < foreign && before <= math.MaxInt64/four && n <= math.MaxInt64
}
