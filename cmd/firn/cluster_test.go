//go:build unix

package main

import (
	"testing"

	"github.com/firn-id/firn/internal/test/certtest"
	"github.com/firn-id/firn/internal/test/etcdtest"
)

// The scripts of clusters have an etcd that speaks TLS to whom it knows: $ETCD is its address, and $CA, $CERT
// and $KEY are files.
func TestClusterScripts(t *testing.T) {
	certs := certtest.WriteFiles(t, t.TempDir())
	etcd := etcdtest.Start(t, etcdtest.Options{Certs: certs})
	scripts(t, "testdata/cluster", map[string]string{
		"ETCD": etcd.Address(), "CA": certs.CA, "CERT": certs.ClientCert, "KEY": certs.ClientKey,
	})
}
