package etcdstore_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/internal/answers"
)

// hostile is a server that answers as a script of bytes says: as etcd would, or not. It knows nothing.
type hostile struct {
	mu       sync.Mutex
	script   []byte
	over     context.CancelFunc // of the script, or of the client's patience
	revision int64
}

func (h *hostile) next() byte {
	if len(h.script) == 0 {
		h.over()
		return 0
	}
	b := h.script[0]
	h.script = h.script[1:]
	return b
}

func (h *hostile) header() *etcdserverpb.ResponseHeader {
	h.revision++
	return &etcdserverpb.ResponseHeader{Revision: h.revision}
}

// call answers in place of a connection.
func (h *hostile) call(_ context.Context, _ string, req, reply any, _ *grpc.ClientConn, _ grpc.UnaryInvoker,
	_ ...grpc.CallOption,
) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	how := h.next()
	if how != 0 {
		defer h.over() // it need not try again
	}
	if how == 1 { // any message
		raw := h.script
		h.script = nil
		return proto.Unmarshal(raw, reply.(proto.Message))
	}
	switch r := reply.(type) {
	case *etcdserverpb.RangeResponse:
		proto.Merge(r, h.ranged(how, req.(*etcdserverpb.RangeRequest)))
		r.Header = h.header()
		if how == 2 {
			r.Header = nil
		}
	case *etcdserverpb.TxnResponse:
		h.txn(how, req.(*etcdserverpb.TxnRequest), r)
	case *etcdserverpb.LeaseGrantResponse:
		r.ID, r.TTL = 7, []int64{10, 0, -1, 1 << 40, 1 << 62}[int(h.next())%5]
	case *etcdserverpb.StatusResponse:
		r.Version = []string{"3.6.20", "", "3.4.0", "x"}[int(h.next())%4]
	}
	return nil
}

func (h *hostile) ranged(how byte, req *etcdserverpb.RangeRequest) *etcdserverpb.RangeResponse {
	r := new(etcdserverpb.RangeResponse)
	switch how {
	case 3: // a position that is none
		r.Kvs = []*mvccpb.KeyValue{{Key: req.Key, Value: []byte("x"), CreateRevision: 1, ModRevision: 1}}
	case 4: // revisions that are none
		r.Kvs = []*mvccpb.KeyValue{{Key: req.Key}}
	case 5: // others, twice
		r.Kvs = []*mvccpb.KeyValue{
			{Key: []byte("z"), CreateRevision: 1, ModRevision: 1},
			{Key: []byte("a"), CreateRevision: 1, ModRevision: 1},
		}
	case 6:
		r.More = true
	default:
		for i := range int64(h.next() % 3) {
			key := req.Key
			if len(req.RangeEnd) > 0 {
				key = append(append([]byte{}, req.Key...), 'a'+byte(i))
			} else if i > 0 {
				break
			}
			r.Kvs = append(r.Kvs, &mvccpb.KeyValue{
				Key: key, Value: []byte("0000000000000000001"),
				CreateRevision: i + 1, ModRevision: i + 1,
			})
		}
	}
	return r
}

func (h *hostile) txn(how byte, req *etcdserverpb.TxnRequest, r *etcdserverpb.TxnResponse) {
	ops := req.Failure
	if r.Succeeded = h.next()%2 == 0; r.Succeeded {
		ops = req.Success
	}
	if r.Header = h.header(); how == 2 {
		r.Header = nil
	}
	for _, op := range ops {
		answer := new(etcdserverpb.ResponseOp)
		switch {
		case how == 7: // an answer that is none
		case op.GetRequestRange() != nil:
			answer.Response = &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: h.ranged(how, op.GetRequestRange())}
		case op.GetRequestPut() != nil:
			answer.Response = &etcdserverpb.ResponseOp_ResponsePut{ResponsePut: new(etcdserverpb.PutResponse)}
		default:
			answer.Response = &etcdserverpb.ResponseOp_ResponseDeleteRange{
				ResponseDeleteRange: new(etcdserverpb.DeleteRangeResponse),
			}
		}
		r.Responses = append(r.Responses, answer)
	}
	switch {
	case how == 8 && len(r.Responses) > 0: // fewer
		r.Responses = r.Responses[1:]
	case how == 9: // more
		r.Responses = append(r.Responses, new(etcdserverpb.ResponseOp))
	case how == 10: // another kind
		for i := range r.Responses {
			r.Responses[i].Response = &etcdserverpb.ResponseOp_ResponsePut{ResponsePut: new(etcdserverpb.PutResponse)}
		}
	}
}

