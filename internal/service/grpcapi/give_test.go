package grpcapi_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/service/grpcapi"
	"github.com/firn-id/firn/internal/test/servertest"
)

func TestNext(t *testing.T) {
	r := newFakeRig(t, new(servertest.Issuer))
	for i, name := range []string{"", "default"} {
		got, err := r.ids.Next(within(t), &firnv1.NextRequest{Sequencer: name})
		if err != nil || got.GetId() != int64(first)+int64(i) {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
	_, err := r.ids.Next(within(t), &firnv1.NextRequest{Sequencer: "orders"})
	wants(t, "Next", err, refusal{code: codes.NotFound, reason: "unknown_sequencer", says: "no such sequencer"})
	_, err = r.ids.Next(within(t), &firnv1.NextRequest{Sequencer: "Orders"})
	wants(t, "Next", err, bad(`the sequencer's name "Orders"; want 1 to 100 of a-z`))
}

// Every ID of a batch arrives, in order, also of the largest.
func TestNextBatch(t *testing.T) {
	f := new(servertest.Issuer)
	r := newFakeRig(t, f)
	for _, count := range []int32{1, 2, 8191, grpcapi.MaxBatch} {
		from := int64(first) + f.Given()
		got, err := r.ids.NextBatch(within(t), &firnv1.NextBatchRequest{Count: count})
		if err != nil || len(got.GetIds()) != int(count) {
			t.Fatalf("%d: %d IDs, %v", count, len(got.GetIds()), err)
		}
		for i, id := range got.GetIds() {
			if id != from+int64(i) {
				t.Fatalf("%d: ID %d is %d, want %d", count, i, id, from+int64(i))
			}
		}
	}
	for _, count := range []int32{-1, 0, grpcapi.MaxBatch + 1, -1 << 31, 1<<31 - 1} {
		_, err := r.ids.NextBatch(within(t), &firnv1.NextBatchRequest{Count: count})
		wants(t, "NextBatch", err, bad("want a number from 1 to 10000"))
	}
	_, err := r.ids.NextBatch(within(t), &firnv1.NextBatchRequest{Sequencer: "orders", Count: 5})
	wants(t, "NextBatch", err, refusal{code: codes.NotFound, reason: "unknown_sequencer"})
}

func TestDecode(t *testing.T) {
	r := newFakeRig(t, &servertest.Issuer{IDs: firn.Twitter})
	got, err := r.ids.Decode(within(t), &firnv1.DecodeRequest{Id: 1541815603606036480})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2022, 6, 28, 16, 7, 40, 105e6, time.UTC)
	if !got.GetTime().AsTime().Equal(at) || got.GetId() != 1541815603606036480 || got.GetTick() != 367597485448 ||
		got.GetDatacenter() != 11 || got.GetNode() != 26 || got.GetNodeId() != 378 || got.GetSequence() != 0 {
		t.Errorf("%v", got)
	}
	for _, tt := range []struct {
		request *firnv1.DecodeRequest
		want    refusal
	}{
		{&firnv1.DecodeRequest{Id: -1}, bad("the id -1 is negative; want 0 to 9223372036854775807")},
		{&firnv1.DecodeRequest{Id: 1, Sequencer: "a b"}, bad(`"a b"`)},
		{&firnv1.DecodeRequest{Id: 1, Sequencer: "orders"}, refusal{code: codes.NotFound, reason: "unknown_sequencer"}},
	} {
		_, err := r.ids.Decode(within(t), tt.request)
		wants(t, tt.request.String(), err, tt.want)
	}
	short := firn.Default
	short.TimeBits = 20
	r = newFakeRig(t, &servertest.Issuer{IDs: short})
	_, err = r.ids.Decode(within(t), &firnv1.DecodeRequest{Id: 1 << 62})
	wants(t, "more bits than the layout", err, bad("4611686018427387904"))
}

// Every form that is asked for comes as text, beside the ID, and is decoded in every other one.
func TestForms(t *testing.T) {
	r := newFakeRig(t, &servertest.Issuer{Same: true, Prefix: "ord"})
	for form := firnv1.Form_FORM_DECIMAL; form <= firnv1.Form_FORM_PREFIXED_CHECKED; form++ {
		if form == firnv1.Form_FORM_SEALED {
			continue // there is no key
		}
		one, err := r.ids.Next(within(t), &firnv1.NextRequest{Form: form})
		if err != nil || one.GetId() != int64(first) || one.GetText() == "" {
			t.Fatalf("%v: %v, %v", form, one, err)
		}
		many, err := r.ids.NextBatch(within(t), &firnv1.NextBatchRequest{Form: form, Count: 2000})
		if err != nil || len(many.GetIds()) != 2000 || len(many.GetTexts()) != 2000 ||
			many.GetTexts()[0] != one.GetText() || many.GetTexts()[1] == one.GetText() {
			t.Fatalf("%v: %.200v, %v", form, many, err)
		}
		stream, err := r.ids.Stream(within(t), &firnv1.StreamRequest{Form: form, Total: 1500, BatchSize: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{1000, 500} {
			some, err := stream.Recv()
			if err != nil || len(some.GetIds()) != want || len(some.GetTexts()) != want ||
				some.GetTexts()[0] != one.GetText() {
				t.Fatalf("%v: %.200v, %v", form, some, err)
			}
		}
		for other := firnv1.Form_FORM_DECIMAL; other <= firnv1.Form_FORM_PREFIXED_CHECKED; other++ {
			if other == firnv1.Form_FORM_SEALED {
				continue // there is no key
			}
			got, err := r.ids.Decode(within(t), &firnv1.DecodeRequest{Text: one.GetText(), As: form, Form: other})
			if err != nil || got.GetId() != int64(first) || (got.GetText() == one.GetText()) != (form == other) {
				t.Errorf("%s as %v: %v, %v", one.GetText(), other, got, err)
			}
		}
	}
	for _, tt := range []struct {
		request *firnv1.DecodeRequest
		says    string
	}{
		{&firnv1.DecodeRequest{Text: "1-00000000000"}, "no keys to seal and open IDs"},
		{&firnv1.DecodeRequest{Id: 1, Form: firnv1.Form_FORM_SEALED}, "no keys to seal and open IDs"},
		{&firnv1.DecodeRequest{Id: 1, Form: 99}, "form is 99; want one of 1 to 11"},
		{&firnv1.DecodeRequest{Id: 1, Text: "1"}, `both id, 1, and text, "1", are given`},
		{&firnv1.DecodeRequest{Id: 1, As: firnv1.Form_FORM_HEX}, "as is given, and text is not"},
		{&firnv1.DecodeRequest{Text: "inv_0000000000005"}, `its prefix is "inv"`},
		{
			&firnv1.DecodeRequest{Text: "1000000000000000"},
			"in decimal (1000000000000000) and in hex (1152921504606846976); say which form it has: as=decimal " +
				"or as=hex",
		},
	} {
		_, err := r.ids.Decode(within(t), tt.request)
		wants(t, tt.request.String(), err, bad(tt.says))
	}
	_, err := r.ids.Next(within(t), &firnv1.NextRequest{Form: firnv1.Form_FORM_SEALED})
	wants(t, "Next", err, bad("no keys to seal and open IDs"))
	_, err = r.ids.NextBatch(within(t), &firnv1.NextBatchRequest{Form: firnv1.Form_FORM_HEX, Count: 2001})
	wants(t, "NextBatch", err, bad("count is 2001; want a number from 1 to 2000"))
	stream, err := r.ids.Stream(within(t), &firnv1.StreamRequest{Form: firnv1.Form_FORM_HEX, BatchSize: 2001})
	if err == nil {
		_, err = stream.Recv()
	}
	wants(t, "Stream", err, bad("batch_size is 2001; want a number from 1 to 2000"))
}

// Scattered IDs come as they were given, though a batch keeps them as they were made.
func TestScatteredBatches(t *testing.T) {
	r := newFakeRig(t, &servertest.Issuer{Same: true, Scattered: true})
	got, err := r.ids.NextBatch(within(t), &firnv1.NextBatchRequest{Count: 300})
	if err != nil || len(got.GetIds()) != 300 {
		t.Fatalf("%d IDs, %v", len(got.GetIds()), err)
	}
	for i, id := range got.GetIds() {
		if id != int64(first)+int64(i) {
			t.Fatalf("ID %d is %d, want %d", i, id, int64(first)+int64(i))
		}
	}
}

// Each call passes on the ID to exceed; those that follow in a stream exceed those before.
func TestAfter(t *testing.T) {
	f := new(servertest.Issuer)
	r := newFakeRig(t, f)
	next := func(q *firnv1.NextRequest) error {
		_, err := r.ids.Next(within(t), q)
		return err
	}
	stream := func(after int64) error {
		s, err := r.ids.Stream(within(t), &firnv1.StreamRequest{Total: 1, After: after})
		if err == nil {
			_, err = s.Recv()
		}
		return err
	}
	batch := func(after int64) error {
		_, err := r.ids.NextBatch(within(t), &firnv1.NextBatchRequest{Count: 2, After: after})
		return err
	}
	for i, call := range []func(after int64) error{
		func(after int64) error { return next(&firnv1.NextRequest{After: after}) },
		func(after int64) error { return next(&firnv1.NextRequest{After: after, Form: firnv1.Form_FORM_UUID}) },
		batch, stream,
	} {
		for _, after := range []int64{77, 0} {
			if err := call(after); err != nil || f.After() != firn.ID(after) {
				t.Errorf("call %d after %d: after %d, %v", i, after, f.After(), err)
			}
		}
		wants(t, "after", call(-5), bad("after is -5; want an ID from 1 to 9223372036854775807, or 0 for none"))
	}
}
