package quorum

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/internal/test/certtest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/quorum/internal/keyring"
	"github.com/firn-id/firn/store/quorum/internal/port"
)

// calls are those that a client could make of etcd, and whether it may. A machine may make all of them.
var calls = []struct {
	name, method string
	message      any
	allowed      bool
}{
	{"read a key", "KV/Range", reading("/firn/x", ""), true},
	{"read the record", "KV/Range", reading("/firn/quorum", ""), true},
	{"read all of firn's", "KV/Range", reading("/firn/", "/firn0"), true},
	{"read another prefix", "KV/Range", reading("/other", ""), false},
	{"read the prefix itself", "KV/Range", reading("/firn", ""), false},
	{"read what follows the prefix", "KV/Range", reading("/firn0", ""), false},
	{"read beyond the prefix", "KV/Range", reading("/firn/", "/firn0a"), false},
	{"read from the prefix on", "KV/Range", reading("/firn/", "\x00"), false},
	{"read everything", "KV/Range", reading("\x00", "\x00"), false},
	{"write a key", "KV/Put", writing("/firn/x"), true},
	{"write another prefix", "KV/Put", writing("/other"), false},
	{"delete a key", "KV/DeleteRange", deleting("/firn/x", ""), true},
	{"delete a range", "KV/DeleteRange", deleting("/firn/log/", "/firn/log0"), true},
	{"delete another prefix", "KV/DeleteRange", deleting("/other", ""), false},
	{
		"a transaction", "KV/Txn", txn("/firn/x", writing("/firn/x"), reading("/firn/x", ""), deleting("/firn/y", "")),
		true,
	},
	{"a transaction that compares another prefix", "KV/Txn", txn("/other", writing("/firn/x")), false},
	{
		"a transaction that reads another prefix", "KV/Txn", txn("/firn/x", writing("/firn/x"), reading("/other", "")),
		false,
	},
	{"a transaction that writes another prefix", "KV/Txn", txn("/firn/x", writing("/other")), false},
	{"a transaction in one", "KV/Txn", txn("/firn/x", txn("/firn/x", writing("/firn/x"))), true},
	{
		"a transaction in one that compares another prefix", "KV/Txn",
		txn("/firn/x", txn("/other", writing("/firn/x"))), false,
	},
	{"watch a prefix", "Watch/Watch", watching("/firn/log/", "/firn/log0"), true},
	{"watch everything", "Watch/Watch", watching("\x00", "\x00"), false},
	{"a session", "Lease/LeaseGrant", &etcdserverpb.LeaseGrantRequest{ID: 7, TTL: 60}, true},
	{"renew a session", "Lease/LeaseKeepAlive", &etcdserverpb.LeaseKeepAliveRequest{ID: 7}, true},
	{"end a session", "Lease/LeaseRevoke", &etcdserverpb.LeaseRevokeRequest{ID: 7}, true},
	{"list sessions", "Lease/LeaseLeases", &etcdserverpb.LeaseLeasesRequest{}, false},
	{"read a session", "Lease/LeaseTimeToLive", &etcdserverpb.LeaseTimeToLiveRequest{ID: 7, Keys: true}, false},
	{"compact", "KV/Compact", &etcdserverpb.CompactionRequest{Revision: 1}, false},
	{"whom to call", "Cluster/MemberList", &etcdserverpb.MemberListRequest{}, true},
	{"add a member", "Cluster/MemberAdd", &etcdserverpb.MemberAddRequest{PeerURLs: []string{"no URL"}}, false},
	{"remove a member", "Cluster/MemberRemove", &etcdserverpb.MemberRemoveRequest{ID: 1}, false},
	{
		"move a member", "Cluster/MemberUpdate",
		&etcdserverpb.MemberUpdateRequest{ID: 1, PeerURLs: []string{"https://ids-9:1"}}, false,
	},
	{"promote a member", "Cluster/MemberPromote", &etcdserverpb.MemberPromoteRequest{ID: 1}, false},
	{"the version", "Maintenance/Status", &etcdserverpb.StatusRequest{}, true},
	{"a snapshot", "Maintenance/Snapshot", &etcdserverpb.SnapshotRequest{}, false},
	{"alarms", "Maintenance/Alarm", &etcdserverpb.AlarmRequest{}, false},
	{"defragment", "Maintenance/Defragment", &etcdserverpb.DefragmentRequest{}, false},
	{"a hash", "Maintenance/Hash", &etcdserverpb.HashRequest{}, false},
	{"a hash of the keys", "Maintenance/HashKV", &etcdserverpb.HashKVRequest{}, false},
	{"move the leader", "Maintenance/MoveLeader", &etcdserverpb.MoveLeaderRequest{TargetID: 1}, false},
	{"downgrade", "Maintenance/Downgrade", &etcdserverpb.DowngradeRequest{Version: "3.5.0"}, false},
	{"authentication", "Auth/AuthStatus", &etcdserverpb.AuthStatusRequest{}, false},
	{"a user", "Auth/UserAdd", &etcdserverpb.AuthUserAddRequest{Name: "some", Password: "x"}, false},
	{"a lock of etcd's", "/v3lockpb.Lock/Unlock", &etcdserverpb.AuthStatusRequest{}, false},
	{"an election of etcd's", "/v3electionpb.Election/Leader", &etcdserverpb.AuthStatusRequest{}, false},
	{"health", "/grpc.health.v1.Health/Check", &etcdserverpb.AuthStatusRequest{}, false},

	// Of a machine, these have an effect, and come last.
	{
		"a transaction that deletes the record", "KV/Txn",
		txn("/firn/x", writing("/firn/x"), deleting("/firn/quorum", "")), false,
	},
	{
		"a transaction in one that writes the record", "KV/Txn",
		txn("/firn/x", txn("/firn/x", writing("/firn/quorum"))), false,
	},
	{"write the record", "KV/Put", writing("/firn/quorum"), false},
	{"delete the record", "KV/DeleteRange", deleting("/firn/quorum", ""), false},
	{"delete a range that ends after the record", "KV/DeleteRange", deleting("/firn/q", "/firn/quorum\x00"), false},
	{"delete all of firn's", "KV/DeleteRange", deleting("/firn/", "/firn0"), false},
}

