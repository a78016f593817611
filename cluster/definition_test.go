package cluster

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

func TestDefinitionDefaults(t *testing.T) {
	var d Definition
	if err := json.Unmarshal([]byte(`{"nodes":100}`), &d); err != nil {
		t.Fatal(err)
	}
	if want := (Definition{Nodes: 100, Layout: firn.Default}); !d.Equal(want) || d.Capacity() != 128 {
		t.Errorf("%+v with room for %d, want %+v", d, d.Capacity(), want)
	}
	if l := d.IDLayout(); l.NodeIDs() != 128 || l.Rate() != 8*firn.Default.Rate() || l.Lifetime() != firn.Default.Lifetime() {
		t.Errorf("IDs of %s", l)
	}
	data, err := json.Marshal(d)
	const want = `{"nodes":100,"allocation":{"kind":"all"},"epoch":`
	if err != nil || !strings.HasPrefix(string(data), want) {
		t.Errorf("%s %v", data, err)
	}
	if d = Define(firn.Default); d.Capacity() != firn.Default.NodeIDs() || d.Validate() != nil || d.IDLayout() != d.Layout {
		t.Errorf("%+v", d)
	}
	elsewhere := d
	elsewhere.Layout.Epoch = d.Layout.Epoch.In(time.FixedZone("there", 3600))
	if !d.Equal(elsewhere) || d.Equal(small(5, Allocation{})) {
		t.Error("the same definition is another in another time zone, or the other way round")
	}
	for nodes, capacity := range map[int64]int64{1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 1023: 1024, 1024: 1024} {
		if have := small(nodes, Allocation{}).Capacity(); have != capacity {
			t.Errorf("%d nodes make %d, want %d", nodes, have, capacity)
		}
	}
}

func TestDefinitionErrorsNameTheValue(t *testing.T) {
	for text, why := range map[string]string{
		`{}`:                        `without "nodes"`,
		`null`:                      `without "nodes"`,
		`{"nodes":0}`:               "0 nodes",
		`{"nodes":1025}`:            "1025 nodes",
		`{"nodes":2,"nods":3}`:      `"nods"`,
		`{"nodes":2,"tick":"2s"}`:   "2s",
		`{"nodes":2,"tick":"fast"}`: `"fast"`,
		`{"nodes":2,"epoch":"9999-12-31T23:59:59-10:00"}`:               "10000",
		`{"nodes":2,"time_bits":63}`:                                    "63 time bits",
		`{"nodes":2,"datacenter_bits":2,"node_bits":8}`:                 "4 datacenters",
		`{"nodes":2,"allocation":{"kind":"some"}}`:                      `"some"`,
		`{"nodes":2,"allocation":{"kind":"count"}}`:                     "count of 0",
		`{"nodes":2,"allocation":{"kind":"count","count":-3}}`:          "count of -3",
		`{"nodes":2,"allocation":{"kind":"percent","percent":101}}`:     "101 percent",
		`{"nodes":2,"allocation":{"kind":"percent"}}`:                   "0 percent",
		`{"nodes":2,"allocation":{"kind":"percent","of":"everything"}}`: `"of"`,
	} {
		var d Definition
		if err := d.UnmarshalJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v; want %q", text, err, why)
		}
	}
	var d Definition // what the kind does not use is dropped, so that equal definitions are equal
	if err := d.UnmarshalJSON([]byte(`{"nodes":2,"allocation":{"kind":"all","count":5,"percent":7}}`)); err != nil || d.Allocation != (Allocation{}) {
		t.Errorf("%+v %v", d, err)
	}
}
