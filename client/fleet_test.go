package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// behaviour is how a node answers a request for n IDs.
type behaviour func(f *fleet, r *http.Request, n int) (*http.Response, error)

// fleet is nodes without a network. It is the transport of a client.
type fleet struct {
	mu    sync.Mutex
	nodes map[string]behaviour // by host
	asked map[string]int       // requests, by host
	last  firn.ID
	sent  map[firn.ID]time.Time // when the request for an ID came
	paths []string
}

func newFleet(nodes map[string]behaviour) *fleet {
	return &fleet{nodes: nodes, asked: map[string]int{}, last: 1 << 60, sent: map[firn.ID]time.Time{}}
}

// RoundTrip implements http.RoundTripper.
func (f *fleet) RoundTrip(r *http.Request) (*http.Response, error) {
	n := 1
	if text := r.URL.Query().Get("count"); text != "" {
		n, _ = strconv.Atoi(text)
	}
	f.mu.Lock()
	f.asked[r.URL.Host]++
	f.paths = append(f.paths, r.URL.RequestURI())
	b := f.nodes[r.URL.Host]
	f.mu.Unlock()
	return b(f, r, n)
}

// set has a node behave in another way from now on.
func (f *fleet) set(node string, b behaviour) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes[node] = b
}

// requests is how many a node has had.
func (f *fleet) requests(node string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[node]
}

func answer(status int, body string, header ...string) *http.Response {
	r := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// gives is a node that works, and takes so long.
func gives(after time.Duration) behaviour {
	return func(f *fleet, r *http.Request, n int) (*http.Response, error) {
		came := time.Now()
		select {
		case <-time.After(after):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		var texts []string
		for range n {
			f.last++
			f.sent[f.last] = came
			texts = append(texts, `"`+f.last.String()+`"`)
		}
		if n == 1 && !strings.Contains(r.URL.Path, "/ids") {
			return answer(200, `{"id_str":`+texts[0]+`}`), nil
		}
		return answer(200, `{"ids":[1,2],"ids_str":[`+strings.Join(texts, ",")+`]}`), nil
	}
}

// refuses is a node that answers with an error.
func refuses(status int, code string, header ...string) behaviour {
	return func(*fleet, *http.Request, int) (*http.Response, error) {
		return answer(status, fmt.Sprintf(`{"error":{"code":%q,"message":"so it is"}}`, code), header...), nil
	}
}

// says is a node that answers what is no error and no IDs.
func says(status int, body string) behaviour {
	return func(*fleet, *http.Request, int) (*http.Response, error) { return answer(status, body), nil }
}

var errReset = errors.New("connection reset by peer")

// fails is a node that does not answer.
func fails(err error) behaviour {
	return func(*fleet, *http.Request, int) (*http.Response, error) { return nil, err }
}

// hangs is a node that was stopped.
func hangs(_ *fleet, r *http.Request, _ int) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// of is a client of the fleet's nodes.
func (f *fleet) of(t *testing.T, nodes string, options ...Option) *Client {
	t.Helper()
	var urls []string
	for host := range strings.FieldsSeq(nodes) {
		urls = append(urls, "http://"+host)
	}
	c, err := New(urls, append(options, WithTransport(f))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// within is a context with a deadline.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// mustNext takes an ID.
func mustNext(t *testing.T, c *Client) firn.ID {
	t.Helper()
	id, err := c.Next(within(t, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return id
}
