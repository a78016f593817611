package zkstore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/zkstore"
)

// hostile is a server that answers as a script of bytes says: as ZooKeeper would, or not. It knows nothing.
type hostile struct {
	mu     sync.Mutex
	script []byte
	over   context.CancelFunc // of the script
	zxid   int64
	dialed int
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

func (h *hostile) dial(context.Context, string, string) (net.Conn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dialed++; h.dialed > 3 {
		h.over()
		return nil, errors.New("refused")
	}
	client, server := net.Pipe()
	go h.serve(server)
	return client, nil
}

func (h *hostile) serve(conn net.Conn) {
	defer conn.Close()
	for greeting := true; ; greeting = false {
		request, err := readRequest(conn)
		if err != nil {
			return
		}
		h.mu.Lock()
		answer := h.answer(request, greeting)
		h.mu.Unlock()
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

func readRequest(conn net.Conn) (jute, error) {
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	request := make(jute, binary.BigEndian.Uint32(length[:]))
	_, err := io.ReadFull(conn, request)
	return request, err
}

// answer is a frame.
func (h *hostile) answer(request jute, greeting bool) []byte {
	how := h.next()
	var body jute
	if greeting {
		body = jute{}.int(0).int(10_000).long(1).bytes(make([]byte, 16)).bool(false)
	} else {
		xid := request.takeInt()
		code := 0
		if how%8 == 4 {
			code = -int(h.next())
		}
		h.zxid++
		body = jute{}.int(xid).long(h.zxid).int(code)
		if code == 0 {
			kind := request.takeInt()
			body = append(body, h.result(kind, request)...)
		}
	}
	length := len(body)
	switch how % 8 {
	case 5: // its end is missing
		body = body[:min(len(body), int(h.next()))]
		length = len(body)
	case 6: // one byte is another
		body[int(h.next())%len(body)] ^= h.next()
	case 7: // it is longer or shorter than it says
		length = int(h.next())<<24 | int(h.next())
	}
	return append(jute{}.int(length), body...)
}

// result is what follows the header of an answer to a request of a kind.
func (h *hostile) result(kind int, request jute) jute {
	switch kind {
	case 3: // exists
		return h.stat()
	case 4: // get
		path := string(request.takeBytes())
		switch {
		case strings.HasSuffix(path, "/checkpoint") && h.next()%2 == 0:
			return append(jute{}.bytes([]byte(`{"position":1,"pieces":["a","b"]}`)), h.stat()...)
		case strings.HasSuffix(path, "/checkpoint"):
			return append(jute{}.bytes(nil), h.stat()...)
		}
		return append(jute{}.bytes(append([]byte{'a'}, make([]byte, 52+h.next()%8)...)), h.stat()...)
	case 12: // children
		names := []string{"a", "b", "entry-0000000001", "entry-0000000002", "%2E", "-00000000001"}[:h.next()%7]
		list := jute{}.int(len(names))
		for _, name := range names {
			list = list.bytes([]byte(name))
		}
		return append(list, h.stat()...)
	case 14:
		return h.multi(request)
	case 15:
		return append(jute{}.bytes([]byte("/firn")), h.stat()...)
	case 9: // sync
		return jute{}.bytes([]byte("/firn"))
	}
	return nil
}

// multi answers the parts of a transaction, or fewer, more or others.
func (h *hostile) multi(request jute) (answer jute) {
	how := h.next()
	failed := how%4 == 1
	for i := 0; len(request) > 9; i++ {
		kind := request.takeInt()
		request.take(5)
		if kind == -1 {
			break
		}
		request.takeBytes() // the path
		switch kind {
		case 15:
			request.takeBytes()
			request.take(8)
			request.takeBytes()
			request.takeBytes()
			request.take(4)
		case 5:
			request.takeBytes()
			request.take(4)
		default:
			request.take(4)
		}
		switch {
		case how == 2: // fewer
			continue
		case how == 3 && i == 0: // another
			kind = int(int8(h.next()))
		}
		if failed {
			answer = answer.int(-1).bool(false).int(0).int(-int(h.next()))
			continue
		}
		answer = answer.int(kind).bool(false).int(0)
		switch kind {
		case 15:
			answer = append(answer.bytes([]byte("/firn")), h.stat()...)
		case 5:
			answer = append(answer, h.statAt(h.zxid)...)
		}
	}
	if how == 6 { // more
		answer = answer.int(2).bool(false).int(0)
	}
	return answer.int(-1).bool(true).int(-1)
}

func (h *hostile) stat() jute { return h.statAt(int64(h.next()+1) % 256) }

func (h *hostile) statAt(modified int64) jute {
	return jute{}.long(min(modified, 1)).long(modified).long(0).long(0).int(int(h.next())).long(0).long(0).long(0).
		long(0)[:68]
}

// jute is ZooKeeper's encoding.
type jute []byte

func (j jute) int(n int) jute      { return binary.BigEndian.AppendUint32(j, uint32(n)) }
func (j jute) long(n int64) jute   { return binary.BigEndian.AppendUint64(j, uint64(n)) }
func (j jute) bytes(b []byte) jute { return append(j.int(len(b)), b...) }

func (j jute) bool(b bool) jute {
	if b {
		return append(j, 1)
	}
	return append(j, 0)
}

func (j *jute) take(n int) []byte {
	taken := (*j)[:min(max(n, 0), len(*j))]
	*j = (*j)[len(taken):]
	return taken
}

func (j *jute) takeInt() int {
	var b [4]byte
	copy(b[:], j.take(4))
	return int(int32(binary.BigEndian.Uint32(b[:])))
}

func (j *jute) takeBytes() []byte { return j.take(j.takeInt()) }

// use calls everything of a store once, or what the bits say.
func use(ctx context.Context, s store.Store, which byte) {
	var session store.Session
	if which&1 != 0 {
		session, _ = s.OpenSession(ctx, time.Second)
	}
	if which&2 != 0 {
		_, _ = s.Get(ctx, "a")
		_, _ = s.List(ctx, "")
	}
	if which&4 != 0 {
		op := store.Put("a", []byte("1"))
		if session != nil {
			op = store.PutEphemeral("a", []byte("1"), session)
		}
		_, _ = s.Commit(ctx, store.Txn{If: []store.Condition{{Key: "b"}}, Then: []store.Op{op, store.Delete("c")}})
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
	if which&64 != 0 {
		_, _ = s.Gone(ctx, "a")
	}
	if which&128 != 0 {
		for _, err := range s.Follow(ctx, 0) {
			if err != nil {
				break
			}
		}
	}
	if session != nil {
		_ = session.Close(ctx)
	}
}

// Whatever a server answers, calls end, with an error where it is wrong.
func FuzzHostileServer(f *testing.F) {
	for bit := range 8 {
		f.Add([]byte{1 << bit}, make([]byte, 64))
	}
	for at := range 64 { // one byte of what a server answers in order
		for _, b := range []byte{1, 2, 3, 4, 6, 7, 255} {
			script := make([]byte, 256)
			script[at] = b
			f.Add([]byte{0x7c, 1}, script)
		}
	}
	f.Fuzz(func(t *testing.T, which, script []byte) {
		if len(which) == 0 || len(script) > 1<<10 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			h := &hostile{script: script, over: cancel, zxid: 100}
			s, err := zkstore.OpenOver(zkstore.Config{Servers: []string{"a"}}, h.dial)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range which[:min(len(which), 3)] {
				use(ctx, s, w)
			}
			_ = s.Close()
		})
	})
}
