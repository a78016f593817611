package main

import (
	"testing"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/firn-id/firn"
	"github.com/sony/sonyflake/v2"
)

// The presets take apart the IDs of the peers that they are for as those peers do.

func TestTwitterAndDiscordAgreeWithBwmarrin(t *testing.T) {
	epoch := snowflake.Epoch
	defer func() { snowflake.Epoch = epoch }()
	for name, layout := range map[string]firn.Layout{"twitter": firn.Twitter, "discord": firn.Discord} {
		snowflake.Epoch = layout.Epoch.UnixMilli()
		const node = 17<<5 | 3
		peer, err := snowflake.NewNode(node)
		if err != nil {
			t.Fatal(err)
		}
		for range 10_000 {
			id := peer.Generate()
			got, err := layout.Decompose(firn.ID(id))
			if err != nil {
				t.Fatal(err)
			}
			want := firn.Parts{Tick: id.Time() - snowflake.Epoch, Datacenter: 17, Node: 3, Sequence: id.Step()}
			if got != want {
				t.Fatalf("%s: %d is %+v, the peer says %+v", name, id, got, want)
			}
			if at := layout.TickStart(got.Tick); at.UnixMilli() != id.Time() {
				t.Fatalf("%s: %d was made at %s, the peer says %d", name, id, at, id.Time())
			}
			if back, err := layout.Compose(got); back != firn.ID(id) || err != nil {
				t.Fatalf("%s: %+v is %d, %v, want %d", name, got, back, err, id)
			}
		}
	}
}

// The preset has the epoch of version 1, which version 2 takes as a setting.
func TestSonyflakeAgreesWithSonyflake(t *testing.T) {
	const machine = 4711
	peer, err := sonyflake.New(sonyflake.Settings{
		StartTime: firn.Sonyflake.Epoch,
		MachineID: func() (int, error) { return machine, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]int64, 0, 300)
	for range 300 { // more than a tick has
		id, err := peer.NextID()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	for _, sequence := range []int{0, 1, 255} {
		id, err := peer.Compose(time.Now(), sequence, machine)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		got, err := firn.Sonyflake.Decompose(firn.ID(id))
		if err != nil {
			t.Fatal(err)
		}
		theirs := peer.Decompose(id)
		if want := (firn.Parts{
			Tick: theirs["time"], Node: theirs["machine"],
			Sequence: theirs["sequence"],
		}); got != want {
			t.Fatalf("%d is %+v, the peer says %+v", id, got, want)
		}
		if at, want := firn.Sonyflake.TickStart(got.Tick), peer.ToTime(id); !at.Equal(want) {
			t.Fatalf("%d was made at %s, the peer says %s", id, at, want)
		}
		if back, err := firn.Sonyflake.Compose(got); back != firn.ID(id) || err != nil {
			t.Fatalf("%+v is %d, %v, want %d", got, back, err, id)
		}
	}
}

// What firn makes under a preset is what the peer reads from it.
func TestSonyflakeReadsOurs(t *testing.T) {
	g, err := firn.NewGenerator(firn.Sonyflake, 99)
	if err != nil {
		t.Fatal(err)
	}
	peer, err := sonyflake.New(sonyflake.Settings{
		StartTime: firn.Sonyflake.Epoch,
		MachineID: func() (int, error) { return 1, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	id, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	parts, err := firn.Sonyflake.Decompose(id)
	if err != nil {
		t.Fatal(err)
	}
	theirs := peer.Decompose(int64(id))
	if theirs["machine"] != 99 || theirs["time"] != parts.Tick || theirs["sequence"] != parts.Sequence {
		t.Errorf("%d is %+v, the peer says %v", id, parts, theirs)
	}
}
