package etcdserver

import (
	"log/slog"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
)

// A directory of a version whose server listened for peers, on a port of the loopback, is opened as any other.
func TestDirectoryOfAServerThatListenedForPeers(t *testing.T) {
	t.Parallel()
	dir, err := OpenDir(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	config := Config{Logger: slog.New(slog.DiscardHandler)}
	former := &Server{dir: dir, config: config, log: newEtcdLog(dir.Path, config.Logger)}
	if former.socket, err = newSocket(dir.Path); err != nil {
		t.Fatal(err)
	}
	settings := former.settings()
	settings.ListenPeerUrls = settings.AdvertisePeerUrls
	server, err := embed.StartEtcd(settings)
	if err != nil {
		t.Fatal(err)
	}
	<-server.Server.ReadyNotify()
	client := open(t, former)
	if _, err := client.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("key", []byte("1"))}}); err != nil {
		t.Errorf("Commit: %v", err)
	}
	_ = client.Close()
	server.Close()

	if _, err := dir.Check(); err != nil {
		t.Fatal(err)
	}
	s, err := dir.Start(config)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if kv, err := open(t, s).Get(t.Context(), "key"); err != nil || string(kv.Value) != "1" {
		t.Errorf("Get = %+v, %v; want what was written before", kv, err)
	}
}

func open(t *testing.T, s *Server) *etcdstore.Store {
	t.Helper()
	client, err := etcdstore.Open(etcdstore.Config{Endpoints: []string{s.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}
