package etcdstore

import (
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/firn-id/firn/store"
)

// A directory of a version whose server listened for peers, on a port of the loopback, is opened as any other.
func TestDirectoryOfAServerThatListenedForPeers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	socket, err := newSocket(dir)
	if err != nil {
		t.Fatal(err)
	}
	config := serverConfig(dir, socket, newEtcdLog(dir, loggerOrNone(nil)))
	config.ListenPeerUrls = config.AdvertisePeerUrls
	server, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	<-server.Server.ReadyNotify()
	former, err := Open(Config{Endpoints: []string{socket.endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := former.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("key", []byte("1"))}}); err != nil {
		t.Errorf("Commit: %v", err)
	}
	_ = former.Close()
	server.Close()

	e, err := Embed(EmbedConfig{Dir: dir})
	if err != nil {
		t.Fatalf("Embed: %v", err)
	}
	if kv, err := e.Get(t.Context(), "key"); err != nil || string(kv.Value) != "1" {
		t.Errorf("Get = %+v, %v; want what was written before", kv, err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
