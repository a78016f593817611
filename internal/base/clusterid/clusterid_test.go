package clusterid_test

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/firn-id/firn/internal/base/clusterid"
)

// Nodes are compared as the clients in all languages compare them.
func TestKnown(t *testing.T) {
	data, err := os.ReadFile("../../../clients/conformance/clusters.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name    string
		Answers []struct {
			Node, Cluster string
			Mixed         *struct{ Node, Cluster string } // nil: the answer is taken
		}
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 10 {
		t.Errorf("%d cases; want all", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			var known clusterid.Known
			for i, a := range c.Answers {
				var want *clusterid.MixedError
				if a.Mixed != nil {
					want = &clusterid.MixedError{
						Node: a.Node, Cluster: a.Cluster, Other: a.Mixed.Node,
						OtherCluster: a.Mixed.Cluster,
					}
				}
				if got := known.Take(a.Node, a.Cluster); !reflect.DeepEqual(got, want) {
					t.Errorf("answer %d of %s, of cluster %q: %+v; want %+v", i+1, a.Node, a.Cluster, got, want)
				}
			}
		})
	}
}
