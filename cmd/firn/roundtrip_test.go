//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/test/certtest"
	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store/etcdstore"
)

// Over a slow network, with TLS, members join within 30 s and remain members for longer than their TTL; firn doctor
// says that the store is slow, and not that it is away.
func TestSlowNetwork(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	const ttl = 6 * time.Second
	certs := certtest.WriteFiles(t, t.TempDir())
	server := etcdtest.Start(t, etcdtest.Options{Certs: certs})
	for _, roundTrip := range []time.Duration{350 * time.Millisecond, time.Second} {
		t.Run(roundTrip.String(), func(t *testing.T) {
			t.Parallel()
			proxy := proxytest.New(t, server.Address())
			proxy.Delay(roundTrip / 2)
			config := etcdstore.Config{
				Endpoints: []string{proxy.Address()}, Prefix: "/firn-" + roundTrip.String(),
				CAFile: certs.CA, CertFile: certs.ClientCert, KeyFile: certs.ClientKey,
			}
			join := func() *peer.Member {
				s, err := etcdstore.Open(config)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = s.Close() })
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				began := time.Now()
				m, err := peer.Join(ctx, s, peer.Options{TTL: ttl})
				if err != nil {
					t.Fatalf("Join: %v", err)
				}
				t.Cleanup(m.Leave)
				t.Logf("joined after %v", time.Since(began))
				return m
			}
			first := join()
			id, since := first.ID(), time.Now()
			sequencer, err := first.EnsureSequencer(t.Context(), peer.DefaultSequencer, cluster.Define(firn.Default))
			if err == nil {
				_, err = sequencer.Next(t.Context())
			}
			if err != nil {
				t.Fatalf("no ID: %v", err)
			}
			t.Logf("the first ID %v later", time.Since(since))

			var out, errs bytes.Buffer
			var status int
			var examining sync.WaitGroup
			examining.Go(func() {
				status = run(t.Context(), []string{
					"doctor", "--http-addr", "127.0.0.1:0", "--etcd", proxy.Address(), "--etcd-prefix", config.Prefix,
					"--etcd-ca", certs.CA, "--etcd-cert", certs.ClientCert, "--etcd-key", certs.ClientKey,
				}, nil, strings.NewReader(""), &out, &errs)
			})
			join() // which needs the first one
			examining.Wait()
			slow := fmt.Sprintf("warn etcd can read and write keys below %s/; a read takes ", config.Prefix)
			if status != statusOK || !strings.Contains(strings.Join(strings.Fields(out.String()), " "), slow) {
				t.Errorf("firn doctor ended with %d and said\n%s%s\nwant the etcd to be slow, and nothing to fail",
					status, &out, &errs)
			}

			time.Sleep(time.Until(since.Add(2 * ttl)))
			if first.ID() != id || first.Err() != nil {
				t.Errorf("the first member is %s now, %v; want it to remain %s", first.ID(), first.Err(), id)
			}
			proxy.Delay(0) // to leave
		})
	}
}
