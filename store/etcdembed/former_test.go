package etcdembed

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
	dir := filepath.Join(t.TempDir(), "data")
	socket, err := newSocket(dir)
	if err != nil {
		t.Fatal(err)
	}
	config := serverConfig(dir, socket, newEtcdLog(dir, slog.New(slog.DiscardHandler)))
	config.ListenPeerUrls = config.AdvertisePeerUrls
	server, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	<-server.Server.ReadyNotify()
	former, err := etcdstore.Open(etcdstore.Config{Endpoints: []string{socket.endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := former.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("key", []byte("1"))}}); err != nil {
		t.Errorf("Commit: %v", err)
	}
	_ = former.Close()
	server.Close()

	e := open(t, Config{Dir: dir})
	if kv, err := e.Get(t.Context(), "key"); err != nil || string(kv.Value) != "1" {
		t.Errorf("Get = %+v, %v; want what was written before", kv, err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
