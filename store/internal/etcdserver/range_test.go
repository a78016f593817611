package etcdserver

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// TestAStoppedServerAnswersReads: with an error, though etcd panics where its database is closed.
func TestAStoppedServerAnswersReads(t *testing.T) {
	dir, err := OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	start := func() *Server {
		t.Helper()
		s, err := dir.Start(Config{Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			err = s.Wait(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := start()
	if _, err := s.Put(ctx, &etcdserverpb.PutRequest{Key: []byte("key"), Value: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = start() // what it has written itself it would read from memory
	read := &etcdserverpb.RangeRequest{Key: []byte("key"), Serializable: true}
	if found, err := s.Range(ctx, read); err != nil || len(found.Kvs) != 1 {
		t.Fatalf("it reads %v, %v", found, err)
	}
	s.Close()
	if found, err := s.Range(ctx, read); !errors.Is(err, errStopped) {
		t.Errorf("once stopped it reads %v, %v", found, err)
	}
}
