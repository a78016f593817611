//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/testenv"
)

// definition reads one as a node shows it.
func definition(t *testing.T, text json.RawMessage) (d cluster.Definition) {
	t.Helper()
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatalf("the definition %s: %v", text, err)
	}
	return d
}

// A name is created through two nodes at the same instant, each time with two definitions. One of them is in force, and
// both nodes say which; who asked for the other is told.
func TestManyCreateTheSameName(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	nodes := fleet(t, 2, with(server, short...)...)
	const rounds = 300
	var wins [2]int
	won := map[string]int64{} // the nodes in the winner's definition
	for round := range rounds {
		name := fmt.Sprint("name-", round)
		var answers [2]struct{ Definition json.RawMessage }
		var statuses [2]int
		at := make(chan struct{})
		var both sync.WaitGroup
		for i, n := range nodes {
			both.Go(func() {
				<-at
				var err error
				statuses[i], err = n.create(name, fmt.Sprintf(`"nodes":%d`, 1<<(1+i)), &answers[i])
				if err != nil && codeOf(err) != "exists" {
					t.Errorf("%s: %v", n.name, err)
				}
			})
		}
		close(at)
		both.Wait()
		winner := 0
		if statuses[1] == http.StatusCreated {
			winner = 1
		}
		wins[winner]++
		won[name] = 1 << (1 + winner)
		if statuses[winner] != http.StatusCreated || statuses[1-winner] != http.StatusConflict {
			t.Fatalf("%s: the answers are %v", name, statuses)
		}
		for i, a := range answers {
			if d := definition(t, a.Definition); d.Nodes != won[name] {
				t.Errorf("%s: %s was told of %d nodes; the winner's have %d", name, nodes[i].name, d.Nodes, won[name])
			}
		}
	}
	sameValue(t, nodes)
	created := map[string]int64{}
	for _, n := range nodes {
		for name, nodes := range won {
			s, err := n.sequencer(name)
			if err != nil {
				t.Fatal(err)
			}
			if d := definition(t, s.Definition); d.Nodes != nodes {
				t.Errorf("%s shows %d nodes for %s; the winner's have %d", n.name, d.Nodes, name, nodes)
			}
			if at, ok := created[name]; ok && at != s.Created {
				t.Errorf("%s was created at %d, and at %d for %s", name, at, s.Created, n.name)
			}
			created[name] = s.Created
		}
	}
	t.Logf("%d names; %v of them were created through the one node and the other", rounds, wins)
}
