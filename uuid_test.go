package firn

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestUUIDNeverChanges holds UUIDs that are in somebody's database.
func TestUUIDNeverChanges(t *testing.T) {
	for _, tt := range []struct {
		layout Layout
		id     ID
		want   string
	}{
		{Default, 0, "019b76da-a800-7000-8000-000000000000"},
		{Default, 1, "019b76da-a800-7000-8000-000000000001"},
		{Default, MaxID, "039b76da-a7ff-7001-bfff-ffffffffffff"},
		{Twitter, 1541815603606036480, "0181ab11-8149-7000-9565-a11f6217a000"},
	} {
		u, err := tt.layout.UUID(tt.id)
		if err != nil || u.String() != tt.want {
			t.Errorf("%d of %v is %v, %v; want %s", tt.id, tt.layout, u, err, tt.want)
		}
	}
}

// Of every layout and at any time, a UUID has the version, the variant and the milliseconds that
// RFC 9562 wants, sorts like the ID, and gives it back.
func TestUUIDsSortAndReturn(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 9562))
	for range 2000 {
		l := randomLayout(r)
		if l.Validate() != nil {
			continue
		}
		var ids []ID
		for range 20 {
			id := ID(r.Int64N(maxOf(l.TimeBits+l.nodeIDBits()+l.SequenceBits)) + r.Int64N(2))
			ids = append(ids, id, max(id-1, 0)) // and its neighbour, mostly of the same millisecond
		}
		slices.Sort(ids)
		var last UUID
		for i, id := range ids {
			at, err := l.Time(id)
			if err != nil {
				t.Fatal(err)
			}
			u, err := l.UUID(id)
			if !at.Before(time.Date(10_890, 1, 1, 0, 0, 0, 0, time.UTC)) { // Year has 32 bits on some machines
				if err == nil || !strings.Contains(err.Error(), "before the year 10889") {
					t.Errorf("%d of %v, which is of %v, is %v, %v", id, l, at, u, err)
				}
				break // all others are later
			}
			if !at.Before(time.Date(10_889, 1, 1, 0, 0, 0, 0, time.UTC)) && err != nil {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			ms := int64(u[0])<<40 | int64(u[1])<<32 | int64(u[2])<<24 | int64(u[3])<<16 | int64(u[4])<<8 | int64(u[5])
			if u[6]>>4 != 7 || u[8]>>6 != 0b10 || ms != at.UnixMilli() {
				t.Fatalf("%d of %v is %v, of %d ms; want version 7, variant 10 and %d ms", id, l, u, ms, at.UnixMilli())
			}
			if back, err := l.FromUUID(u); back != id || err != nil {
				t.Fatalf("%v of %v is %d, %v; want %d", u, l, back, err, id)
			}
			if i > 0 && (bytes.Compare(last[:], u[:]) != cmp.Compare(ids[i-1], id) ||
				cmp.Compare(last.String(), u.String()) != cmp.Compare(ids[i-1], id)) {
				t.Fatalf("%d and %d of %v are %v and %v, in another order", ids[i-1], id, l, last, u)
			}
			last = u
		}
	}
}

