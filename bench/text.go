package main

import (
	"context"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"

	"github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"github.com/jxskiss/base62"

	"github.com/firn-id/firn"
)

// sampled is how many different IDs are written and read: few, so that they are in the nearest cache.
const sampled = 64

// textIDs are IDs of one year, and textUUIDs as many UUIDs.
var textIDs, textUUIDs = func() (ids [sampled]firn.ID, uuids [sampled]firn.UUID) {
	for i := range ids {
		ids[i] = 117465411174400005 + firn.ID(i)*1_000_000_000_000_003
		binary.BigEndian.PutUint64(uuids[i][:], uint64(ids[i]))
		binary.BigEndian.PutUint64(uuids[i][8:], uint64(ids[i])*0x9e3779b97f4a7c15)
	}
	return ids, uuids
}()

// textual writes IDs in one form, and reads its texts.
type textual struct {
	form, who string
	append    func(b []byte, i int) []byte
	parse     func(text string) (last int64) // nil: it reads nothing that is comparable
}

// textuals are firn's forms, each before the standard library and the fastest peer that has it.
func textuals() []textual {
	crockford := base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)
	all := []textual{
		encoded(firn.Decimal),
		{
			"decimal", "strconv",
			func(b []byte, i int) []byte { return strconv.AppendInt(b, int64(textIDs[i]), 10) },
			func(text string) int64 { return must(strconv.ParseInt(text, 10, 64)) },
		},
		encoded(firn.Hex),
		{
			"hex", "encoding/hex",
			func(b []byte, i int) []byte {
				var raw [8]byte
				binary.BigEndian.PutUint64(raw[:], uint64(textIDs[i]))
				return hex.AppendEncode(b, raw[:])
			},
			func(text string) int64 {
				var raw [8]byte
				must(hex.Decode(raw[:], []byte(text)))
				return int64(binary.BigEndian.Uint64(raw[:]))
			},
		},
		encoded(firn.Base32),
		{
			"base32", "encoding/base32, of bytes",
			func(b []byte, i int) []byte {
				var raw [8]byte
				binary.BigEndian.PutUint64(raw[:], uint64(textIDs[i]))
				return crockford.AppendEncode(b, raw[:])
			}, nil,
		},
		encoded(firn.Base58),
		{
			"base58", "bwmarrin/snowflake, its alphabet",
			func(b []byte, i int) []byte { return append(b, snowflake.ID(textIDs[i]).Base58()...) }, nil,
		},
		encoded(firn.Base62),
		{
			"base62", "jxskiss/base62, its alphabet",
			func(b []byte, i int) []byte { return base62.AppendUint(b, uint64(textIDs[i])) }, nil,
		},
		encoded(firn.Checked),
		{
			"uuid", "firn",
			func(b []byte, i int) []byte { return must(textUUIDs[i].AppendText(b)) },
			func(text string) int64 { return int64(must(firn.ParseUUID(text))[15]) },
		},
		{
			"uuid", "encoding/hex and hyphens",
			func(b []byte, i int) []byte {
				u, at := &textUUIDs[i], 0
				for _, end := range [...]int{4, 6, 8, 10} {
					b = append(hex.AppendEncode(b, u[at:end]), '-')
					at = end
				}
				return hex.AppendEncode(b, u[at:])
			}, nil,
		},
		{
			"uuid", "google/uuid",
			func(b []byte, i int) []byte { return append(b, uuid.UUID(textUUIDs[i]).String()...) },
			func(text string) int64 { return int64(must(uuid.Parse(text))[15]) },
		},
	}
	return all
}

func encoded(e *firn.Encoding) textual {
	return textual{
		e.String(), "firn", func(b []byte, i int) []byte { return e.Append(b, textIDs[i]) },
		func(text string) int64 { return int64(must(e.Parse(text))) },
	}
}

// runText measures texts: how long one takes to write into room that is there, and to read.
func runText(ctx context.Context, s settings) ([]table, error) {
	const sealed = "firn.Sealer"
	sealer := must(firn.NewSealer(make([]byte, 16)))
	contenders := []contender{{sealed, func(n int) (last int64) {
		for i := range n {
			last += int64(sealer.Seal(textIDs[i%sampled]))
		}
		return last
	}}}
	all, texts := textuals(), map[string]*[sampled]string{}
	for _, c := range all {
		if texts[c.form] == nil {
			texts[c.form] = new([sampled]string)
			for i := range sampled {
				texts[c.form][i] = string(c.append(nil, i))
			}
		}
		contenders = append(contenders, contender{c.form + ", " + c.who + ", write", func(n int) (last int64) {
			b := make([]byte, 0, 64)
			for i := range n {
				b = c.append(b[:0], i%sampled)
				last += int64(b[len(b)-1])
			}
			return last
		}})
		if c.parse != nil {
			contenders = append(contenders, contender{c.form + ", " + c.who + ", read", func(n int) (last int64) {
				texts := texts[c.form]
				for i := range n {
					last += c.parse(texts[i%sampled])
				}
				return last
			}})
		}
	}
	got, _, err := measure(ctx, s, contenders, 1)
	if err != nil {
		return nil, err
	}
	t := table{
		Title: "text: IDs as text",
		Note:  "Ratios are to firn, medians over the rounds. Of the Sealer, one seal is written.",
		columns: []column{
			{"append_ns", "write: min ns", "%.1f"},
			{"append_median_ns", "median ns", "%.1f"},
			{"append_ratio", "to firn", "%.2f"},
			{"parse_ns", "read: min ns", "%.1f"},
			{"parse_median_ns", "median ns", "%.1f"},
			{"parse_ratio", "to firn", "%.2f"},
		},
	}
	for _, c := range all {
		name, ours := c.form+", "+c.who, c.form+", firn"
		write, firns := name+", write", ours+", write"
		values := []float64{got.least(write), got.median(write), got.ratio(write, firns)}
		if c.parse == nil {
			values = append(values, math.NaN(), math.NaN(), math.NaN())
		} else {
			read, firns := name+", read", ours+", read"
			values = append(values, got.least(read), got.median(read), got.ratio(read, firns))
		}
		t.add(name, values...)
	}
	t.add(sealed, got.least(sealed), got.median(sealed), math.NaN(), math.NaN(), math.NaN(), math.NaN())
	t.Targets = append(t.Targets,
		atMost("decimal to strconv, writing", 1/got.ratio("decimal, strconv, write", "decimal, firn, write"), 1),
		atMost("decimal, min ns to read", got.least("decimal, firn, read"), 8))
	for _, limit := range []struct {
		form        string
		write, read float64
	}{
		{"hex", 6, 5},
		{"base32", 6, 5},
		{"base58", 15, 8},
		{"base62", 15, 5},
		{"uuid", 6, 8},
	} {
		name := limit.form + ", firn"
		t.Targets = append(t.Targets,
			atMost(limit.form+", min ns to write", got.least(name+", write"), limit.write),
			atMost(limit.form+", min ns to read", got.least(name+", read"), limit.read))
	}
	t.Targets = append(t.Targets, atMost("seal, min ns", got.least(sealed), 150))
	return []table{t}, nil
}
