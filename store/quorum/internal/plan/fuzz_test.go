package plan

import (
	"encoding/json"
	"testing"
)

// Whatever the other machines say, there is a decision; and whatever is offered, a disk with data stays as it is.
func FuzzDecide(f *testing.F) {
	for _, text := range []string{
		`{"b:1":{"address":"b:1","life":"l","list":["a:1","b:1"],"disk":{"state":"promised","cluster":"c"}}}`,
		`{"b:1":{"address":"b:1","running":true,"record":["b:1"],"members":[{"address":"b:1"}],"saw":{"a:1":7},` +
			`"disk":{"state":"started","cluster":"c"}}}`,
		`{"a:1":{"address":"a:1","life":"other","member":3,"index":9},"":{},"b:1":{"members":[{},{}],"record":["",` +
			`"a:1"]}}`,
		`{"b:1":{"list":null,"saw":{"":18446744073709551615}}}`,
	} {
		f.Add([]byte(text), uint64(5))
	}
	f.Fuzz(func(t *testing.T, text []byte, index uint64) {
		var said map[string]Machine
		if json.Unmarshal(text, &said) != nil {
			return
		}
		for _, state := range []State{Empty, Promised, Alone, Started, Formed} {
			me := Machine{
				Address: "a:1", Life: "l", List: []string{"a:1", "b:1", "c:1"}, Index: index, Member: index,
				Disk: Disk{State: state, Cluster: "c"}, Saw: map[string]uint64{"b:1": index},
			}
			_ = Decide(me, said, "fresh")
			for _, other := range said {
				disk, ok := Accept(me, Offer{Cluster: other.Disk.Cluster, Life: other.Life, Disk: other.Disk})
				if ok && (state > Promised || disk.State != Promised) || !ok && disk != me.Disk {
					t.Errorf("at %v it accepts %v: %v, %v", me.Disk, other.Disk, disk, ok)
				}
				_, _ = Form(me.Disk, other.Disk.Cluster)
			}
		}
	})
}
