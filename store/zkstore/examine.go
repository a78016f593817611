package zkstore

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/store/zkstore/internal/wire"
)

// ServerReport is what one server says of itself.
type ServerReport struct {
	Server  string        // host:port
	Err     error         // why it does not serve this client
	Version string        // such as "3.8.0"; empty: it does not tell
	Mode    string        // "leader", "follower", "observer" or "standalone"; empty: it does not tell
	Took    time.Duration // how long a read took
}

// Examine asks every server for its state, and whether this client may read and write its nodes: if not, it returns
// an error of package store. To try a write it sends a transaction that can't succeed. The servers tell their version
// and mode only where 4lw.commands.whitelist has srvr, as it has unless told otherwise.
func (s *Store) Examine(ctx context.Context) ([]ServerReport, error) {
	servers := make([]ServerReport, len(s.servers))
	var all sync.WaitGroup
	for i, server := range s.servers {
		all.Go(func() { servers[i] = s.examineServer(ctx, server) })
	}
	all.Wait()
	ctx, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()
	conn, err := s.link(ctx)
	if err != nil {
		return servers, callError("connect", err)
	}
	if _, err := s.read(ctx, wire.Get(s.root+checkpoint), wire.Children(s.root+keys, false)); err != nil {
		return servers, callError("read", err)
	}
	const never = 1<<31 - 1
	replies, err := conn.Do(ctx, wire.Multi(
		s.create(s.path("examined"), nil, wire.Persistent), wire.Delete(s.path("examined"), wire.AnyVersion),
		wire.Set(s.root+revision, nil, wire.AnyVersion), wire.Check(s.root+revision, never),
	))
	if err != nil {
		return servers, callError("write", err)
	}
	if _, code := replies[0].Failed(); code != wire.ErrBadVersion {
		return servers, callError("write", code)
	}
	return servers, nil
}

func (s *Store) examineServer(ctx context.Context, server string) ServerReport {
	r := ServerReport{Server: server}
	ctx, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()
	r.Version, r.Mode = s.askServer(ctx, server)
	conn, err := s.reach(ctx, server, wire.Session{}, s.deadline, s.deadline, nil)
	if err != nil {
		r.Err = err
		return r
	}
	began := time.Now()
	if _, r.Err = conn.Do(ctx, wire.Sync(s.root), wire.Exists(s.root, false)); r.Err == nil {
		r.Took = time.Since(began)
	}
	_ = conn.Close(ctx)
	return r
}

// askServer has a server describe itself.
func (s *Store) askServer(ctx context.Context, server string) (version, mode string) {
	conn, err := s.connect(server)(ctx)
	if err != nil {
		return "", ""
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return "", ""
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 1<<16))
	if err != nil && !errors.Is(err, io.EOF) {
		return "", ""
	}
	for line := range strings.Lines(string(answer)) {
		if v, is := strings.CutPrefix(line, "Zookeeper version: "); is {
			version, _, _ = strings.Cut(v, "-")
		}
		if m, is := strings.CutPrefix(line, "Mode: "); is {
			mode = strings.TrimSpace(m)
		}
	}
	return version, mode
}