// What another program made, or another layout, is no ID. Each is one change away from a UUID that is one.
func TestUUIDsThatAreNoIDs(t *testing.T) {
	const good = "0181ab11-8149-7000-9565-a11f6217a000"
	for text, want := range map[string]string{
		good:                                   "",
		strings.ToUpper(good):                  "",
		"0181ab11-8149-4000-9565-a11f6217a000": "it has version 4 and variant 10; want 7 and 10",
		"0181ab11-8149-7000-5565-a11f6217a000": "it has version 7 and variant 01",
		"0181ab11-8149-7000-d565-a11f6217a000": "variant 11",
		"0181ab11-8149-7002-9565-a11f6217a000": "", // they have tags
		"0181ab11-8149-7ffe-9565-a11f6217a000": "",
		"0181ab11-8149-7001-9565-a11f6217a000": "its time is not that of its ID",
		"0181ab11-8148-7000-9565-a11f6217a000": "its time is not that of its ID",
		"0181ab11-8149-7000-9565-b11f6217a000": "its time is not that of its ID",
		"00000000-0000-0000-0000-000000000000": "it has version 0 and variant 00",
		"01981e3c-58cf-7cc1-8d5b-4a2e7d9c0f11": "its time is not that of its ID",
	} {
		u, err := ParseUUID(text)
		if err != nil {
			t.Fatal(err)
		}
		id, err := Twitter.FromUUID(u)
		var parse *ParseError
		if want == "" && (id != 1541815603606036480 || err != nil) ||
			want != "" && (id != 0 || !errors.As(err, &parse) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s is %d, %v; want %q", text, id, err, want)
		}
	}
	u, err := JavaScript.UUID(1)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := Twitter.FromUUID(u); err == nil {
		t.Errorf("%v of another layout is %d", u, id)
	}
	u, err = Default.UUID(MaxID)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := JavaScript.FromUUID(u); err == nil || !strings.Contains(err.Error(), "its 53 bits hold") {
		t.Errorf("%v of a wider layout is %d, %v", u, id, err)
	}
	for _, l := range []Layout{{}, {TimeBits: 62, Tick: time.Second, Epoch: Default.Epoch}} {
		if u, err := l.UUID(MaxID); err == nil || u != (UUID{}) {
			t.Errorf("%v: %v", l, u)
		}
	}
}

// Two sequencers have different UUIDs for one ID, which come back as that ID and sort as the IDs do.
func TestTaggedUUIDs(t *testing.T) {
	const id = 1541815603606036480
	plain, err := Twitter.UUID(id)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"":         "0181ab11-8149-7000-9565-a11f6217a000",
		"default":  "0181ab11-8149-7000-9565-a11f6217a000",
		"orders":   "0181ab11-8149-7712-9565-a11f6217a000",
		"invoices": "0181ab11-8149-77aa-9565-a11f6217a000",
	} {
		u := plain.Tagged("another").Tagged(name)
		if u.String() != want {
			t.Errorf("the UUID of %q is %v; want %s", name, u, want)
		}
		if back, err := Twitter.FromUUID(u); back != id || err != nil {
			t.Errorf("%v is %d, %v", u, back, err)
		}
	}
	tags := map[UUID]int{}
	for i := range 100_000 {
		tags[plain.Tagged(strconv.Itoa(i))]++
	}
	if most := slices.Max(slices.Collect(maps.Values(tags))); len(tags) != 2047 || most > 150 || tags[plain] != 0 {
		t.Errorf("100,000 names have %d tags, one of them %d names, and %d no tag", len(tags), most, tags[plain])
	}
}

func TestUUIDText(t *testing.T) {
	const text = "0181ab11-8149-7000-9565-a11f6217a000"
	u, err := ParseUUID(text)
	if err != nil || u.String() != text {
		t.Errorf("%v, %v", u, err)
	}
	if b, err := u.AppendText([]byte("id ")); string(b) != "id "+text || err != nil {
		t.Errorf("%s, %v", b, err)
	}
	if b, err := u.MarshalText(); string(b) != text || err != nil {
		t.Errorf("%s, %v", b, err)
	}
	for bad, want := range map[string]string{
		"":                     "it has 0 bytes; want 36 characters",
		text[1:]:               "it has 35 bytes",
		text + "0":             "it has 37 bytes",
		"{" + text[1:35] + "}": "not a hex digit",
		"{" + text:             "it has 37 bytes",
		"{" + text[:35] + "g}": "not a hex digit",
		"{" + strings.ReplaceAll(text, "-", "0") + "}":   "no hyphen at byte 9",
		"urn:uuid:" + strings.ReplaceAll(text, "-", "0"): "no hyphen at byte 17",
		"urn:isbn:" + text:                           "it has 45 bytes",
		strings.ReplaceAll(text, "-", "")[:31] + "g": "not a hex digit",
		strings.ReplaceAll(text, "-", "") + "0000":   "no hyphen at byte 8",
		text[:23] + "0" + text[24:]:                  "no hyphen at byte 23",
		text[:35] + "g":                              "not a hex digit",
		text[:8] + "--" + text[10:]:                  "not a hex digit",
	} {
		v := u
		err := v.UnmarshalText([]byte(bad))
		var parse *ParseError
		if !errors.As(err, &parse) || !strings.Contains(err.Error(), want) || v != u {
			t.Errorf("%q: %v; want %q", bad, err, want)
		}
	}
}

