package etcdserver

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"google.golang.org/protobuf/proto"
)

// MemberID returns the ID of the member whose log is in the directory, as each file of the log says at its beginning.
// It is zero if there is no log. Copies of a directory have the same.
func (d *Dir) MemberID() (uint64, error) {
	segments, err := d.segments()
	if err != nil || len(segments) == 0 {
		return 0, err
	}
	first := filepath.Join(datadir.ToWALDir(d.Path), segments[0])
	file, err := os.Open(first)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	decoder := wal.NewDecoder(fileutil.NewFileReader(file))
	for {
		var record walpb.Record
		if err := decoder.Decode(&record); err != nil {
			return 0, fmt.Errorf("%s does not say whose log it is: %w", first, err)
		}
		if record.GetType() == wal.CrcType {
			decoder.UpdateCRC(record.GetCrc())
		}
		if record.GetType() != wal.MetadataType {
			continue
		}
		var m etcdserverpb.Metadata
		err := proto.Unmarshal(record.Data, &m)
		return m.GetNodeID(), err
	}
}
