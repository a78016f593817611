package fence

import (
	"testing"
	"time"

	"github.com/firn-id/firn/store"
)

func (q *party) put(key, value string) {
	q.t.Helper()
	if _, err := q.client.Commit(q.t.Context(),
		store.Txn{Then: []store.Op{store.Put(key, []byte(value))}}); err != nil {
		q.t.Fatal(err)
	}
}

func TestOwnersAreThoseWhoOwnOrOwned(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a, b := p.party("a host, process 1"), p.party("b")
		began := time.Now()
		release(t, a.mustClaim(10), began.Add(5*time.Second))
		b.mustClaim(9)
		time.Sleep(time.Second)
		a.mustClaim(10)
		release(t, b.mustClaim(100), began.Add(2*time.Second))
		a.put(prefix+"last_reported_time/3", "soon")
		a.put(prefix+"live/4", "ABC")
		a.put(prefix+"live/04", "not a node ID")
		owners, err := Owners(t.Context(), a.client, prefix)
		if err != nil {
			t.Fatal(err)
		}
		want := []Owner{
			{Node: 3, Horizon: time.UnixMilli(never)},
			{Node: 4, Live: true},
			{Node: 9, Live: true, Since: began, Name: "b", Horizon: began.Add(window)},
			{
				Node: 10, Live: true, Since: began.Add(time.Second), Name: "a host, process 1",
				Horizon: began.Add(time.Second + window),
			},
			{Node: 100, Horizon: began.Add(2 * time.Second)},
		}
		if len(owners) != len(want) {
			t.Fatalf("got %+v", owners)
		}
		for i, o := range owners {
			w := want[i]
			if o.Node != w.Node || o.Live != w.Live || o.Name != w.Name || !o.Since.Equal(w.Since) ||
				!o.Horizon.Equal(w.Horizon) {
				t.Errorf("got %+v, want %+v", o, w)
			}
		}
		last, err := Latest(t.Context(), a.client, prefix)
		if err != nil || last.Node != 10 || !last.Horizon.Equal(want[3].Horizon) {
			t.Errorf("the latest is %+v, %v; want %+v", last, err, want[3])
		}
	})
}