func reading(key, end string) *etcdserverpb.RangeRequest {
	return &etcdserverpb.RangeRequest{Key: []byte(key), RangeEnd: []byte(end)}
}

func writing(key string) *etcdserverpb.PutRequest {
	return &etcdserverpb.PutRequest{Key: []byte(key), Value: []byte("{}")}
}

func deleting(key, end string) *etcdserverpb.DeleteRangeRequest {
	return &etcdserverpb.DeleteRangeRequest{Key: []byte(key), RangeEnd: []byte(end)}
}

func watching(key, end string) *etcdserverpb.WatchRequest {
	return &etcdserverpb.WatchRequest{
		RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{
			CreateRequest: &etcdserverpb.WatchCreateRequest{Key: []byte(key), RangeEnd: []byte(end)},
		},
	}
}

// txn is a transaction with the first operation if a key exists, and the others if not.
func txn(key string, operations ...any) *etcdserverpb.TxnRequest {
	var all []*etcdserverpb.RequestOp
	for _, o := range operations {
		op := new(etcdserverpb.RequestOp)
		switch o := o.(type) {
		case *etcdserverpb.RangeRequest:
			op.Request = &etcdserverpb.RequestOp_RequestRange{RequestRange: o}
		case *etcdserverpb.PutRequest:
			op.Request = &etcdserverpb.RequestOp_RequestPut{RequestPut: o}
		case *etcdserverpb.DeleteRangeRequest:
			op.Request = &etcdserverpb.RequestOp_RequestDeleteRange{RequestDeleteRange: o}
		case *etcdserverpb.TxnRequest:
			op.Request = &etcdserverpb.RequestOp_RequestTxn{RequestTxn: o}
		}
		all = append(all, op)
	}
	return &etcdserverpb.TxnRequest{
		Compare: []*etcdserverpb.Compare{{
			Key: []byte(key), Target: etcdserverpb.Compare_MOD,
			Result: etcdserverpb.Compare_GREATER,
		}},
		Success: all[:1], Failure: all[1:],
	}
}

