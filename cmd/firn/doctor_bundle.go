package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/base/files"
	"github.com/firn-id/firn/internal/base/unixsocket"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/doctor"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/admit/secretfile"
	"github.com/firn-id/firn/internal/service/node"
	"github.com/firn-id/firn/internal/service/stores"
)

const (
	bundleWithin  = 30 * time.Second // for one part
	longestPart   = 16 << 20         // bytes of one
	bundledLog    = 24 * time.Hour   // of the log of the cluster
	longestBundle = 64 << 20         // bytes that are read for one part, of which the last are kept
)

// bundled is what a bundle has, as JSON.
type bundled struct {
	File  string        `json:"file"`
	Parts []doctor.Part `json:"parts"`
}

// bundle writes what support needs to a new file that only its owner can read, and prints what is in it.
func (p *program) bundle(ctx context.Context, path string, s configured, flags *pflag.FlagSet, access serverFlags,
	d diagnosis, asJSON bool,
) (err error) {
	if err := files.CheckWriters(path); err != nil {
		return usagef("--bundle: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return bundleExists(path)
	case err != nil:
		return usagef("--bundle: %w", err)
	}
	now := time.Now()
	parts, err := p.parts(ctx, now, s, access, d)
	if err == nil {
		parts, err = doctor.WriteBundle(f, now, parts, s.secrets(flags, access))
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, errors.Join(err, os.Remove(path)))
	}
	if asJSON {
		return json.NewEncoder(p.stdout).Encode(bundled{path, parts})
	}
	return p.printf("%s is for support. Passwords, keys and tokens are removed, names and addresses are not. Its "+
		"contents:\n%s",
		console.ShownText(path), doctor.Contents(parts))
}

func bundleExists(path string) error {
	return usagef("--bundle: %s exists; want the name of a new file", path)
}

// parts collects the parts of a bundle: what this machine knows, and what its node does, if that answers.
func (p *program) parts(ctx context.Context, now time.Time, s configured, access serverFlags,
	d diagnosis,
) ([]doctor.Part, error) {
	parts := []doctor.Part{
		{Name: "version.json", Data: marshal(readVersion())},
		{Name: "system.txt", Data: doctor.Facts(now)},
		{Name: "doctor.json", Data: marshal(d)}, // with the settings
	}
	at, unasked := adminOf(s, access)
	for _, one := range []struct {
		name, path, note string
		quorum           bool
	}{
		{"status.json", "/api/v1/cluster", "", false},
		{"quorum.json", quorumPath, "", true},
		{"history.json", "/api/v1/cluster/history", "", false},
		{
			"log.jsonl", "/api/v1/cluster/log?since=" + now.Add(-bundledLog).UTC().Format(time.RFC3339),
			"the last 24 hours", false,
		},
		{"metrics.txt", "/metrics", "", false},
		{"goroutines.txt", "/debug/pprof/goroutine?debug=1", "", false},
	} {
		if one.quorum && s.StoreKind() != stores.Quorum {
			continue
		}
		part, err := doctor.Part{Name: one.name, Note: one.note}, unasked
		if err == nil {
			part.Data, err = partOf(ctx, at, one.path)
		}
		if len(part.Data) > longestPart {
			part.Data, part.Note = part.Data[len(part.Data)-longestPart:],
				fmt.Sprintf("the last %d MiB", longestPart>>20)
		}
		if err != nil {
			part.Data, part.Why = nil, err.Error()
		}
		parts = append(parts, part)
	}
	return parts, interrupted(ctx, ctx.Err())
}

// adminOf is who asks the node with a configuration, on this machine. The error is why it can't be asked.
func adminOf(s configured, access serverFlags) (remote.Client, error) {
	all := addresses(s.Config)
	i := slices.IndexFunc(all, func(a doctor.Address) bool { return a.Flag == "admin-addr" })
	switch {
	case i < 0:
		return remote.Client{}, errors.New("the node has no address for administrators")
	case all[i].Passed:
		return remote.Client{},
			fmt.Errorf("systemd passes the socket of --admin-addr, %s, whose address is not known here", all[i].At)
	}
	// no host name: another process could listen at another address of that, and get the token
	access.name, access.url = "admin-addr", all[i].At
	if scheme, _, _ := strings.Cut(all[i].URL, "://"); !unixsocket.Is(all[i].At) {
		access.url = scheme + "://" + node.Reachable(all[i].At)
	}
	return access.client()
}

// partOf returns what a node answers.
func partOf(ctx context.Context, at remote.Client, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, bundleWithin)
	defer cancel()
	response, err := at.Do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(response.Body, longestBundle))
}

// secrets are all that a node's settings, and those of who asks it, have or name.
func (s configured) secrets(flags *pflag.FlagSet, access serverFlags) *doctor.Secrets {
	all := new(doctor.Secrets)
	flags.VisitAll(func(f *pflag.Flag) { all.AddURL(f.Value.String()) })
	all.Add(s.Etcd.Password)
	for _, path := range []string{s.Postgres.PasswordFile, s.ZooKeeper.PasswordFile} {
		all.AddPassword(path)
	}
	for _, path := range []string{
		s.TLS.Key, s.SealKeyFile, s.Quorum.KeyFile, s.Quorum.CertKeyFile, s.Etcd.KeyFile, s.Postgres.KeyFile,
		s.ZooKeeper.KeyFile,
		access.TokenFile, access.Key, filepath.Join(cmp.Or(s.DataDir, "."), secretfile.Name),
	} {
		all.AddKeys(path)
	}
	return all
}
