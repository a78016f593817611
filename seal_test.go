package firn

import (
	"crypto/aes"
	"encoding/hex"
	"math/big"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// dumbFF1 encrypts numerals by FF1, line by line as NIST SP 800-38G has it
// (algorithm 7), in any radix.
func dumbFF1(t *testing.T, key, tweak []byte, radix int, x []int) []int {
	t.Helper()
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	num := func(digits []int) *big.Int {
		n := new(big.Int)
		for _, d := range digits {
			n.Mul(n, big.NewInt(int64(radix))).Add(n, big.NewInt(int64(d)))
		}
		return n
	}
	str := func(m int, n *big.Int) []int {
		n = new(big.Int).Set(n)
		digits := make([]int, m)
		for i := m - 1; i >= 0; i-- {
			d := new(big.Int)
			n.DivMod(n, big.NewInt(int64(radix)), d)
			digits[i] = int(d.Int64())
		}
		return digits
	}
	power := func(m int) *big.Int {
		return new(big.Int).Exp(big.NewInt(int64(radix)), big.NewInt(int64(m)), nil)
	}
	bigEndian := func(n, width int) []byte {
		return new(big.Int).SetInt64(int64(n)).FillBytes(make([]byte, width))
	}

	// Steps 1 and 2: the halves. Step 3: the bytes of the lower one. Step 4: the
	// bytes of y. Step 5: P.
	n := len(x)
	u := n / 2
	v := n - u
	a, b := x[:u], x[u:]
	width := (new(big.Int).Sub(power(v), big.NewInt(1)).BitLen() + 7) / 8
	d := 4*((width+3)/4) + 4
	p := append([]byte{1, 2, 1}, bigEndian(radix, 3)...)
	p = append(append(p, 10, byte(u)), bigEndian(n, 4)...)
	p = append(p, bigEndian(len(tweak), 4)...)

	for i := range 10 { // step 6
		// i: Q.
		q := append([]byte{}, tweak...)
		for (len(q)+1+width)%16 != 0 {
			q = append(q, 0)
		}
		q = append(append(q, byte(i)), num(b).FillBytes(make([]byte, width))...)

		// ii: R is the CBC-MAC of P and Q.
		r := make([]byte, 16)
		for pq := append(append([]byte{}, p...), q...); len(pq) > 0; pq = pq[16:] {
			for j := range r {
				r[j] ^= pq[j]
			}
			block.Encrypt(r, r)
		}

		// iii: S is R, continued in counter mode.
		s := append([]byte{}, r...)
		for j := 1; len(s) < d; j++ {
			next := bigEndian(j, 16)
			for k := range next {
				next[k] ^= r[k]
			}
			block.Encrypt(next, next)
			s = append(s, next...)
		}

		// iv to ix.
		y := new(big.Int).SetBytes(s[:d])
		m := []int{u, v}[i%2]
		c := new(big.Int).Add(num(a), y)
		c.Mod(c, power(m))
		a, b = b, str(m, c)
	}
	return append(append([]int{}, a...), b...)
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDumbFF1AgreesWithNIST runs the samples that NIST published with SP 800-38G
// (FF1samples.pdf), all nine.
func TestDumbFF1AgreesWithNIST(t *testing.T) {
	const (
		alphabet = "0123456789abcdefghijklmnopqrstuvwxyz"
		aes128   = "2B7E151628AED2A6ABF7158809CF4F3C"
		aes192   = "2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F"
		aes256   = "2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F7F036D6F04FC6A94"
		ten      = "39383736353433323130"
		eleven   = "3737373770717273373737"
	)
	tests := []struct {
		key, tweak  string
		radix       int
		plain, want string
	}{
		{aes128, "", 10, "0123456789", "2433477484"},
		{aes128, ten, 10, "0123456789", "6124200773"},
		{aes128, eleven, 36, "0123456789abcdefghi", "a9tv40mll9kdu509eum"},
		{aes192, "", 10, "0123456789", "2830668132"},
		{aes192, ten, 10, "0123456789", "2496655549"},
		{aes192, eleven, 36, "0123456789abcdefghi", "xbj3kv35jrawxv32ysr"},
		{aes256, "", 10, "0123456789", "6657667009"},
		{aes256, ten, 10, "0123456789", "1001623463"},
		{aes256, eleven, 36, "0123456789abcdefghi", "xs8a0azh2avyalyzuwd"},
	}
	for i, tt := range tests {
		var x []int
		for _, c := range tt.plain {
			x = append(x, strings.IndexRune(alphabet, c))
		}
		var text []byte
		for _, d := range dumbFF1(t, unhex(t, tt.key), unhex(t, tt.tweak), tt.radix, x) {
			text = append(text, alphabet[d])
		}
		if got := string(text); got != tt.want {
			t.Errorf("sample %d: %s is encrypted as %s, want %s", i+1, tt.plain, got, tt.want)
		}
	}
}

func TestSealAgreesWithDumbFF1(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 100 {
		key := make([]byte, []int{16, 24, 32}[i%3])
		for j := range key {
			key[j] = byte(rng.Uint32())
		}
		s, err := NewSealer(key)
		if err != nil {
			t.Fatal(err)
		}
		var tweak []byte // empty first, then of every length up to several blocks
		for range i {
			tweak = append(tweak, byte(rng.Uint32()))
		}
		if i > 0 {
			s = s.WithTweak([]byte("another")).WithTweak(tweak)
		}
		for _, id := range []ID{0, 1, MaxID, ID(rng.Int64()), ID(rng.Int64N(1 << 32))} {
			x := make([]int, 63)
			for j := range x {
				x[j] = int(id >> (62 - j) & 1)
			}
			var want ID
			for _, bit := range dumbFF1(t, key, tweak, 2, x) {
				want = want<<1 | ID(bit)
			}
			if got := s.Seal(id); got != want {
				t.Fatalf("under %x and the tweak %x Seal(%d) = %d, want %d", key, tweak, id, got, want)
			}
			if got := s.Open(want); got != id {
				t.Fatalf("under %x and the tweak %x Open(%d) = %d, want %d", key, tweak, want, got, id)
			}
		}
	}
}

// testSealer is the sealer of NIST's AES-128 key.
func testSealer(t testing.TB) *Sealer {
	s, err := NewSealer([]byte("\x2b\x7e\x15\x16\x28\xae\xd2\xa6\xab\xf7\x15\x88\x09\xcf\x4f\x3c"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSealNeverChanges holds the numbers that strangers have written down.
func TestSealNeverChanges(t *testing.T) {
	tests := []struct{ id, want ID }{
		{0, 7407393923982924685},
		{1, 967355656107369710},
		{1541815603606036480, 3946301473427649872},
		{MaxID, 3989821467963092630},
	}
	s := testSealer(t)
	for _, tt := range tests {
		if got := s.Seal(tt.id); got != tt.want {
			t.Errorf("Seal(%d) = %d, want %d", tt.id, got, tt.want)
		}
		if got := s.WithTweak([]byte("orders")).WithTweak(nil).Seal(tt.id); got != tt.want {
			t.Errorf("Seal(%d) with an empty tweak = %d, want %d", tt.id, got, tt.want)
		}
	}
}

// Under the tweaks of two sequencers an ID has two seals, and the seal of one opens to another ID under the other.
func TestTweaksTellSealsApart(t *testing.T) {
	plain := testSealer(t)
	orders, invoices := plain.WithTweak([]byte("orders")), plain.WithTweak([]byte("invoices"))
	for id := range ID(1000) {
		a, b, c := plain.Seal(id), orders.Seal(id), invoices.Seal(id)
		if a == b || b == c || a == c {
			t.Errorf("%d has the seals %d, %d and %d; want three", id, a, b, c)
		}
		if got := invoices.Open(b); got == id {
			t.Errorf("%d, the seal of %d under one tweak, opens under another", b, id)
		}
		if got := orders.Open(b); got != id {
			t.Errorf("%d opens to %d, want %d", b, got, id)
		}
	}
}

func TestSealerCopiesTheTweak(t *testing.T) {
	tweak := []byte("orders")
	s := testSealer(t).WithTweak(tweak)
	before := s.Seal(1)
	tweak[0] = 'x'
	if after := s.Seal(1); after != before {
		t.Errorf("Seal(1) is %d, and %d after the caller changed its tweak", before, after)
	}
}

func TestNewSealerRejectsKeysOfAnotherLength(t *testing.T) {
	for _, n := range []int{0, 1, 8, 15, 17, 31, 33, 64} {
		s, err := NewSealer(make([]byte, n))
		if s != nil || err == nil || !strings.Contains(err.Error(), "want 16, 24 or 32") {
			t.Errorf("a key of %d bytes gives %v, %v", n, s, err)
		}
	}
}

func TestNewSealerCopiesTheKey(t *testing.T) {
	key := make([]byte, 16)
	s, err := NewSealer(key)
	if err != nil {
		t.Fatal(err)
	}
	before := s.Seal(1)
	key[0] = 1
	if after := s.Seal(1); after != before {
		t.Errorf("Seal(1) is %d, and %d after the caller changed its key", before, after)
	}
}

// TestSealerIsSafeForConcurrentUse means something under the race detector.
func TestSealerIsSafeForConcurrentUse(t *testing.T) {
	s := testSealer(t)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 500 {
				id := ID(i*4 + g)
				if got := s.Open(s.Seal(id)); got != id {
					t.Errorf("Open(Seal(%d)) = %d", id, got)
				}
			}
		})
	}
	wg.Wait()
}

func TestSealDoesNotAllocate(t *testing.T) {
	s := testSealer(t).WithTweak([]byte("a tweak that does not fit into one block"))
	if n := testing.AllocsPerRun(100, func() { s.Open(s.Seal(7)) }); n != 0 {
		t.Errorf("Seal and Open allocate %v times, want 0", n)
	}
}

func FuzzSeal(f *testing.F) {
	for _, id := range []ID{0, 1, 1 << 31, 1 << 32, MaxID, -1, -MaxID - 1} {
		f.Add(int64(id))
	}
	sealer := testSealer(f).WithTweak([]byte("orders"))
	f.Fuzz(func(t *testing.T, n int64) {
		id := ID(n)
		s, o := sealer.Seal(id), sealer.Open(id)
		if sealer.Open(s) != id || sealer.Seal(o) != id {
			t.Errorf("Open(Seal(%d)) = %d, Seal(Open(%d)) = %d", id, sealer.Open(s), id, sealer.Seal(o))
		}
		if id < 0 && (s != id || o != id) || id >= 0 && (s < 0 || o < 0) {
			t.Errorf("Seal(%d) = %d, Open(%d) = %d", id, s, id, o)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	s := testSealer(b)
	b.ReportAllocs()
	var id ID
	for b.Loop() {
		id = s.Seal(id)
	}
}

func BenchmarkSealParallel(b *testing.B) {
	s := testSealer(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		var id ID
		for pb.Next() {
			id = s.Seal(id)
		}
	})
}
