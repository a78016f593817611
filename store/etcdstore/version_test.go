//go:build unix

package etcdstore_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
)

// aged is a server that can do nothing but tell its version.
type aged struct {
	etcdserverpb.UnimplementedMaintenanceServer
	version string
}

func (a aged) Status(context.Context, *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	return &etcdserverpb.StatusResponse{Version: a.version}, nil
}

// serve starts a server of that version and returns its address.
func serve(t *testing.T, version string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	etcdserverpb.RegisterMaintenanceServer(server, aged{version: version})
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-served
	})
	return listener.Addr().String()
}

// One server that is too old is enough for no session: whom a read is sent to is
// left to chance. The message says what is there and what is wanted.
func TestOldServer(t *testing.T) {
	t.Parallel()
	old, recent := serve(t, "3.6.8"), serve(t, "3.6.9")
	s := open(t, etcdstore.Config{Endpoints: []string{recent, old}})
	_, err := s.OpenSession(t.Context(), time.Second)
	if !errors.Is(err, store.ErrRefused) {
		t.Fatalf("OpenSession = %v, want ErrRefused", err)
	}
	for _, want := range []string{old, "3.6.8", "3.6.9"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}

	s = open(t, etcdstore.Config{Endpoints: []string{recent}})
	if _, err := s.OpenSession(t.Context(), time.Second); errors.Is(err, store.ErrRefused) {
		t.Errorf("OpenSession = %v, but the version is good", err)
	}
}