// asSQLServer are the bytes of a UUID as a column uniqueidentifier weighs them, the greatest first. It compares the
// last six bytes, the two before these, and then the three numbers before, of which it keeps the lowest byte first.
// https://learn.microsoft.com/en-us/dotnet/framework/data/adonet/sql/comparing-guid-and-uniqueidentifier-values
func asSQLServer(u UUID) (weighed []byte) {
	for _, i := range []int{10, 11, 12, 13, 14, 15, 8, 9, 7, 6, 5, 4, 3, 2, 1, 0} {
		weighed = append(weighed, u[i])
	}
	return weighed
}

// What docs/databases.md says of SQL Server: the lowest 48 bits of the ID come first, in which time starts over every
// 2^26 ms.
func TestUUIDsInSQLServersOrder(t *testing.T) {
	const over = 1 << 26 * time.Millisecond // 18.6 hours
	at := func(d time.Duration) UUID {
		id, err := Default.First(Default.Epoch.Add(100*over + d))
		if err != nil {
			t.Fatal(err)
		}
		u, err := Default.UUID(id)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	for _, tt := range []struct {
		first, second time.Duration
		sorted        bool
	}{
		{0, time.Millisecond, true},
		{0, over - time.Millisecond, true},
		{over - time.Millisecond, over, false},
		{time.Millisecond, over, false},
		{time.Millisecond, over + time.Millisecond, true},
	} {
		a, b := at(tt.first), at(tt.second)
		if got := bytes.Compare(asSQLServer(a), asSQLServer(b)) < 0; got != tt.sorted {
			t.Errorf("%v comes before %v: %v, want %v", a, b, got, tt.sorted)
		}
		if bytes.Compare(a[:], b[:]) >= 0 { // as binary(16)
			t.Errorf("the bytes of %v do not come before those of %v", a, b)
		}
	}
}

// FuzzUUID: a UUID is an ID of a layout exactly when it is that ID's UUID.
func FuzzUUID(f *testing.F) {
	f.Add("0181ab11-8149-7000-9565-a11f6217a000", int64(1541815603606036480))
	f.Add("00000000-0000-0000-0000-000000000000", int64(0))
	f.Add("0181ab11-8149-7400-9565-a11f6217a000", int64(1)) // with a tag
	f.Add("0181ab11-8149-7000-95a1", int64(-1))
	f.Fuzz(func(t *testing.T, text string, n int64) {
		for _, p := range Presets() {
			if u, err := ParseUUID(text); err == nil {
				if bare := strings.NewReplacer("-", "", "{", "", "}", "", "urn:uuid:",
					""); !strings.EqualFold(bare.Replace(u.String()), bare.Replace(strings.ToLower(text))) {
					t.Errorf("%q is read as %v", text, u)
				}
				if id, err := p.FromUUID(u); err == nil {
					if again, err := p.UUID(id); again != u.Tagged("") || err != nil {
						t.Errorf("%s: %v is %d, whose UUID is %v, %v", p.Name, u, id, again, err)
					}
				}
			}
			u, err := p.UUID(ID(n))
			if _, outside := p.Decompose(ID(n)); (err == nil) != (outside == nil) {
				t.Errorf("%s: %d: %v, and %v to decompose it", p.Name, n, err, outside)
			}
			if err == nil {
				if id, err := p.FromUUID(u); id != ID(n) || err != nil {
					t.Errorf("%s: %d is %v, which is %d, %v", p.Name, n, u, id, err)
				}
			}
		}
	})
}

func BenchmarkUUID(b *testing.B) {
	b.ReportAllocs()
	var text [36]byte
	for b.Loop() {
		u, err := Default.UUID(117465411174400005)
		if err != nil {
			b.Fatal(err)
		}
		u.append(text[:0])
	}
}

func BenchmarkUUIDText(b *testing.B) {
	u, err := Default.UUID(117465411174400005)
	if err != nil {
		b.Fatal(err)
	}
	text := []byte(u.String())
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			text = u.append(text[:0])
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := u.UnmarshalText(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		s := string(text)
		for b.Loop() {
			if _, err := ParseUUID(s); err != nil {
				b.Fatal(err)
			}
		}
	})
}
