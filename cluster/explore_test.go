package cluster

import (
	"flag"
	"testing"
	"time"
)

var deeper = flag.Bool("deeper", false, "explore more: takes an hour, and memory")

func TestExplore(t *testing.T) {
	for _, sc := range []scope{
		{peers: 2, lag: 4, budget: budget{}},
		{peers: 2, lag: 4, budget: budget{crashes: 1}},
		{peers: 2, lag: 4, budget: budget{crashes: 1, comebacks: 1}},
		{peers: 2, lag: 4, budget: budget{losses: 1}},
		{peers: 2, lag: 4, budget: budget{aborts: 1}},
		{peers: 2, lag: 4, budget: budget{lates: 1}},
		{peers: 3, lag: 4, budget: budget{crashes: 1}},
		{peers: 3, lag: 4, budget: budget{crashes: 2}},
		{peers: 3, lag: 6, budget: budget{crashes: 2}},
		{peers: 3, lag: 4, budget: budget{crashes: 2, comebacks: 1}},
		{peers: 3, lag: 4, budget: budget{crashes: 2, comebacks: 1, aborts: 1}},
		{peers: 4, lag: 3, budget: budget{crashes: 1}},
	} {
		begin := time.Now()
		x, violation := explore(sc, realRules())
		t.Logf("%+v: %d worlds, %d edges, %d good, %d values, %v", sc, len(x.worlds), len(x.dues), x.good, len(x.values), time.Since(begin))
		if violation != "" {
			t.Fatal(violation)
		}
	}
}
