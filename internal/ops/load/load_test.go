package load_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/packed"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/ops/load"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/grpcapi"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/service/respapi"
	"github.com/firn-id/firn/store/memstore"
)

// patience is how long tests wait for an event.
const patience = time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// giver is a member of a service; give may change the IDs, or fail.
type giver struct {
	calls.Issuer
	give func(ids []firn.ID) error
}

func (g *giver) Next(ctx context.Context) (firn.ID, error) {
	var ids [1]firn.ID
	err := g.FillAfter(ctx, 0, 0, ids[:])
	return ids[0], err
}

func (g *giver) FillAfter(ctx context.Context, after firn.ID, most time.Duration, ids []firn.ID) error {
	if err := g.Issuer.FillAfter(ctx, after, most, ids); err != nil {
		return err
	}
	if g.give == nil {
		return nil
	}
	return g.give(ids)
}

// service serves all protocols, on a store in memory; it returns the URL of each.
func service(t *testing.T, give func(ids []firn.ID) error) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	store := memstore.NewService().Client("node")
	m, err := peer.Join(ctx, store, peer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.EnsureSequencer(ctx, peer.DefaultSequencer, cluster.Define(firn.Default))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Leave()
		_ = store.Close()
	})
	v := calls.New(m, calls.Options{Default: &giver{s, give}})
	e := &auth.Policy{}
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	web := httptest.NewServer(httpapi.New(v, e))
	t.Cleanup(web.Close)
	byGRPC, byRedis := listen(), listen()
	g, r := grpcapi.New(v, e), respapi.New(v, e, nil)
	go func() { _ = g.Serve(byGRPC) }()
	go func() { _ = r.Serve(byRedis) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(g.Shutdown(ctx), r.Shutdown(ctx)); err != nil {
			t.Error(err)
		}
	})
	return map[string]string{"http": web.URL, "grpc": byGRPC.Addr().String(), "redis": byRedis.Addr().String()}
}

// connect returns the Connect of a Plan for a server.
func connect(t *testing.T, protocol, server string, a load.Access) func(int) (load.Connection, error) {
	t.Helper()
	p, err := load.ProtocolByName(protocol)
	if err != nil {
		t.Fatal(err)
	}
	u, err := p.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	return func(int) (load.Connection, error) { return p.Connect(u, a) }
}

// result returns the result of a plan.
func result(t *testing.T, p load.Plan) load.Result {
	t.Helper()
	r := load.New(p)
	if err := r.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r.Result()
}

func TestEveryProtocolBringsIDs(t *testing.T) {
	servers := service(t, nil)
	for protocol, server := range servers {
		for _, batch := range []int{1, 7, 1000} {
			t.Run(fmt.Sprintf("%s, %d at once", protocol, batch), func(t *testing.T) {
				r := result(t, load.Plan{
					Connect: connect(t, protocol, server, load.Access{}), Connections: 3,
					Batch: batch, Count: 2500,
				})
				if r.IDs != 2500 || r.Calls != int64((2500+batch-1)/batch) || r.Failed != 0 || len(r.Errors) != 0 {
					t.Errorf("%+v; want 2500 IDs and no error", r)
				}
				if r.Duplicates.More != 0 || r.Duplicates.Checked != 2500 || r.Descents != 0 {
					t.Errorf("%+v, and %d descents; want no duplicate among 2500", r.Duplicates, r.Descents)
				}
				if r.Latency.Calls() != r.Calls || r.Latency.Max() <= 0 {
					t.Errorf("the latency of %d calls, %v at most; there were %d", r.Latency.Calls(),
						r.Latency.Max(), r.Calls)
				}
			})
		}
	}
}

// Over HTTP the IDs come packed, or in JSON for those who want that.
func TestJSONOverHTTP(t *testing.T) {
	for accept, a := range map[string]load.Access{packed.Type: {}, "": {JSON: true}} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Accept"); got != accept {
				t.Errorf("Accept: %q; want %q", got, accept)
			}
			_, _ = io.WriteString(w, `{"ids":[1,2],"ids_str":["1","2"]}`) // as an older server does
		}))
		defer s.Close()
		if r := result(t,
			load.Plan{Connect: connect(t, "http", s.URL, a), Connections: 1, Batch: 2, Count: 2}); r.IDs != 2 {
			t.Errorf("%+v; want 2 IDs", r)
		}
	}
}

// A run finds an ID that a server issues again, even on another connection.
func TestDuplicatesAreFound(t *testing.T) {
	var calls atomic.Int64
	var twice atomic.Int64
	servers := service(t, func(ids []firn.ID) error {
		switch calls.Add(1) {
		case 10:
			twice.Store(int64(ids[0]))
		case 150:
			ids[0] = firn.ID(twice.Load())
		}
		return nil
	})
	for protocol, server := range servers {
		calls.Store(0)
		r := result(t,
			load.Plan{Connect: connect(t, protocol, server, load.Access{}), Connections: 4, Batch: 2, Count: 1000})
		if d := r.Duplicates; d.More != 1 || len(d.Some) != 1 || int64(d.Some[0]) != twice.Load() {
			t.Errorf("%s: %+v; want that %d came again", protocol, r.Duplicates, twice.Load())
		}
		if r.Descents > 1 { // 0, if it was the first on its connection
			t.Errorf("%s: %d descents, want 1 at most", protocol, r.Descents)
		}
	}
}

