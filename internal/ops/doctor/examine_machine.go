package doctor

import (
	"cmp"
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/base/space"
	"github.com/firn-id/firn/internal/service/admit/limits"
	"github.com/firn-id/firn/store/quorum"
)

// seeCertificates reads the node's certificates. It omits those that it can't read: the caller has checked the
// configuration.
func (c Config) seeCertificates() (all []Certificate) {
	for _, f := range [][3]string{{"tls-cert", c.TLS.Cert, c.TLS.Key}, {"etcd-cert", c.Etcd.CertFile, c.Etcd.KeyFile}} {
		if f[1] == "" {
			continue
		}
		pair, err := tls.LoadX509KeyPair(f[1], f[2])
		if err != nil {
			continue
		}
		seen := Certificate{Flag: f[0], Path: f[1], Until: pair.Leaf.NotAfter, Key: f[2]}
		if info, err := os.Stat(f[2]); err == nil {
			seen.KeyMode = modeOf(info)
		}
		all = append(all, seen)
	}
	return all
}

func (c Config) seeLimit() *OpenFiles {
	limit, err := limits.OpenFiles()
	if err != nil {
		return nil
	}
	return &OpenFiles{Limit: limit, Connections: cmp.Or(c.MaxConnections, limits.MaxConnections)}
}

// seeDataDir examines the directory, or its closest existing parent.
func (c Config) seeDataDir() *DataDir {
	d := &DataDir{Path: c.DataDir, System: quorum.CheckSystem()}
	dir := c.DataDir
	info, err := os.Stat(dir)
	for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		d.Absent = true
		dir = filepath.Dir(dir)
		info, err = os.Stat(dir)
	}
	switch {
	case err != nil:
		d.Error = reason(err)
		return d
	case !info.IsDir():
		d.Error = dir + " is not a directory"
		return d
	}
	d.Mode, d.Owner = modeOf(info), ownerOf(info)
	if room, ok := space.Of(dir); ok {
		d.Room = &room
	}
	if d.Absent {
		d.Mode = 0
	} else {
		d.InUse = quorum.InUse(dir)
	}
	if d.Fsync, err = fsyncIn(dir); err != nil {
		d.Error, d.Full = reason(err), space.Full(err)
	}
	return d
}

// fsyncIn measures how long a small write takes to reach the disk: the median of nine.
func fsyncIn(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, ".firn-doctor-*")
	if err != nil {
		return 0, err
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name()) // it was made here
	}()
	var took []time.Duration
	for range 9 {
		began := time.Now()
		if _, err := f.Write(make([]byte, 512)); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// reason returns an error without the operation and the path or address.
func reason(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	} else if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return err.Error()
}
