package etcdserver

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func openDir(t *testing.T) *Dir {
	t.Helper()
	dir, err := OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dir.Close)
	return dir
}

// start starts a server, and waits until it is ready.
func start(t *testing.T, dir *Dir) *Server {
	t.Helper()
	s, err := dir.Start(Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCallsOfAConnectionAreBounded: the server tells its clients, in the first frame that it sends, to have fewer calls
// at a time than those at which gRPC stops reading.
func TestCallsOfAConnectionAreBounded(t *testing.T) {
	s := start(t, openDir(t))
	conn, err := net.Dial("unix", s.Socket())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	const settings, maxConcurrentStreams = 4, 3 // RFC 9113, 6.5
	if _, err := conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
		"\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		t.Fatal(err)
	}
	var header [9]byte
	if _, err := io.ReadFull(conn, header[:]); err != nil || header[3] != settings {
		t.Fatalf("the frame % x, %v; want settings", header, err)
	}
	frame := make([]byte, int(header[0])<<16|int(header[1])<<8|int(header[2]))
	if _, err := io.ReadFull(conn, frame); err != nil {
		t.Fatal(err)
	}
	calls := uint32(0)
	for ; len(frame) >= 6; frame = frame[6:] {
		if binary.BigEndian.Uint16(frame) == maxConcurrentStreams {
			calls = binary.BigEndian.Uint32(frame[2:])
		}
	}
	if calls < 1 || calls >= 100 {
		t.Errorf("a connection carries %d calls at a time, where 0 is any number; want 1 to 99", calls)
	}
}

// readKey is a read of the key of startWithKey.
var readKey = &etcdserverpb.RangeRequest{Key: []byte("key"), Serializable: true}

// startWithKey starts a server that has one key, in its database: what it has written itself it would read from memory.
func startWithKey(t *testing.T) *Server {
	t.Helper()
	dir := openDir(t)
	s := start(t, dir)
	if _, err := s.Put(t.Context(), &etcdserverpb.PutRequest{Key: readKey.Key, Value: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	return start(t, dir)
}

// TestAStoppedServerAnswersReads: with an error, though etcd panics where its database is closed.
func TestAStoppedServerAnswersReads(t *testing.T) {
	s := startWithKey(t)
	if found, err := s.Range(t.Context(), readKey); err != nil || len(found.Kvs) != 1 {
		t.Fatalf("it reads %v, %v", found, err)
	}
	s.Close()
	if found, err := s.Range(t.Context(), readKey); !errors.Is(err, errStopped) {
		t.Errorf("once stopped it reads %v, %v", found, err)
	}
}

// TestCloseUnderReads: clients that read until the end get an error then, though etcd panics where its database is
// closed.
func TestCloseUnderReads(t *testing.T) {
	s := startWithKey(t)
	conn, err := grpc.NewClient(s.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := etcdserverpb.NewKVClient(conn)
	read := make(chan struct{})
	var reading sync.WaitGroup
	for range 64 {
		reading.Go(func() {
			found, err := client.Range(t.Context(), readKey)
			if err != nil || len(found.Kvs) != 1 {
				t.Errorf("a client reads %v, %v", found, err)
			}
			read <- struct{}{}
			for err == nil {
				_, err = client.Range(t.Context(), readKey)
			}
		})
	}
	for range 64 {
		<-read
	}
	s.Close()
	reading.Wait()
}

// Where the system does not keep other processes from a directory, none is made, and none is in use.
func TestASystemThatKeepsNoData(t *testing.T) {
	errSystem = errors.New("a node can't keep data here")
	t.Cleanup(func() { errSystem = nil })
	path := filepath.Join(t.TempDir(), "data")
	dir, err := OpenDir(path)
	if !errors.Is(err, errSystem) || dir != nil || InUse(path) {
		t.Errorf("%v, %v; want %v", dir, err, errSystem)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory was made: %v", err)
	}
}
