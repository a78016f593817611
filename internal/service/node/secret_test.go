//go:build unix

package node

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/firn-id/firn/internal/service/admit/auth"
)

// A node without a private place for its secret serves, and can't be administered.
func TestSecretNowhere(t *testing.T) {
	base := t.TempDir()
	t.Setenv("RUNTIME_DIRECTORY", "")
	t.Setenv("XDG_RUNTIME_DIR", base)
	if err := os.Symlink(t.TempDir(), filepath.Join(base, "firn")); err != nil { // as another user may have
		t.Fatal(err)
	}
	c := testConfig(t)
	c.Store, c.Etcd.Endpoints = nil, []string{"127.0.0.1:1"}
	n := newNode(t, c)
	if err := n.Listen(); err != nil {
		t.Fatal(err)
	}
	defer n.Stop()
	n.keepSecret()()
	var locked *auth.SecretError
	if _, err := (&auth.Policy{Trusted: true, Secret: n.secret}).Admit("wrong"); err == nil {
		t.Error("it is let in")
	} else if ok := errors.As(err, &locked); !ok || locked.File != "" {
		t.Errorf("%v", err)
	}
}
