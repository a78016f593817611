package floor

import (
	"testing"
	"time"
)

// The store notes the longest window, also where the member that decides has a shorter one and has read nothing.
func TestTheStoreNotesTheLongestWindow(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	kept := Floor{Window: time.Minute}
	put, err := kept.Put()
	if err != nil {
		t.Fatal(err)
	}
	open, err := Open(put.Value, "a store", "a reason")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(open.Value)
	if err != nil || !f.Open || f.Window != time.Minute || f.By != "a store" || f.Why != "a reason" {
		t.Fatalf("opened: %+v, %v", f, err)
	}
	v := View{Standing: Unopposed, Now: now, Window: 10 * time.Second}
	for name, next := range map[string]Floor{"Lost": first(f.Lost(v, "m", "why")), "Claim": first(f.Claim(v, "m"))} {
		if want := now.Add(time.Minute + Skew); next.Open || !next.From.Equal(want) || next.Window != time.Minute {
			t.Errorf("%s: %+v; want a floor at %v", name, next, want)
		}
	}
}

func first[T any](f Floor, _ T) Floor { return f }

func TestAFloorThatCantBeRead(t *testing.T) {
	if f, err := Parse([]byte("soon")); err == nil {
		t.Errorf("%+v", f)
	}
	if op, err := Open([]byte("soon"), "by", "why"); err == nil {
		t.Errorf("%+v", op)
	}
}
