package etcdserver

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/lease/leasepb"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/proto"
)

// checkFile examines all pages of a database, and what etcd's server reads as it starts: it panics where that is
// damaged.
func checkFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return checkPages(file, info.Size(), checkEntry)
}

// The sizes of keys of a revision: main and sub with "_" between them, and with "t" after them for one that deletes.
const revisionSize, tombstoneSize = 17, 18

var semver = regexp.MustCompile(`^[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}$`)

// checkEntry checks a key of etcd's database, and its value.
func checkEntry(bucket string, key, value []byte) (err error) {
	ok := true
	switch bucket {
	case string(schema.Key.Name()):
		ok = (len(key) == revisionSize || len(key) == tombstoneSize && key[revisionSize] == 't') && key[8] == '_' &&
			key[0] < 0x80
		err = proto.Unmarshal(value, new(mvccpb.KeyValue))
	case string(schema.Meta.Name()):
		switch string(key) {
		case "consistent_index", "term", "scheduledCompactRev", "finishedCompactRev":
			ok = len(value) >= 8
		case "confState":
			ok = json.Valid(value)
		case "storageVersion":
			ok = semver.Match(value)
		}
	case string(schema.Lease.Name()):
		ok = len(key) == 8
		err = proto.Unmarshal(value, new(leasepb.Lease))
	case string(schema.Cluster.Name()):
		ok = string(key) != "clusterVersion" || semver.Match(value)
	case string(schema.Alarm.Name()):
		err = proto.Unmarshal(key, new(etcdserverpb.AlarmMember))
	case string(schema.Auth.Name()), string(schema.AuthUsers.Name()), string(schema.AuthRoles.Name()):
		ok = bucket == string(schema.Auth.Name()) && string(key) != "authEnabled" // nobody logs in to firn's own etcd
	}
	switch {
	case err != nil:
		return fmt.Errorf("the value of %.40q in bucket %q is damaged: %w", key, bucket, err)
	case !ok:
		return fmt.Errorf("the key %.40q in bucket %q has the value %.40q, which firn does not write",
			key, bucket, value)
	}
	return nil
}
