//go:build unix

package e2e

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ids "github.com/firn-id/firn"
)

// reply is how a stub answers a request. The zero value gives IDs that no other request got.
type reply struct {
	IDs        []string `json:"ids"`    // these numbers, right or wrong
	Status     int      `json:"status"` // with Code, or else Body, unless it is endless
	Code       string   `json:"code"`
	Cluster    string   `json:"cluster"`     // its ID; empty: the reply does not say
	RetryAfter int      `json:"retry_after"` // in seconds; 0: the reply does not say
	Body       string   `json:"body"`
	Location   string   `json:"location"`
	Hold       bool     `json:"hold"`    // answer when the stub gets another script, by that
	Reset      bool     `json:"reset"`   // the connection
	Cut        bool     `json:"cut"`     // the connection, in the middle of the IDs
	Endless    bool     `json:"endless"` // go on until the client has enough
}

// tooMuch is how many bytes of an endless answer a client may take: what the kernel holds for both, and some.
const tooMuch = 32 << 20

// stub is a node that answers by a script. IDs that it gives are above 2^53.
type stub struct {
	server *httptest.Server
	fault  func(format string, args ...any)
	supply *supply

	mu       sync.Mutex // guards what follows
	script   []reply    // the next one first; the last one stays
	changed  chan struct{}
	requests []*request // since the script began
}

// request is one that a stub got. The stub's mu guards it.
type request struct {
	path    string
	at      time.Time     // when it came
	hedge   bool          // it may be the second one of a call that took so long
	replied time.Time     // zero: not yet
	rest    time.Duration // that the reply asked for
}

// packed is the media type of IDs that have 8 bytes each, big-endian.
const packed = "application/octet-stream"

const (
	hedgedAfter = 10 * time.Millisecond  // clients wait at least so long before they ask another node, too
	late        = 100 * time.Millisecond // a hedge comes at most so long after its call has ended
)

// supply is the IDs that the stubs of one driver give.
type supply struct {
	called atomic.Pointer[time.Time] // when the latest call began
	long   atomic.Pointer[time.Time] // when the latest one ended that took hedgedAfter

	mu    sync.Mutex // guards what follows
	next  ids.ID
	given []batch // ascending
}

type batch struct {
	from, to ids.ID // to is not in it
	asked    time.Time
}

func (s *supply) take(n int, asked time.Time) []ids.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := batch{s.next, s.next + ids.ID(n), asked}
	s.given, s.next = append(s.given, b), b.to
	taken := make([]ids.ID, n)
	for i := range taken {
		taken[i] = b.from + ids.ID(i)
	}
	return taken
}

// asked tells when the request came that got an ID; false: none did.
func (s *supply) asked(id ids.ID) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := sort.Search(len(s.given), func(i int) bool { return id < s.given[i].to })
	if i == len(s.given) || id < s.given[i].from {
		return time.Time{}, false
	}
	return s.given[i].asked, true
}

// newStub starts a stub, which calls fault about what no client may do.
func newStub(t *testing.T, s *supply, fault func(format string, args ...any)) *stub {
	n := &stub{fault: fault, supply: s, script: []reply{{}}, changed: make(chan struct{})}
	n.server = httptest.NewServer(n)
	t.Cleanup(func() {
		n.play([]reply{{}}) // releases the requests that it holds
		n.server.CloseClientConnections()
		n.server.Close()
	})
	return n
}

func (n *stub) play(script []reply) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.script, n.requests = script, nil
	close(n.changed)
	n.changed = make(chan struct{})
}

// asked counts the requests since the script began: those to a path, or all.
func (n *stub) asked(path string) (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.requests {
		if path == "" || r.path == path {
			count++
		}
	}
	return count
}

// disturbed returns how long after a reply another call began with this stub, though the reply asked for a longer rest.
func (n *stub) disturbed() (after, rest time.Duration, found bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.requests {
		for _, later := range n.requests {
			if after := later.at.Sub(r.replied); !later.hedge && !r.replied.IsZero() && after > 0 && after < r.rest {
				return after, r.rest, true
			}
		}
	}
	return 0, 0, false
}