func (h *hostile) open(t testing.TB) *etcdstore.Store {
	t.Helper()
	refuse := func(context.Context, string) (net.Conn, error) { return nil, errors.New("refused") }
	s, err := etcdstore.Open(etcdstore.Config{Endpoints: []string{"127.0.0.1:1"}, DialOptions: []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(h.call), grpc.WithContextDialer(refuse),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// use calls what the bits say.
func use(ctx context.Context, s store.Store, which byte) {
	if which&1 != 0 {
		if session, err := s.OpenSession(ctx, 10*time.Second); err == nil {
			_ = session.Close(ctx)
		}
	}
	if which&2 != 0 {
		_, _ = s.Get(ctx, "a")
		_, _ = s.List(ctx, "")
	}
	if which&4 != 0 {
		_, _ = s.Commit(ctx,
			store.Txn{If: []store.Condition{{Key: "b"}}, Then: []store.Op{store.Put("a", nil), store.Delete("c")}})
	}
	if which&8 != 0 {
		_, _ = s.Append(ctx, "entry", []byte("1"))
	}
	if which&16 != 0 {
		_, _ = s.Read(ctx, 0)
	}
	if which&32 != 0 {
		_ = s.Checkpoint(ctx, store.Checkpoint{Position: 2, Value: []byte("1")})
		_ = s.Trim(ctx)
	}
}

// Whatever a server answers, calls end, with an error where it is wrong.
func FuzzHostileServer(f *testing.F) {
	for bit := range 6 {
		for at := range 8 {
			for how := range byte(11) {
				script := make([]byte, 24)
				script[at] = how
				f.Add(byte(1)<<bit, script)
			}
		}
	}
	f.Fuzz(func(t *testing.T, which byte, script []byte) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		h := &hostile{script: script[:min(len(script), 1<<8)], over: cancel, revision: 100}
		s := h.open(t)
		use(ctx, s, which)
		cancel()
		_ = s.Close()
	})
}

// What is wrong is said.
func TestWrongAnswers(t *testing.T) {
	txn := store.Txn{If: []store.Condition{{Key: "b"}}, Then: []store.Op{store.Put("a", nil), store.Delete("c")}}
	for how, want := range map[byte]string{
		2: "without its header", 7: "operation 0 of a transaction",
		8: "1 operations of a transaction; want 2", 9: "3 operations of a transaction; want 2",
		10: "operation 1 of a transaction",
	} {
		h := &hostile{script: append([]byte{how}, make([]byte, 20)...), over: func() {}, revision: 100}
		s := h.open(t)
		if _, err := s.Commit(t.Context(), txn); !errors.Is(err, store.ErrAmbiguous) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%d: Commit = %v; want ErrAmbiguous, and %q", how, err, want)
		}
		_ = s.Close()
	}
	for how, want := range map[byte]string{
		2: "without its header", 4: "revision 0", 5: "2 keys",
		6: "there are more: true",
	} {
		h := &hostile{script: append([]byte{how}, make([]byte, 20)...), over: func() {}, revision: 100}
		s := h.open(t)
		if _, err := s.Get(t.Context(), "a"); !errors.Is(err, store.ErrUnavailable) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%d: Get = %v; want ErrUnavailable, and %q", how, err, want)
		}
		_ = s.Close()
	}
}

// huge is a server whose values are long.
type huge struct {
	etcdserverpb.UnimplementedKVServer
	size int
}

func (h huge) Range(_ context.Context, req *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	return &etcdserverpb.RangeResponse{
		Header: &etcdserverpb.ResponseHeader{Revision: 1},
		Kvs:    []*mvccpb.KeyValue{{Key: req.Key, Value: make([]byte, h.size), CreateRevision: 1, ModRevision: 1}},
	}, nil
}

// An answer has so many bytes at most.
func TestLengthOfAnswers(t *testing.T) {
	for size, want := range map[int]string{1 << 20: "", answers.Max: "larger than max"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer(grpc.MaxSendMsgSize(2 * answers.Max))
		etcdserverpb.RegisterKVServer(server, huge{size: size})
		go func() { _ = server.Serve(l) }()
		s, err := etcdstore.Open(etcdstore.Config{
			Endpoints:    []string{l.Addr().String()},
			CallDeadline: 30 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), "a"); err == nil && want != "" ||
			err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("Get of %d bytes = %v; want %q", size, err, want)
		}
		_ = s.Close()
		server.Stop()
	}
}
