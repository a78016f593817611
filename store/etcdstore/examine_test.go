//go:build unix

package etcdstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
)

// A server that is well says so, and nothing in it is changed.
func TestExamineChangesNothing(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	raw := rawClient(t, server.Endpoint())
	revision := func() int64 {
		found, err := raw.Get(t.Context(), "/", clientv3.WithPrefix())
		if err != nil || len(found.Kvs) > 0 {
			t.Fatalf("the keys are %v, %v; want none", found, err)
		}
		return found.Header.Revision
	}
	before := revision()
	servers, read, err := open(t, etcdstore.Config{Endpoints: []string{server.Endpoint()}}).Examine(t.Context())
	if err != nil || read <= 0 || len(servers) != 1 {
		t.Fatalf("Examine = %v, %v, %v; want one server and no error", servers, read, err)
	}
	if r := servers[0]; r.Err != nil || r.TooOld != nil || r.Version == "" || r.Size == 0 || len(r.Alarms) > 0 {
		t.Errorf("the server is %+v; want it to be well", r)
	}
	if after := revision(); after != before {
		t.Errorf("the revision went from %d to %d", before, after)
	}
}

// Who may only read, or do nothing there, is told so; what a server complains of is told too.
func TestExamineSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{Args: []string{"--bcrypt-cost=4", "--quota-backend-bytes=20000000"}})
	raw := rawClient(t, server.Endpoint())
	big := make([]byte, 1<<20)
	for range 40 { // until its quota is used up
		if _, err := raw.Put(t.Context(), "/else", string(big)); err != nil {
			break
		}
	}
	s := open(t, etcdstore.Config{Endpoints: []string{server.Endpoint()}})
	eventually(t, "Examine", func() error { // the server refuses first, and raises the alarm then
		servers, _, _ := s.Examine(t.Context())
		if len(servers) != 1 || len(servers[0].Alarms) != 1 || servers[0].Alarms[0] != "NOSPACE" {
			return fmt.Errorf("the servers are %+v; want one with the alarm NOSPACE", servers)
		}
		return nil
	})

	secure := etcdtest.Start(t, etcdtest.Options{Args: []string{"--bcrypt-cost=4"}})
	admin := rawClient(t, secure.Endpoint())
	enableAuth(t, secure.Endpoint(), func() error {
		const key = "/readable/"
		_, err := admin.RoleGrantPermission(t.Context(), "firn", key, clientv3.GetPrefixRangeEnd(key),
			clientv3.PermissionType(clientv3.PermRead))
		return err
	})
	config := etcdstore.Config{Endpoints: []string{secure.Endpoint()}, Username: "firn", Password: "secret"}
	for prefix, refused := range map[string]bool{"/firn": false, "/readable": true, "/other": true} {
		config.Prefix = prefix
		if _, _, err := open(t, config).Examine(t.Context()); errors.Is(err, store.ErrRefused) != refused ||
			!refused && err != nil {
			t.Errorf("below %s: %v; want ErrRefused: %v", prefix, err, refused)
		}
	}
	config.Password = "wrong"
	if _, _, err := open(t, config).Examine(t.Context()); !errors.Is(err, store.ErrRefused) {
		t.Errorf("with a wrong password: %v; want ErrRefused", err)
	}
}

// A server that is not there is told from those that are, with the reason.
func TestExamineWithoutAServer(t *testing.T) {
	t.Parallel()
	gone := proxytest.FixedAddress(t)
	s := open(t, etcdstore.Config{Endpoints: []string{"http://" + gone}, CallDeadline: 2 * time.Second})
	servers, _, err := s.Examine(t.Context())
	if !errors.Is(err, store.ErrUnavailable) || len(servers) != 1 || servers[0].Err == nil {
		t.Errorf("Examine = %+v, %v; want one server that does not answer, and ErrUnavailable", servers, err)
	}
	if want := "connection refused"; len(servers) == 1 && servers[0].Err != nil &&
		!strings.Contains(servers[0].Err.Error(), want) {
		t.Errorf("the reason is %v; want %s", servers[0].Err, want)
	}
}
