package demo

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/test/testenv"
)

// Who kills a node while the demo begins waits until it has begun, and does not end it.
func TestACommandWaitsForTheBeginning(t *testing.T) {
	testenv.Slow(t)
	d := &demo{
		config: Config{
			Nodes: 3, Quorum: true, HTTPAddr: "127.0.0.1:0", AdminAddr: "127.77.0.1:9080", // a port that is known
			TTL: 3 * time.Second, Window: 10 * time.Second, Logs: io.Discard,
		},
		out: console.NewStatusLine(io.Discard), secret: auth.NewSecret(), began: time.Now(),
	}
	t.Cleanup(d.close)
	killed := make(chan int, 1)
	go func() {
		for {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
				"http://127.77.0.1:9080"+NodesPath+"3/kill", http.NoBody)
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer "+d.secret.Token())
			if answer, err := http.DefaultClient.Do(r); err == nil {
				_ = answer.Body.Close()
				killed <- answer.StatusCode
				return
			}
			if retry.Sleep(t.Context(), time.Millisecond) != nil {
				return
			}
		}
	}()
	if err := d.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status := <-killed; status != http.StatusOK || d.runs() != 2 {
		t.Errorf("status %d, and %d nodes run; want 200, and 2", status, d.runs())
	}
}
