package etcdserver

import (
	"encoding/json"
	"errors"
	"expvar"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"google.golang.org/protobuf/proto"
)

// Entry is an entry of the log that is committed: all machines that ever have it have the same.
type Entry struct {
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
	Sum   uint32 `json:"sum"` // of its content
}

// Committed reads the entries in the log after its latest snapshot of which it says that they are committed, the oldest
// first. A server may use the
// directory meanwhile: what it has just written may be missing.
func (d *Dir) Committed() ([]Entry, error) {
	var all []Entry
	commit := uint64(0)
	if !d.HasLog() {
		return nil, nil
	}
	names, err := fileutil.ReadDir(datadir.ToWALDir(d.Path), fileutil.WithExt(".wal"))
	if err != nil {
		return nil, d.explain("the log can't be read", err)
	}
	crc, last := uint32(0), uint64(0)
	visit := func(record *walpb.Record) error {
		switch record.GetType() {
		case wal.StateType:
			state := wal.MustUnmarshalState(record.Data)
			commit = max(commit, state.GetCommit())
			return nil
		case wal.SnapshotType: // what is before may have been replaced by it, without ever being committed
			var snapshot walpb.Snapshot
			if err := proto.Unmarshal(record.Data, &snapshot); err != nil {
				return err
			}
			all = slices.DeleteFunc(all, func(e Entry) bool { return e.Index <= snapshot.GetIndex() })
			return nil
		}
		entry := wal.MustUnmarshalEntry(record.Data)
		for len(all) > 0 && all[len(all)-1].Index >= entry.GetIndex() { // it was replaced
			all = all[:len(all)-1]
		}
		sum := crc32.Update(uint32(entry.GetType()), crc32.IEEETable, entry.GetData())
		all = append(all, Entry{entry.GetIndex(), entry.GetTerm(), sum})
		return nil
	}
	for _, name := range names {
		file, err := os.Open(filepath.Join(datadir.ToWALDir(d.Path), name))
		if errors.Is(err, fs.ErrNotExist) { // a server has dropped it: what is in it is old
			continue
		}
		if err != nil {
			return nil, d.explain("the log can't be read", err)
		}
		decoder := wal.NewDecoder(fileutil.NewFileReader(file))
		decoder.UpdateCRC(crc)
		last, err = readSegment(decoder, last, visit)
		file.Close()
		if err != nil { // it is being written, or Check finds the damage
			break
		}
		crc = decoder.LastCRC()
	}
	for len(all) > 0 && all[len(all)-1].Index > commit {
		all = all[:len(all)-1]
	}
	return all, nil
}

// Confirmed returns up to which index each other server has said that the log is on its disk, by ID. It is empty if
// this server does not lead, or if another one has started in this process since.
func (s *Server) Confirmed() map[uint64]uint64 {
	v := expvar.Get("raft.status")
	if v == nil {
		return nil
	}
	var status struct {
		ID       string
		Progress map[string]struct{ Match uint64 }
	}
	if json.Unmarshal([]byte(v.String()), &status) != nil || status.ID != s.MemberID().String() {
		return nil
	}
	confirmed := map[uint64]uint64{}
	for id, p := range status.Progress {
		if n, err := strconv.ParseUint(id, 16, 64); err == nil && p.Match > 0 {
			confirmed[n] = p.Match
		}
	}
	return confirmed
}
