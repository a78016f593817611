package etcdserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.uber.org/zap"
)

// revisionsLost is by how much revisions jump in restored data, so that none stands for two writes.
const revisionsLost = 1_000_000_000

// Restore makes the data directory to, which must not exist, of a server without peers: from a backup, which is a file
// with a checksum at its end, or the data directory of a server that does not run.
func Restore(backup, to string) error {
	info, err := os.Stat(backup)
	if err != nil {
		return err
	}
	file := backup
	if info.IsDir() {
		if InUse(backup) {
			return errors.New("it is in use by another process")
		}
		file = datadir.ToBackendFileName(backup)
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("there is no database: %w", err.(*fs.PathError).Err)
		}
	}
	if err := checkFile(file); err != nil {
		return fmt.Errorf("the database is damaged: %w", err)
	}
	if info.IsDir() {
		if _, err := checkDatabase(backup); err != nil {
			return err
		}
	}
	smallSegments()
	const name, url = "firn", "http://127.0.0.1:0" // as without has it
	err = snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: file, SkipHashCheck: info.IsDir(), OutputDataDir: to,
		Name: name, PeerURLs: []string{url}, InitialCluster: name + "=" + url, InitialClusterToken: "etcd-cluster",
		RevisionBump: revisionsLost, MarkCompacted: true,
	})
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "missing hash"):
		return errors.New("it is no backup, or its end is missing: there is no checksum")
	default:
		return err
	}
}
