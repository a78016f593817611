package firn_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

var update = flag.Bool("update", false, "TestConformanceVectors: write the file")

// The vectors by which the clients in other languages check their layouts and encodings are what this package says.
func TestConformanceVectors(t *testing.T) {
	type layout struct {
		Name       string `json:"name"` // as ParseLayout reads it
		EpochMS    int64  `json:"epoch_ms"`
		TickNS     int64  `json:"tick_ns"`
		Time       int    `json:"time"` // bits, as those below
		Datacenter int    `json:"datacenter"`
		Node       int    `json:"node"`
		Sequence   int    `json:"sequence"`
		NodeLowest bool   `json:"node_lowest"`
	}
	type parts struct {
		UnixMS     int64 `json:"unix_ms"`
		Tick       int64 `json:"tick"`
		Datacenter int64 `json:"datacenter"`
		Node       int64 `json:"node"`
		NodeID     int64 `json:"node_id"`
		Sequence   int64 `json:"sequence"`
	}
	type decode struct {
		Layout string `json:"layout"`
		ID     string `json:"id"`
		Parts  *parts `json:"parts,omitempty"`
		UUID   string `json:"uuid,omitempty"` // missing: it has none
	}
	type text struct {
		Form string `json:"form"`
		Text string `json:"text"`
	}
	type uuid struct {
		Layout string `json:"layout"`
		UUID   string `json:"uuid"`
	}
	type tagged struct { // a UUID with the tag of a sequencer's name
		Sequencer string `json:"sequencer"`
		ID        string `json:"id"` // of the default layout
		UUID      string `json:"uuid"`
	}
	type span struct { // of the IDs of a tick
		Layout string `json:"layout"`
		Time   string `json:"time"` // within the tick; RFC 3339 in UTC, with milliseconds
		First  string `json:"first,omitempty"`
		Last   string `json:"last,omitempty"`
	}
	var v struct {
		layouts            []layout
		spans, notSpans    []span
		decode, notDecoded []decode
		ids                []map[string]string // by form
		notLayouts         []string
		notIDs             []text
		notUUIDs           []uuid
		tagged             []tagged
	}

	names := []string{
		"41/10/12", "41/5/5/12", "40/13/10", "39/16/8@10ms", "50/5/8@100us", "31/20/12@1s",
		"42/21", "62/0/1",
	}
	for _, p := range firn.Presets() {
		names = append(names, p.Name)
	}
	for _, name := range names {
		l, err := firn.ParseLayout(name)
		if err != nil {
			v.notLayouts = append(v.notLayouts, name)
			continue
		}
		v.layouts = append(v.layouts, layout{
			name, l.Epoch.UnixMilli(), int64(l.Tick), l.TimeBits, l.DatacenterBits,
			l.NodeBits, l.SequenceBits, l.NodeLowest,
		})
		all := l.TimeBits + l.DatacenterBits + l.NodeBits + l.SequenceBits
		for _, id := range []firn.ID{
			0, 1, 1<<22 | 7, 175928847299117063, 1541815603606036480, 1<<(all-1) + 12345,
			1<<all - 1, 1 << all,
		} {
			p, err := l.Decompose(id)
			d := decode{Layout: name, ID: id.String()}
			switch {
			case id < 0: // the layout fills all bits
			case err != nil:
				v.notDecoded = append(v.notDecoded, d)
			case p.Tick < 1<<53: // what a number in JSON holds
				d.Parts = &parts{
					l.TickStart(p.Tick).UnixMilli(), p.Tick, p.Datacenter, p.Node,
					p.Datacenter<<l.NodeBits | p.Node, p.Sequence,
				}
				if u, err := l.UUID(id); err == nil {
					d.UUID = u.String()
				}
				v.decode = append(v.decode, d)
			}
		}
		end := l.Lifetime()
		for _, at := range []time.Time{
			l.Epoch.Add(-time.Millisecond), l.Epoch, l.Epoch.Add(time.Millisecond),
			time.Date(2026, 11, 21, 3, 25, 36, 425e6, time.UTC),
			time.Date(2095, 1, 1, 0, 0, 0, 999e6, time.UTC), end.Add(-time.Millisecond), end,
		} {
			at = at.UTC().Truncate(time.Millisecond)
			s := span{Layout: name, Time: at.Format("2006-01-02T15:04:05.000Z")}
			first, err1 := l.First(at)
			last, err2 := l.Last(at)
			switch {
			case at.Year() > 9999: // no language writes it as the others do
			case errors.Is(err1, firn.ErrLifetime) && errors.Is(err2, firn.ErrLifetime):
				v.notSpans = append(v.notSpans, s)
			case err1 != nil || err2 != nil:
				t.Errorf("%s at %s: %v, %v", name, at, err1, err2)
			default:
				s.First, s.Last = first.String(), last.String()
				v.spans = append(v.spans, s)
			}
		}
	}
	v.notLayouts = append(v.notLayouts, "", "unknown", "41/10/x", "0/10/12", "41/10/13", "41/10/12@2s", "41/10/12@0ms")
	for _, name := range v.notLayouts {
		if l, err := firn.ParseLayout(name); err == nil {
			t.Errorf("%q is the layout %v", name, l)
		}
	}

	for _, id := range []firn.ID{
		0, 1, 57, 58, 61, 62, 1<<32 + 1, 117465411174400005, 1<<53 - 1, 1<<53 + 1,
		firn.MaxID - 1, firn.MaxID,
	} {
		texts := map[string]string{}
		for _, e := range firn.Encodings() {
			texts[e.String()] = e.Encode(id)
		}
		v.ids = append(v.ids, texts)
	}
	for _, n := range []text{
		{"decimal", ""},
		{"decimal", "007"},
		{"decimal", "-1"},
		{"decimal", "+1"},
		{"decimal", " 1"},
		{"decimal", "1.0"},
		{"decimal", "9223372036854775808"},
		{"decimal", "99999999999999999999"},
		{"hex", "7FFFFFFFFFFFFFFF"},
		{"hex", "8000000000000000"},
		{"hex", "1"},
		{"hex", "0x00000000000001"},
		{"base32", "8000000000000"},
		{"base32", "7ZZZZZZZZZZZZZ"},
		{"base32", "7zzzzzzzzzzzz"},
		{"base32", "000000000000U"},
		{"base58", ""},
		{"base58", "0"},
		{"base58", "12"},
		{"base58", "NQm6nKp8qFD"},
		{"base58", "zzzzzzzzzzzz"},
		{"base62", "AzL8n0Y58m8"},
		{"base62", "1"},
		{"base62", "0000000000-"},
		{"checked", ""},
		{"checked", "195"},
		{"checked", "1-94"},
		{"checked", "2-95"},
		{"checked", "-95"},
		{"checked", "01-95"},
		{"checked", "1-095"},
		{"checked", "65-00"},
		{"checked", "32-99"},
		{"checked", "1-95-95"},
		{"checked", "117465411174400050-32"},
		{"checked", "9223372036854775808-55"},
	} {
		e, err := firn.EncodingByName(n.Form)
		if err != nil {
			t.Fatal(err)
		}
		if id, err := e.Parse(n.Text); err == nil {
			t.Errorf("%q is %v in %s", n.Text, id, n.Form)
		}
		v.notIDs = append(v.notIDs, n)
	}

	for _, n := range []uuid{
		{"default", ""},
		{"default", "019b76da-a801-7000-8000-0000004000071"},
		{"default", "{019b76da-a801-7000-8000-000000400007"},
		{"default", "{019b76daa80170008000000000400007}"},
		{"default", "urn:uuid:019b76daa80170008000000000400007"},
		{"default", "019b76da-a80170008000000000400007"},
		{"default", "019b76da-a801-7000-8000-00000040000g"},
		{"default", "019b76da-a801-4000-8000-000000400007"}, // of version 4
		{"default", "019b76da-a801-7000-4000-000000400007"}, // of another variant
		{"default", "019b76da-a802-7000-8000-000000400007"}, // of another time
		{"twitter", "019b76da-a801-7000-8000-000000400007"}, // of another layout
	} {
		l, err := firn.ParseLayout(n.Layout)
		if err != nil {
			t.Fatal(err)
		}
		u, err := firn.ParseUUID(n.UUID)
		if err == nil {
			_, err = l.FromUUID(u)
		}
		if err == nil {
			t.Errorf("%q is an ID of the layout %s", n.UUID, n.Layout)
		}
		v.notUUIDs = append(v.notUUIDs, n)
	}

	for _, name := range []string{"", "default", "orders", "invoices", "a", "0", "._-", strings.Repeat("z", 64)} {
		for _, id := range []firn.ID{117465411174400005, firn.MaxID} {
			u, err := firn.Default.UUID(id)
			if err != nil {
				t.Fatal(err)
			}
			v.tagged = append(v.tagged, tagged{name, id.String(), u.Tagged(name).String()})
		}
	}

	var made bytes.Buffer
	end := "{"
	for _, part := range []struct {
		name  string
		lines []any
	}{
		{"layouts", anys(v.layouts)},
		{"not_layouts", anys(v.notLayouts)},
		{"decode", anys(v.decode)},
		{"not_decoded", anys(v.notDecoded)},
		{"ids", anys(v.ids)},
		{"not_ids", anys(v.notIDs)},
		{"tagged", anys(v.tagged)},
		{"not_uuids", anys(v.notUUIDs)},
		{"spans", anys(v.spans)},
		{"not_spans", anys(v.notSpans)},
	} {
		fmt.Fprintf(&made, "%s\n  %q: [", end, part.name)
		end = ""
		for _, line := range part.lines {
			text, err := json.Marshal(line)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&made, "%s\n    %s", end, text)
			end = ","
		}
		end = "\n  ],"
	}
	made.WriteString("\n  ]\n}\n")
	path := filepath.Join("clients", "conformance", "vectors.json")
	if *update {
		if err := os.WriteFile(path, made.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || !bytes.Equal(text, made.Bytes()) {
		t.Errorf("%s is outdated (%v): run go test -run TestConformanceVectors -update .", path, err)
	}
}

// What is not whole is refused in one sentence, which the clients in other languages say too, and the texts of UUIDs
// are those that they read.
func TestWhole(t *testing.T) {
	data, err := os.ReadFile("clients/conformance/whole.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Says     string
		NotWhole []string `json:"not_whole"`
		Numbers  []json.Number
		UUIDs    []struct{ Text, ID string }
		NotUUIDs []string `json:"not_uuids"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.NotWhole) < 5 || len(v.Numbers) < 5 || len(v.UUIDs) < 5 || len(v.NotUUIDs) < 10 {
		t.Errorf("%+v lacks cases", v)
	}
	for _, text := range v.NotWhole {
		var id firn.ID
		for about, err := range map[string]error{
			"Parse": second(firn.Parse(text)), "JSON": id.UnmarshalJSON([]byte(text)), "SQL": id.Scan(text),
			"text": id.UnmarshalText([]byte(text)),
		} {
			if err == nil || !strings.Contains(err.Error(), v.Says) {
				t.Errorf("%s of %q: %v; want %q", about, text, err, v.Says)
			}
		}
	}
	for _, n := range v.Numbers {
		f, err := n.Float64()
		if err != nil {
			t.Fatal(err)
		}
		var id firn.ID
		for _, number := range []any{f, float32(f)} {
			if err := id.Scan(number); err == nil || !strings.Contains(err.Error(), v.Says) {
				t.Errorf("%T %v: %v; want %q", number, number, err, v.Says)
			}
		}
	}
	for _, c := range v.UUIDs {
		u, err := firn.ParseUUID(c.Text)
		if err != nil {
			t.Errorf("%q: %v", c.Text, err)
			continue
		}
		if id, err := firn.Default.FromUUID(u); err != nil || id.String() != c.ID {
			t.Errorf("%q is %v, %v; want %s", c.Text, id, err, c.ID)
		}
	}
	for _, text := range v.NotUUIDs {
		if u, err := firn.ParseUUID(text); err == nil {
			t.Errorf("%q is %v", text, u)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func anys[T any](all []T) (values []any) {
	for _, v := range all {
		values = append(values, v)
	}
	return values
}
