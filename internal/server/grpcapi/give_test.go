package grpcapi_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/server/grpcapi"
	"github.com/firn-id/firn/internal/server/servertest"
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
