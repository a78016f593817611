package etcdserver

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// Of all that etcd says only errors come through, with their fields, and
// none of them while the server is being closed.
func TestEtcdLog(t *testing.T) {
	var out bytes.Buffer
	log := newEtcdLog(t.TempDir(), slog.New(slog.NewTextHandler(&out, nil)))
	etcd := log.zap().With(zap.String("member", "firn"))
	etcd.Debug("no")
	etcd.Info("no")
	etcd.Warn("no")
	etcd.Error("failed to update storage version")
	if out.Len() > 0 {
		t.Errorf("logged: %s", &out)
	}
	etcd.Error("disk full", zap.Error(errors.New("no space left")))
	log.error("ended", errors.New("by itself"))
	log.error("no", nil)
	for _, want := range []string{`"etcd: disk full"`, `member=firn`, `error="no space left"`, `err="by itself"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %s", want, &out)
		}
	}
	out.Reset()
	log.muted.Store(true)
	etcd.Error("no")
	log.error("no", errors.New("closed"))
	if out.Len() > 0 {
		t.Errorf("logged while muted: %s", &out)
	}
}
