package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/api/firnv1"
)

// lasting is an answer that goes on. It is read until its end.
type lasting struct {
	name string
	want string // in the last that comes
	end  func() (last string, err error)
}

const unknown = "unknown token"

// Every answer that goes on ends when its token is revoked, whatever the protocol, and says why.
func TestRevokedTokenEndsStreams(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens, others := filepath.Join(dir, "tokens.yaml"), filepath.Join(dir, "others.yaml")
	token := newToken(t, tokens, "--name=app", "--allow=issue", "--allow=attach", "--allow=admin")
	newToken(t, others, "--name=other", "--allow=issue")
	n := serve(t, "node", "--data-dir="+filepath.Join(dir, "data"), "--tokens="+tokens, "--grpc-addr=127.0.0.1:0",
		"--redis-addr=127.0.0.1:0")
	n.opens()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	all := []lasting{
		n.follows(ctx, token, n.url+"/api/v1/cluster/log?follow=1"),
		n.follows(ctx, token, n.admin+"/api/v1/cluster/log?follow=1"),
		n.follows(ctx, token, n.admin+"/ui/stream"),
		n.streams(ctx, token, true),
		n.streams(ctx, token, false),
		n.increments(token),
	}
	if err := os.Rename(others, tokens); err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		last, err := one.end()
		if err != nil || !strings.Contains(last, one.want) {
			t.Errorf("%s ends with %q, %v; want %q", one.name, last, err, one.want)
		}
	}
}

// follows begins an answer over HTTP.
func (n *node) follows(ctx context.Context, token, url string) lasting {
	n.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := new(http.Transport).RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusOK {
		n.t.Fatalf("%s: %v, %v", url, response, err)
	}
	n.t.Cleanup(func() { response.Body.Close() })
	return lasting{url, unknown, func() (string, error) {
		text, err := io.ReadAll(response.Body)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		return lines[len(lines)-1], err
	}}
}

// streams begins a stream of IDs over gRPC. One that is not read at once waits for its reader when the token is
// revoked.
func (n *node) streams(ctx context.Context, token string, read bool) lasting {
	n.t.Helper()
	conn, err := grpc.NewClient(n.listens("grpc_addr"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { conn.Close() })
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	stream, err := firnv1.NewFirnClient(conn).Stream(ctx, &firnv1.StreamRequest{BatchSize: 10_000})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return lasting{fmt.Sprintf("a stream over gRPC, read: %v", read), unknown, func() (string, error) {
		if !read { // the end is counted, not sent behind what is not read
			return n.refusedBy("/firn.v1.Firn/Stream")
		}
		for {
			if _, err := stream.Recv(); err != nil {
				if status.Code(err) != codes.Unauthenticated {
					return "", err
				}
				return status.Convert(err).Message(), nil
			}
		}
	}}
}

// refusedBy waits for two refusals of a call in the log.
func (n *node) refusedBy(call string) (string, error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if strings.Count(n.log.String(), "call="+call+" outcome=unauthenticated") >= 2 {
			return unknown, nil
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("it is not refused within %v", patience)
		}
	}
}

// increments takes IDs over a connection of Redis until that is refused.
func (n *node) increments(token string) lasting {
	n.t.Helper()
	c, err := net.DialTimeout("tcp", n.listens("redis_addr"), patience)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	replies := bufio.NewReader(c)
	ask := func(command string) (string, error) {
		if _, err := io.WriteString(c, command+"\r\n"); err != nil {
			return "", err
		}
		return replies.ReadString('\n')
	}
	for _, command := range []string{"AUTH " + token, "INCR default"} {
		if reply, err := ask(command); err != nil || strings.HasPrefix(reply, "-") {
			n.t.Fatalf("%.4s: %q, %v", command, reply, err)
		}
	}
	return lasting{"INCR", "NOAUTH", func() (string, error) {
		for {
			if reply, err := ask("INCR default"); err != nil || strings.HasPrefix(reply, "-") {
				return reply, err
			}
		}
	}}
}
