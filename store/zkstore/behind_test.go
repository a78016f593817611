//go:build unix

package zkstore_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/zkstore"
)

// puppet is a server that says what it is told to say: at which transaction it is when it reads, and at which a
// transaction is that changes nothing.
type puppet struct {
	listener       net.Listener
	running        sync.WaitGroup
	reads, commits atomic.Int64
	gets           atomic.Int64 // how often it was asked for a key
}

func newPuppet(t *testing.T, reads, commits int64) *puppet {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &puppet{listener: listener}
	p.reads.Store(reads)
	p.commits.Store(commits)
	p.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() {
				defer conn.Close()
				p.serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		p.running.Wait()
	})
	return p
}

func (p *puppet) serve(conn io.ReadWriter) {
	if _, err := readFrame(conn); err != nil {
		return
	}
	greeting := binary.BigEndian.AppendUint32(nil, 0)
	greeting = binary.BigEndian.AppendUint32(greeting, 10_000)
	greeting = binary.BigEndian.AppendUint64(greeting, 7)
	greeting = append(binary.BigEndian.AppendUint32(greeting, 16), make([]byte, 16)...)
	if writeFrame(conn, greeting) != nil {
		return
	}
	for {
		request, err := readFrame(conn)
		if err != nil {
			return
		}
		zxid, code := p.reads.Load(), int32(0)
		var body []byte
		switch operation := int32(binary.BigEndian.Uint32(request[4:])); operation {
		case 3: // exists: the tree was made by transaction 5
			body = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, 5), 5)
			body = append(body, make([]byte, 52)...)
		case 4: // no key exists
			p.gets.Add(1)
			code = -101
		case 14: // a check, and the end of the transaction
			zxid = p.commits.Load()
			body = []byte{0, 0, 0, 13, 0, 0, 0, 0, 0, 255, 255, 255, 255, 1, 255, 255, 255, 255}
		}
		answer := append([]byte(nil), request[:4]...)
		answer = binary.BigEndian.AppendUint64(answer, uint64(zxid))
		answer = binary.BigEndian.AppendUint32(answer, uint32(code))
		if writeFrame(conn, append(answer, body...)) != nil {
			return
		}
	}
}

func readFrame(from io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	_, err := io.ReadFull(from, frame)
	return frame, err
}

func writeFrame(to io.Writer, frame []byte) error {
	_, err := to.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
	return err
}

// The answer of a server that is behind what the client has seen is not taken: not even after sync, which a leader
// that was replaced answers as if nothing had happened.
func TestAnswerFromThePastIsNotTaken(t *testing.T) {
	t.Parallel()
	server := newPuppet(t, 99, 100)
	s := open(t, zkstore.Config{Servers: []string{server.listener.Addr().String()}, CallDeadline: 2 * time.Second})
	if _, err := s.Get(t.Context(), "key"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Get from a server that is behind = %v, want ErrUnavailable", err)
	}
	if server.gets.Load() == 0 {
		t.Error("the server was not asked")
	}
	server.reads.Store(100)
	eventually(t, "Get when the server has caught up", func() error { _, err := s.Get(t.Context(), "key"); return err })
}

// A majority that is behind what the client has seen has lost data.
func TestMajorityFromThePastHasLostData(t *testing.T) {
	t.Parallel()
	server := newPuppet(t, 100, 100)
	s := open(t, zkstore.Config{Servers: []string{server.listener.Addr().String()}, CallDeadline: 2 * time.Second})
	if _, err := s.Get(t.Context(), "key"); err != nil {
		t.Fatal(err)
	}
	if losses := zkstore.Losses(s); losses != 0 {
		t.Fatalf("%d losses at first", losses)
	}
	server.commits.Store(50)
	server.reads.Store(50)
	eventually(t, "Get", func() error { _, err := s.Get(t.Context(), "key"); return err })
	if losses := zkstore.Losses(s); losses != 1 {
		t.Errorf("%d losses, want one", losses)
	}
}