// call makes a call, of any kind, and waits for the first answer.
func call(ctx context.Context, c *grpc.ClientConn, method string, message any) error {
	if !strings.HasPrefix(method, "/") {
		method = "/etcdserverpb." + method
	}
	s, err := c.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err == nil {
		err = s.SendMsg(message)
	}
	if err == nil {
		err = s.CloseSend()
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = s.RecvMsg(new(etcdserverpb.AuthDisableRequest)) // it has no fields: those of any answer are unknown
	}
	return err
}

// checkRights makes all calls over a machine's real port, and asks all that machines ask each other.
func checkRights(t *testing.T, address string, ring *keyring.Ring, machine bool) {
	t.Helper()
	c, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return ring.Dial(ctx, address, port.Clients)
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, one := range calls {
		if machine && strings.HasPrefix(one.method, "/v3") { // etcd leaves goroutines behind
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := call(ctx, c, one.method, one.message)
		cancel()
		code := status.Code(err)
		if refused := code == codes.PermissionDenied; refused == (machine || one.allowed) ||
			code == codes.Unavailable || code == codes.DeadlineExceeded {
			t.Errorf("%s: %v; want it allowed: %v", one.name, err, machine || one.allowed)
		}
	}
	a := newAsker(ring.Dial)
	defer a.CloseIdleConnections()
	for path, allowed := range map[string]bool{
		"GET /machine": true, "GET /backup": false, "POST /log": false,
		"POST /offer": false, "POST /form": false, "POST /defragment": false,
	} {
		method, path, _ := strings.Cut(path, " ")
		err := a.call(t.Context(), address, method, path, "no such body", nil)
		if refused := err != nil && strings.Contains(err.Error(), "403"); refused == (machine || allowed) {
			t.Errorf("%s: %v; want it allowed: %v", path, err, machine || allowed)
		}
	}
	for _, protocol := range []string{port.ByMachine(port.Clients), port.ByMachine(port.Exchange), "http/1.1"} {
		config := ring.Client(address)
		config.NextProtos = []string{protocol}
		conn, err := tls.Dial("tcp", address, config)
		if err == nil { // the machine has yet to look at the certificate
			_ = conn.SetDeadline(time.Now().Add(patience))
			_, err = io.WriteString(conn, "GET /machine HTTP/1.1\r\nHost: x\r\n\r\n")
			if err == nil { // each answers something to that
				_, err = conn.Read(make([]byte, 1))
			}
			conn.Close()
		}
		if (err == nil) != machine {
			t.Errorf("%s: %v; want it allowed: %v", protocol, err, machine)
		}
	}
	// What else etcd answers to those who speak HTTP is for nobody.
	conn, err := ring.Dial(t.Context(), address, port.Clients)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	for _, host := range []string{"x", ""} {
		_, _ = io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || r.StatusCode != http.StatusMisdirectedRequest {
			t.Fatalf("GET /metrics of %q: %v, %v; want 421", host, r, err)
		}
	}
}

// clientFile writes the file for clients that follows from a file of the machines.
func clientFile(t *testing.T, machines string) (path string) {
	t.Helper()
	text, err := ClientKey(machines)
	path = filepath.Join(t.TempDir(), "client")
	if err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

func ringFrom(t *testing.T, path string) *keyring.Ring {
	t.Helper()
	keys, err := keyring.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keyring.FromKeys(keys)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// What each key allows, call by call, over a real port.
func TestRightsOfKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.open(w.start(w.machines[0]))
	checkRights(t, w.machines[0], ringFrom(t, clientFile(t, w.key)), false)
	checkRights(t, w.machines[0], ringFrom(t, w.key), true)
}

// What each certificate of an authority of one's own allows, by its name.
func TestRightsOfNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	own, dir := certtest.NewAuthority(t, "own"), t.TempDir()
	issue := func(name string, cert, key []byte) Config {
		c := w.config(w.machines[0])
		c.KeyFile, c.CAFile = "", filepath.Join(dir, "ca")
		c.CertFile, c.CertKeyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
		for path, text := range map[string][]byte{c.CAFile: own.PEM, c.CertFile: cert, c.CertKeyFile: key} {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return c
	}
	ringOf := func(c Config) *keyring.Ring {
		ring, err := keyring.FromFiles(c.CAFile, c.CertFile, c.CertKeyFile, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return ring
	}
	cert, key := own.Issue("machine", x509.ExtKeyUsageAny, time.Time{})
	machine := issue("machine", cert, key)
	w.open(w.startWith(machine))
	cert, key = own.IssueTo(keyring.ClientName)
	client := issue("client", cert, key)
	cert, key = own.IssueTo("www.example.com")
	other := issue("other", cert, key)

	other.Self = NoMachine
	q, err := New(other)
	if err != nil {
		t.Fatal(err)
	}
	const want = "that names a machine of its list, or client.quorum.firn.internal for a client"
	if said := q.Status(t.Context()).Machines[0].Err; !strings.Contains(said, want) {
		t.Errorf("another name: %q; want %q", said, want)
	}
	checkRights(t, w.machines[0], ringOf(client), false)
	checkRights(t, w.machines[0], ringOf(machine), true)
	if q, err := New(client); err != nil || q.Start() == nil {
		t.Errorf("a machine starts with a client's certificate, %v", err)
	}
}

// A process with a client's key uses the store as one with the machines' key does, and changes nothing else. It can't
// be a machine.
func TestClientWithAClientsKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	machine := w.machines[0]
	w.open(w.start(machine))
	c := w.config(NoMachine)
	c.KeyFile = clientFile(t, w.key)
	q := w.startWith(c)
	s := w.open(q)
	if _, err := s.Commit(t.Context(), put("key", "value")); err != nil {
		t.Error(err)
	}
	session, err := s.OpenSession(t.Context(), 10*time.Second)
	if err == nil {
		_, err = s.Commit(t.Context(), store.Txn{Then: []store.Op{store.PutEphemeral("pulse", []byte("1"), session)}})
	}
	if err != nil {
		t.Error(err)
	}
	if at, err := s.Append(t.Context(), "entry", []byte("{}")); err != nil || at == 0 {
		t.Errorf("Append: %d, %v", at, err)
	}
	for batch, err := range s.Follow(t.Context(), 0) {
		if err != nil || len(batch.Entries) != 1 {
			t.Errorf("Follow: %v, %v", batch, err)
		}
		break
	}
	if status := q.Status(t.Context()); !status.Majority || status.Machines[0].Role != Voter {
		t.Errorf("Status: %+v", status)
	}
	for what, err := range map[string]error{
		"Backup":  q.Backup(t.Context(), io.Discard),
		"Replace": q.Replace(t.Context(), machine, "ids-9:7420"),
		"Remove":  q.Remove(t.Context(), machine),
	} {
		if !errors.Is(err, ErrClient) {
			t.Errorf("%s: %v; want ErrClient", what, err)
		}
	}
	if _, err := s.Commit(t.Context(), put(recordKey, "{}")); !errors.Is(err, store.ErrRefused) {
		t.Errorf("writing the record: %v; want it refused", err)
	}
	c.Self, c.Dir = machine, t.TempDir()
	if q, err := New(c); err != nil || q.Start() == nil {
		t.Errorf("a machine starts with a client's key, %v", err)
	}
	for what, make := range map[string]func(string) (string, error){"ClientKey": ClientKey, "AddKey": AddKey} {
		if _, err := make(c.KeyFile); err == nil ||
			!strings.HasSuffix(err.Error(), "it is for clients; want the file of the machines") {
			t.Errorf("%s of a client's file: %v", what, err)
		}
	}
}
