//go:build unix

package e2e

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	ids "github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/internal/test/responsive"
	"github.com/firn-id/firn/internal/test/testenv"
)

var clientFor = flag.Duration("client", 20*time.Second, "TestClientOfManyNodes: for how long nodes are troubled")

const (
	callers      = 64
	callWithin   = time.Second           // the deadline of each call
	callEvery    = 10 * time.Millisecond // of each caller, on average
	quietFor     = 4 * time.Second       // before the trouble begins
	aheadMaxAge  = 300 * time.Millisecond
	aheadCount   = 4000 // more than is used within that: some expire
	clientWindow = 3 * time.Second
	drainDelay   = 500 * time.Millisecond
	// for how long nodes feel that the machine was late: sessions and horizons ended
	felt = ttl + 2*clientWindow
)

// seat is a node that is always found at the same port.
type seat struct {
	t    *testing.T
	name string
	args []string
	runs int
	n    *node
}

func (s *seat) start() {
	s.t.Helper()
	s.runs++
	s.n = serve(s.t, fmt.Sprintf("%s, run %d", s.name, s.runs), s.args...)
}

// crowd is many callers that share a client.
type crowd struct {
	t      *testing.T
	client *client.Client
	ledger ledger
	done   sync.WaitGroup
	end    chan struct{}
	failed atomic.Int64
	// excused are calls that failed while the machine was late.
	excused atomic.Int64

	mu        sync.Mutex
	durations map[string][]time.Duration // by phase
	phase     string
	age       time.Duration // the oldest when handed out, by the monotonic clock
	apparent  time.Duration // the oldest, by what the ID says and the wall clock
	attempts  map[string]int
	expired   int
}

// hooks are told by the client itself.
func (c *crowd) hooks() client.Hooks {
	return client.Hooks{
		Attempt: func(a client.Attempt) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.attempts["requests"]++
			if a.Hedged {
				c.attempts["requests while another was out"]++
			}
			if a.Err != nil {
				c.attempts["requests without IDs"]++
			}
		},
		Call: func(call client.Call) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.age = max(c.age, call.Age)
		},
		Batch: func(b client.Batch) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.expired += b.Expired
		},
	}
}

func (c *crowd) enter(phase string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase = phase
}

// call takes IDs, and the time.
func (c *crowd) call(buffer []ids.ID) {
	c.mu.Lock()
	phase := c.phase
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), callWithin)
	defer cancel()
	began := time.Now()
	err := c.client.Fill(ctx, buffer)
	now := time.Now()
	if err != nil {
		if responsive.Late(began.Add(-felt)) > responsive.Limit {
			c.excused.Add(1)
		} else if c.failed.Add(1) <= 10 {
			c.t.Errorf("%s: %v", phase, err)
		}
		return
	}
	given := make([]int64, len(buffer))
	for i, id := range buffer {
		given[i] = int64(id)
	}
	c.ledger.add(given)
	made, err := ids.Default.Time(slices.Min(buffer))
	if err != nil {
		c.t.Error(err)
	}
	oldest := now.Sub(made)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.durations[phase] = append(c.durations[phase], now.Sub(began))
	c.apparent = max(c.apparent, oldest)
}

func (c *crowd) run() {
	for range callers {
		c.done.Go(func() {
			for {
				select {
				case <-c.end:
					return
				case <-time.After(rand.N(2 * callEvery)):
				}
				n := 1
				if rand.IntN(10) == 0 {
					n += rand.IntN(5)
				}
				c.call(make([]ids.ID, n))
			}
		})
	}
}

// report prints what was measured.
func (c *crowd) report() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, phase := range []string{"quiet", "kill", "stop", "drain"} {
		d := c.durations[phase]
		if len(d) == 0 {
			continue
		}
		slices.Sort(d)
		at := func(q float64) time.Duration { return d[min(int(q*float64(len(d))), len(d)-1)].Round(time.Microsecond) }
		c.t.Logf("%8s: %6d calls, p50 %v, p99 %v, p99.9 %v, max %v", phase, len(d), at(.5), at(.99), at(.999), at(1))
	}
	c.t.Logf("%v, %d IDs expired, the oldest ID handed out: %v by the monotonic clock, %v by its own time", c.attempts,
		c.expired, c.age, c.apparent)
}