func TestErrorsAreCountedByCode(t *testing.T) {
	var calls atomic.Int64
	servers := service(t, func([]firn.ID) error {
		switch calls.Add(1) {
		case 2, 3:
			return peer.ErrWaiting
		case 5:
			return errors.New("something that nobody expected")
		}
		return nil
	})
	wants := map[string]string{"http": "waiting internal", "grpc": "waiting internal", "redis": "WAITING INTERNAL"}
	for protocol, server := range servers {
		calls.Store(0)
		r := result(t,
			load.Plan{Connect: connect(t, protocol, server, load.Access{}), Connections: 1, Batch: 2, Count: 14})
		var got []string
		for _, f := range r.Errors {
			got = append(got, f.Code)
			if f.Example == "" {
				t.Errorf("%s: no example of %s", protocol, f.Code)
			}
		}
		if strings.Join(got, " ") != wants[protocol] || r.Errors[0].Calls != 2 || r.Errors[1].Calls != 1 {
			t.Errorf("%s: %+v; want 2 and 1 of %s", protocol, r.Errors, wants[protocol])
		}
		if r.Calls != 7 || r.Failed != 3 || r.IDs != 8 || r.Latency.Calls() != 4 {
			t.Errorf("%s: %+v; want 7 calls, of which 3 failed", protocol, r.Progress)
		}
	}
}

func TestErrorsThatNoServerTells(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	few := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"ids":[1],"ids_str":["1"]}`)
	}))
	defer few.Close()
	half := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", packed.Type)
		_, _ = w.Write(packed.Append(nil, 1)) // the caller wants two
	}))
	defer half.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_ = closed.Close() // so that no process listens there; last, so that none of the others gets its port
	for _, tt := range []struct{ protocol, server, want string }{
		{"http", closed.Addr().String(), "unreachable"},
		{"grpc", closed.Addr().String(), "unreachable"},
		{"redis", closed.Addr().String(), "unreachable"},
		{"http", other.URL, "http_404"},
		{"grpc", strings.TrimPrefix(other.URL, "http://"), "unreachable"},
		{"redis", strings.TrimPrefix(other.URL, "http://"), "bad_answer"},
		{"http", few.URL, "bad_answer"},
		{"http", half.URL, "bad_answer"},
		{"http", silent.Addr().String(), "timeout"},
		{"grpc", silent.Addr().String(), "timeout"},
		{"redis", silent.Addr().String(), "timeout"},
	} {
		t.Run(tt.protocol+" "+tt.want, func(t *testing.T) {
			p := load.Plan{
				Connect: connect(t, tt.protocol, tt.server, load.Access{}), Connections: 1,
				Batch: 2, Count: 2,
			}
			if tt.want == "timeout" {
				p.Duration, p.Grace = time.Second, 50*time.Millisecond // a second in which the call begins
			}
			r := result(t, p)
			if len(r.Errors) != 1 || r.Errors[0].Code != tt.want || r.Failed != 1 || r.IDs != 0 {
				t.Errorf("%+v; want one error, %s", r, tt.want)
			}
		})
	}
}

// An interrupted run has the results until then, and does not count the calls in progress.
func TestInterrupt(t *testing.T) {
	var calls atomic.Int64
	var interrupt atomic.Pointer[context.CancelFunc]
	servers := service(t, func([]firn.ID) error {
		if calls.Add(1) == 50 {
			(*interrupt.Load())()
			<-time.After(10 * time.Millisecond) // the call is in progress when the run ends
		}
		return nil
	})
	for protocol, server := range servers {
		calls.Store(0)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		interrupt.Store(&cancel)
		run := load.New(load.Plan{Connect: connect(t, protocol, server, load.Access{}), Connections: 1, Batch: 1})
		if err := run.Do(ctx); err != nil {
			t.Fatal(err)
		}
		if r := run.Result(); r.IDs < 49 || r.IDs > 50 || r.Failed != 0 || r.Calls != r.IDs {
			t.Errorf("%s: %+v; want 49 or 50 IDs, and no error", protocol, r)
		}
	}
}

// slow is a connection whose calls take that long.
type slow time.Duration

func (s slow) Take(ctx context.Context, ids []firn.ID) error {
	select {
	case <-time.After(time.Duration(s)):
		for i := range ids {
			ids[i] = firn.ID(next.Add(1))
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s slow) Close() {}

var next atomic.Int64
