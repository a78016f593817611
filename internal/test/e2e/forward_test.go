//go:build unix

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/testenv"
)

// One of four nodes serves a sequencer; a call at any, over any protocol, gets its IDs. Where a node is told not to ask
// others, it says so; and once the one that serves it is killed, another takes its place.
func TestAnyNodeAnswers(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	nodes := fleet(t, 4,
		with(server, append(short, "--no-forward=false", "--grpc-addr=127.0.0.1:0", "--redis-addr=127.0.0.1:0")...)...)
	nodes[0].mustCreate("orders", `"allocation":{"kind":"count","count":1}`)
	var l ledger
	ask := func(n *node) (made string) {
		t.Helper()
		var one struct{ ID int64 }
		var several struct{ IDs []int64 }
		if _, err := n.call(http.MethodPost, sequencers+"/orders/id", "", &one); err != nil {
			t.Fatalf("%s: an ID over HTTP: %v", n.name, err)
		}
		if _, err := n.call(http.MethodPost, sequencers+"/orders/ids?count=5000", "", &several); err != nil ||
			len(several.IDs) != 5000 {
			t.Fatalf("%s: %d IDs over HTTP: %v", n.name, len(several.IDs), err)
		}
		l.add(append(several.IDs, one.ID))

		conn, err := grpc.NewClient(n.listens("grpc_addr"), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		ids := firnv1.NewFirnClient(conn)
		var header metadata.MD
		next, err := ids.Next(ctx, &firnv1.NextRequest{Sequencer: "orders"}, grpc.Header(&header))
		if err != nil {
			t.Fatalf("%s: an ID over gRPC: %v", n.name, err)
		}
		l.add([]int64{next.GetId()})
		stream, err := ids.Stream(ctx, &firnv1.StreamRequest{Sequencer: "orders", BatchSize: 100, Total: 1000})
		for got, last := 0, int64(0); got < 1000; {
			if err != nil {
				t.Fatalf("%s: a stream, after %d IDs: %v", n.name, got, err)
			}
			var batch *firnv1.StreamResponse
			batch, err = stream.Recv()
			for _, id := range batch.GetIds() {
				if id <= last {
					t.Fatalf("%s: a stream has %d after %d", n.name, id, last)
				}
				last = id
			}
			got += len(batch.GetIds())
			l.add(batch.GetIds())
		}

		client := redis.NewClient(&redis.Options{Addr: n.listens("redis_addr"), MaxRetries: -1})
		defer client.Close()
		id, err := client.Incr(ctx, "orders").Result()
		if err != nil {
			t.Fatalf("%s: INCR: %v", n.name, err)
		}
		last, err := client.IncrBy(ctx, "orders", 1).Result()
		if err != nil {
			t.Fatalf("%s: INCRBY: %v", n.name, err)
		}
		l.add([]int64{id, last})
		return strings.Join(header.Get("firn-made-by"), "")
	}
	holders := map[string]int{}
	for _, n := range nodes {
		holders[ask(n)]++
	}
	if len(holders) != 2 || holders[""] != 1 {
		t.Errorf("made by %v; want here once, and by one other thrice", holders)
	}

	deaf := serve(t, "deaf", with(server, short...)...)
	deaf.ready(t, new(ledger))
	eventually(t, func() error {
		if _, err := deaf.call(http.MethodPost, sequencers+"/orders/id", "", nil); codeOf(err) != "waiting" {
			return fmt.Errorf("%s: %w; want waiting", deaf.name, err)
		}
		return nil
	})

	living := slices.DeleteFunc(nodes, func(n *node) bool {
		s, err := n.sequencer("orders")
		if err != nil {
			t.Fatal(err)
		}
		if s.Here.State != "attached" {
			return false
		}
		n.kill()
		return true
	})
	for _, n := range living {
		eventually(t, func() error {
			_, err := n.call(http.MethodPost, sequencers+"/orders/id", "", nil)
			return err
		})
		ask(n)
	}
	l.unique(t, 7*6000)
}