// 64 callers take IDs from three nodes, and a fourth that never is ready, through one client. While the three are
// killed, stopped for longer than their lease and window, and restarted, one after the other, no ID comes twice, and no
// caller has an error if the machine lets programs run in time. With IDs fetched ahead, none is older than it may be.
//
// It runs before the other tests, which are parallel: beside them a machine of two cores lets a call wait for most of
// its second.
func TestClientOfManyNodes(t *testing.T) {
	testenv.Slow(t)
	server := etcdtest.Start(t, etcdtest.Options{})
	never := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"error":{"code":"not_ready","message":"never"}}`)
	}))
	t.Cleanup(never.Close)

	urls := []string{never.URL}
	var seats []*seat
	var all ledger
	for i := range 3 {
		at := proxytest.FixedAddress(t)
		s := &seat{t: t, name: fmt.Sprint("node ", i), args: with(server, "--http-addr="+at, "--admin-addr=127.0.0.1:0",
			"--ttl="+ttl.String(), "--window="+clientWindow.String(), "--drain-delay="+drainDelay.String())}
		s.start()
		s.n.ready(t, &all)
		seats = append(seats, s)
		urls = append(urls, "http://"+at)
	}

	watched := time.Now()
	crowds := map[string]*crowd{}
	for name, options := range map[string][]client.Option{
		"at once": nil,
		"ahead":   {client.WithPrefetch(aheadCount, aheadMaxAge)},
	} {
		c := &crowd{
			t: t, end: make(chan struct{}), durations: map[string][]time.Duration{}, attempts: map[string]int{},
			phase: "quiet",
		}
		var err error
		if c.client, err = client.New(urls, append(options, client.WithHooks(c.hooks()))...); err != nil {
			t.Fatal(err)
		}
		crowds[name] = c
	}
	finish := sync.OnceFunc(func() {
		for _, c := range crowds {
			close(c.end)
			c.done.Wait()
			_ = c.client.Close()
		}
	})
	defer finish()
	for _, c := range crowds {
		c.run()
	}
	enter := func(phase string) {
		for _, c := range crowds {
			c.enter(phase)
		}
	}
	time.Sleep(quietFor) // it is measured

	var done []string
	for began, round := time.Now(), 0; time.Since(began) < *clientFor && !t.Failed(); round++ {
		s := seats[round%len(seats)]
		trouble := []string{"kill", "stop", "drain"}[(round+round/3)%3]
		enter(trouble)
		s.trouble(trouble)
		s.n.ready(t, &all) // one at a time
		done = append(done, trouble)
	}
	finish()
	t.Logf("%s; the machine was late by %v at most", strings.Join(done, ", "),
		responsive.Late(watched).Round(time.Millisecond))
	for name, c := range crowds {
		t.Log(name + ":")
		c.report()
		if n := c.failed.Load(); n > 0 {
			t.Errorf("%s: %d calls failed", name, n)
		}
		if n := c.excused.Load(); n > 0 {
			t.Logf("%s: %d more calls failed, which is not judged: this machine was late", name, n)
		}
		if name == "ahead" && c.age > aheadMaxAge {
			t.Errorf("an ID was %v old when it was handed out", c.age)
		}
		all.add(c.ledger.ids)
	}
	all.unique(t, 1000)
}

// trouble does to a node what may happen to one, and starts it again.
func (s *seat) trouble(what string) {
	s.t.Helper()
	switch what {
	case "kill":
		s.n.kill()
		s.start()
	case "drain":
		s.n.signal(syscall.SIGTERM)
		if status := s.n.ended(); status != 0 {
			s.t.Errorf("%s ended with status %d", s.n.name, status)
		}
		s.start()
	case "stop":
		s.n.signal(syscall.SIGSTOP)
		time.Sleep(ttl + clientWindow + time.Second) // longer than what it holds lasts
		s.n.signal(syscall.SIGCONT)
	}
}
