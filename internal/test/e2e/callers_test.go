//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// audience are programs that take IDs all the time, each over connections that are kept, and ask once more when that
// fails: at once, whatever the reason, and at the next node if they know several.
type audience struct {
	t      *testing.T
	ledger *ledger
	stop   chan struct{}
	all    sync.WaitGroup

	mu    sync.Mutex // guards calls
	calls []call
}

// call is one that a caller made, with its second try.
type call struct {
	caller       int
	node         int // that was asked first
	began, ended time.Time
	first, err   error // of the first try, and in the end
}

const (
	askersAtOnce = 8
	askEvery     = 20 * time.Millisecond // each of them
	askFor       = 2 * time.Second       // until it is asked once more
)

// mercy is what a busy machine may add to how long a fault is felt. It is no claim about speed.
const mercy = 10 * time.Second

// newAudience has callers take IDs at nodes until finish: the first caller at the first, the next one at the next.
func newAudience(t *testing.T, l *ledger, dial func(ctx context.Context, network, address string) (net.Conn, error),
	nodes ...string,
) *audience {
	c := &audience{t: t, ledger: l, stop: make(chan struct{})}
	for i := range askersAtOnce {
		transport := &http.Transport{DialContext: dial, MaxConnsPerHost: 1}
		client := &http.Client{Transport: transport, Timeout: askFor}
		c.all.Go(func() {
			defer transport.CloseIdleConnections()
			for turn := time.NewTicker(askEvery); ; {
				select {
				case <-c.stop:
					turn.Stop()
					return
				case <-turn.C:
					c.call(i, client, nodes)
				}
			}
		})
	}
	return c
}

func (c *audience) call(caller int, client *http.Client, nodes []string) {
	made := call{caller: caller, node: caller % len(nodes), began: time.Now()}
	id, err := take(client, nodes[made.node]+"/api/v1/id")
	if made.first = err; err != nil {
		id, err = take(client, nodes[(made.node+1)%len(nodes)]+"/api/v1/id")
	}
	made.err, made.ended = err, time.Now()
	if err == nil {
		c.ledger.add([]int64{id})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, made)
}

// take takes one ID.
func take(client *http.Client, url string) (int64, error) {
	response, err := client.Post(url, "", nil)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("status %d: %.200s", response.StatusCode, body)
	}
	var answer struct {
		Text string `json:"id_str"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return 0, fmt.Errorf("%.200q: %w", body, err)
	}
	return strconv.ParseInt(answer.Text, 10, 64)
}

// served waits until each caller has made so many calls from now on that succeeded at the first try: of those that ask
// one of some nodes first, unless there are none of these.
func (c *audience) served(each int, nodes ...int) {
	c.t.Helper()
	from := time.Now()
	eventually(c.t, func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		var good [askersAtOnce]int
		for _, made := range c.calls {
			if made.first == nil && made.began.After(from) || len(nodes) > 0 && !slices.Contains(nodes, made.node) {
				good[made.caller]++
			}
		}
		for i, n := range good {
			if n < each {
				return fmt.Errorf("caller %d was served %d times in %v; want %d", i, n, time.Since(from), each)
			}
		}
		return nil
	})
}

// finish ends the callers, and says what they saw.
func (c *audience) finish() sight {
	close(c.stop)
	c.all.Wait()
	s := sight{calls: len(c.calls)}
	latest := time.Time{} // when somebody was served; calls are in the order of their ends
	for _, made := range c.calls {
		s.longest = max(s.longest, made.ended.Sub(made.began))
		if made.first != nil {
			s.again++
		}
		if made.err != nil {
			s.failed = append(s.failed, made)
			continue
		}
		if !latest.IsZero() {
			s.silence = max(s.silence, made.ended.Sub(latest))
		}
		latest = made.ended
	}
	return s
}

// sight is what callers saw of a fault.
type sight struct {
	calls, again     int           // made, and of these asked twice
	failed           []call        // in spite of that
	longest, silence time.Duration // of one call, and without an answer to any
}
