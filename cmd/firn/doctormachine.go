package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/doctor"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/limits"
	"github.com/firn-id/firn/store/etcdstore"
)

func (n *node) seeLayout() doctor.Layout {
	return doctor.Layout{Name: n.layout.String(), Until: server.Until(n.layout), Now: time.Now()}
}

// seeCertificates looks at those that the node shows. That they can be read is known: else there would be no node.
func (n *node) seeCertificates() (all []doctor.Certificate) {
	for _, f := range [][3]string{{"tls-cert", n.certificates.Cert, n.certificates.Key}, {"etcd-cert", n.etcd.CertFile, n.etcd.KeyFile}} {
		if f[1] == "" {
			continue
		}
		pair, err := tls.LoadX509KeyPair(f[1], f[2])
		if err != nil || len(pair.Certificate) == 0 {
			continue
		}
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil {
			continue
		}
		c := doctor.Certificate{Flag: f[0], Path: f[1], Until: leaf.NotAfter, Now: time.Now(), Key: f[2]}
		if info, err := os.Stat(f[2]); err == nil {
			c.KeyMode = info.Mode()
		}
		all = append(all, c)
	}
	return all
}

func (n *node) seeLimit() *doctor.OpenFiles {
	limit, err := openFiles()
	if err != nil {
		return nil
	}
	wanted := n.maxConnections
	if wanted == 0 {
		wanted = limits.MaxConnections
	}
	return &doctor.OpenFiles{Limit: limit, Connections: wanted}
}

// seeDataDir looks at the directory, or at that in which it is to be made.
func (n *node) seeDataDir() *doctor.DataDir {
	d := &doctor.DataDir{Path: n.dataDir}
	dir := n.dataDir
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
		d.Error = dir + " is no directory"
		return d
	}
	d.Mode, d.Owner, d.Free = info.Mode(), ownerOf(info), freeIn(dir)
	if d.Absent {
		d.Mode = 0
	} else {
		d.InUse = etcdstore.InUse(dir)
	}
	if d.Fsync, err = fsyncIn(dir); err != nil {
		d.Error = reason(err)
	}
	return d
}

// fsyncIn measures how long a small write takes until it is on the disk: the median of a few.
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

// reason is an error without what was to be done.
func reason(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
