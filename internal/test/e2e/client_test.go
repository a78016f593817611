//go:build unix

package e2e

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// ledger is every ID that any node of a test has given.
type ledger struct {
	mu  sync.Mutex
	ids []int64
}

func (l *ledger) add(ids []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = append(l.ids, ids...)
}

// unique fails the test if an ID was given twice, or if there are fewer than least.
func (l *ledger) unique(t *testing.T, least int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.ids)
	twice := 0
	for i := range l.ids {
		if i > 0 && l.ids[i] == l.ids[i-1] {
			if twice++; twice <= 10 {
				t.Errorf("%d was given twice", l.ids[i])
			}
		}
	}
	t.Logf("%d IDs, %d of them twice", len(l.ids), twice)
	if len(l.ids) < least {
		t.Errorf("there are only %d IDs; the test is to have at least %d", len(l.ids), least)
	}
}

// connection is one connection to a node. It takes IDs of one sequencer, one request after the other, checks that they
// are positive and ascend, and enters them in the ledger.
type connection struct {
	t           *testing.T
	n           *node
	path        string // of the sequencer
	ledger      *ledger
	http        *http.Client
	first, last int64 // of the latest answer
}

// connect is for the default sequencer.
func (n *node) connect(t *testing.T, l *ledger) *connection {
	transport := &http.Transport{MaxConnsPerHost: 1}
	t.Cleanup(transport.CloseIdleConnections)
	return &connection{
		t: t, n: n, path: "/api/v1", ledger: l,
		http: &http.Client{Transport: transport, Timeout: patience},
	}
}

// connectTo is for a sequencer with a name.
func (n *node) connectTo(t *testing.T, name string, l *ledger) *connection {
	c := n.connect(t, l)
	c.path = sequencers + "/" + name
	return c
}

// one takes an ID.
func (c *connection) one() error {
	var answer struct {
		ID    int64  `json:"id"`
		IDStr string `json:"id_str"`
	}
	if err := c.post("/id", &answer); err != nil {
		return err
	}
	return c.enter([]int64{answer.ID}, []string{answer.IDStr})
}

// many takes a batch.
func (c *connection) many(count int) error {
	var answer struct {
		IDs    []int64  `json:"ids"`
		IDsStr []string `json:"ids_str"`
	}
	if err := c.post("/ids?count="+strconv.Itoa(count), &answer); err != nil {
		return err
	}
	if len(answer.IDs) != count {
		c.t.Errorf("%s: asked for %d IDs, got %d", c.n.name, count, len(answer.IDs))
	}
	return c.enter(answer.IDs, answer.IDsStr)
}

func (c *connection) post(path string, into any) error {
	_, err := exchange(c.http, http.MethodPost, c.n.url+c.path+path, "", into)
	return err
}

func (c *connection) enter(ids []int64, texts []string) error {
	for i, id := range ids {
		if i == 0 {
			c.first = id
		}
		if id <= c.last {
			c.t.Errorf("%s: %d after %d on one connection", c.n.name, id, c.last)
		}
		if i >= len(texts) || texts[i] != strconv.FormatInt(id, 10) {
			c.t.Errorf("%s: %d has the text %q", c.n.name, id, texts)
		}
		c.last = id
	}
	c.ledger.add(ids)
	return nil
}

// ready waits until the node gives IDs.
func (n *node) ready(t *testing.T, l *ledger) {
	t.Helper()
	c := n.connect(t, l)
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		err := c.one()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s gives no ID: %v\n%s", n.name, err, n.log)
		}
	}
}

// unready waits until the node gives no ID, and checks how it says so.
func (n *node) unready(t *testing.T, l *ledger) {
	t.Helper()
	c := n.connect(t, l)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		switch err := c.one().(type) {
		case nil:
		case *refused:
			if err.status != http.StatusServiceUnavailable || err.retryAfter == "" {
				t.Errorf("%s refuses with %d, Retry-After %q: %s", n.name, err.status, err.retryAfter, err.body)
			}
			return
		default:
			t.Fatalf("%s: %v", n.name, err)
		}
	}
	t.Fatalf("%s goes on giving IDs", n.name)
}

// load takes IDs from a node over several connections until it is told to end, and then tells how many answers were
// refusals, by status.
type load struct {
	end  chan struct{}
	done sync.WaitGroup

	mu      sync.Mutex
	refused map[int]int
	lastOK  time.Time // when the latest ID was asked for
}

func (n *node) load(t *testing.T, l *ledger, connections int) *load {
	b := &load{end: make(chan struct{}), refused: map[int]int{}}
	for range connections {
		c := n.connect(t, l)
		b.done.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-b.end:
					return
				case <-time.After(time.Millisecond):
				}
				asked := time.Now()
				var err error
				if i%10 == 0 {
					err = c.many(50)
				} else {
					err = c.one()
				}
				b.note(asked, err)
			}
		})
	}
	return b
}

func (b *load) note(asked time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch err := err.(type) {
	case nil:
		b.lastOK = asked
	case *refused:
		b.refused[err.status]++
	default:
		b.refused[0]++ // no answer: the process is gone
	}
}

// finish ends the load.
func (b *load) finish() map[int]int {
	close(b.end)
	b.done.Wait()
	return b.refused
}
