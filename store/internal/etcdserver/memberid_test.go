package etcdserver

import (
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// The files of the log are found by their names, also in a directory whose name would be a pattern.
func TestLogInADirectoryOfAnyName(t *testing.T) {
	for _, name := range []string{"plain", "data[1]", "a*b", "unclosed["} {
		dir := &Dir{Path: filepath.Join(t.TempDir(), name)}
		if id, err := dir.MemberID(); id != 0 || err != nil {
			t.Errorf("%s: %d, %v before there is a log", name, id, err)
		}
		if last, err := dir.LastEntry(); last != 0 || err != nil {
			t.Errorf("%s: entry %d, %v before there is a log", name, last, err)
		}
		node := uint64(4711)
		metadata, err := proto.Marshal(&etcdserverpb.Metadata{NodeID: &node})
		if err != nil {
			t.Fatal(err)
		}
		log, err := wal.Create(zap.NewNop(), datadir.ToWALDir(dir.Path), metadata)
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		if id, err := dir.MemberID(); id != node || err != nil {
			t.Errorf("%s: %d, %v; want %d", name, id, err, node)
		}
	}
}