func (n *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		n.fault("%s %s; want POST", r.Method, r.URL)
	}
	request := &request{path: r.URL.EscapedPath(), at: time.Now()}
	called, long := n.supply.called.Load(), n.supply.long.Load()
	request.hedge = called != nil && request.at.Sub(*called) >= hedgedAfter ||
		long != nil && request.at.Sub(*long) < late
	n.mu.Lock()
	n.requests = append(n.requests, request)
	n.mu.Unlock()
	for {
		reply, changed := n.next()
		if !reply.Hold {
			n.answer(w, r, reply, request)
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (n *stub) next() (reply, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	next := n.script[0]
	if len(n.script) > 1 {
		n.script = n.script[1:]
	}
	return next, n.changed
}

func (n *stub) answer(w http.ResponseWriter, r *http.Request, reply reply, request *request) {
	if reply.Cluster != "" {
		w.Header().Set("Firn-Cluster", reply.Cluster)
	}
	if reply.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(reply.RetryAfter))
	}
	if reply.Location != "" {
		w.Header().Set("Location", reply.Location)
	}
	switch {
	case reply.Reset:
		hangUp(w, "")
	case reply.Endless:
		n.endless(w, cmp.Or(reply.Status, http.StatusOK))
	case reply.Code != "":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(reply.Status)
		fmt.Fprintf(w, `{"error":{"code":%q,"message":"a stub says so"}}`, reply.Code)
	case reply.Status != 0:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(reply.Status)
		fmt.Fprint(w, reply.Body)
	default:
		n.give(w, r, reply, request.at)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	request.replied, request.rest = time.Now(), time.Duration(reply.RetryAfter)*time.Second
}

// give answers with IDs.
func (n *stub) give(w http.ResponseWriter, r *http.Request, reply reply, asked time.Time) {
	count, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("count"), "1"))
	if err != nil || count < 1 || count > 100_000 {
		n.fault("%s: want a count of 1 to 100000", r.URL)
		http.Error(w, "count", http.StatusBadRequest)
		return
	}
	var given []ids.ID
	for _, text := range reply.IDs {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			n.fault("the scenario has the ID %q: %v", text, err)
		}
		given = append(given, ids.ID(id))
	}
	if reply.IDs == nil {
		given = n.supply.take(count, asked)
	}
	kind, body := packed, []byte(nil)
	for _, id := range given {
		body = binary.BigEndian.AppendUint64(body, uint64(id))
	}
	if form := r.URL.Query().Get("form"); form != "" || r.Header.Get("Accept") != packed {
		kind, body = "application/json", n.text(cmp.Or(form, "decimal"), given)
	}
	if reply.Cut {
		hangUp(w, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", kind, len(body),
			body[:len(body)/2]))
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(body)
}

// text is the answer in JSON, as that of a node with ?form=.
func (n *stub) text(form string, given []ids.ID) []byte {
	encoding, err := ids.EncodingByName(form)
	if err != nil {
		n.fault("%v", err)
		encoding = ids.Decimal
	}
	var texts, decimals []string
	for _, id := range given {
		texts, decimals = append(texts, encoding.Encode(id)), append(decimals, ids.Decimal.Encode(id))
	}
	answer := map[string]any{"ids": texts, "ids_str": decimals}
	if len(given) == 1 {
		answer = map[string]any{"id": texts[0], "id_str": decimals[0]}
	}
	body, err := json.Marshal(answer)
	if err != nil {
		n.fault("%v", err)
	}
	return body
}

func (n *stub) endless(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", packed)
	w.WriteHeader(status)
	some := make([]byte, 64<<10)
	for taken := 0; ; taken += len(some) {
		if taken > tooMuch {
			n.fault("the client took %d bytes of an answer that was to have few; want it to stop reading", taken)
			return
		}
		if _, err := w.Write(some); err != nil {
			return
		}
	}
}

// hangUp sends the text, if any, and closes the connection; without a text it resets it.
func hangUp(w http.ResponseWriter, text string) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	if text == "" {
		_ = conn.(*net.TCPConn).SetLinger(0)
	}
	_, _ = conn.Write([]byte(text))
	_ = conn.Close()
}
