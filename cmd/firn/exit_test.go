package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/ops/setting"
)

func TestStatus(t *testing.T) {
	stopped, stop := context.WithCancelCause(t.Context())
	stop(signalError{syscall.SIGINT})
	for _, tt := range []struct {
		ctx    context.Context
		args   string
		status int
		says   string // on stderr; empty: nothing
	}{
		{t.Context(), "version", statusOK, ""},
		{t.Context(), "decode 5", statusOK, ""},
		{t.Context(), "decode ?", statusFailure, "not an ID in any form"},
		{t.Context(), "id --server http://127.0.0.1:1", statusFailure, "no answer"},
		{t.Context(), "serv", statusUsage, "no command"},
		{t.Context(), "help serv", statusUsage, "no command"},
		{t.Context(), "completion bash now", statusUsage, "takes the name of one shell"},
		{t.Context(), "version now", statusUsage, "takes no arguments"},
		{t.Context(), "id --count=x", statusUsage, "--count"},
		{t.Context(), "id --nope", statusUsage, "unknown flag"},
		{t.Context(), "layout nope", statusUsage, "no preset"},
		{t.Context(), "serve --etcd host", statusUsage, "no port"},
		{t.Context(), "serve --window 2ms", statusUsage, "too short"},
		{t.Context(), "serve --config " + t.TempDir(), statusUsage, "config file"},
		{t.Context(), "serve --epoch 2100-01-01", statusFailure, "clock is wrong"},
		{t.Context(), "doctor --settings --epoch 2100-01-01", statusFailure, "clock is wrong"},
		{stopped, "id --local -n 1000000", statusInterrupted, ""},
		{stopped, "id --server http://127.0.0.1:1", statusInterrupted, ""},
	} {
		var stdout, stderr strings.Builder
		got := run(tt.ctx, strings.Fields(tt.args), nil, strings.NewReader(""), &stdout, &stderr)
		if got != tt.status {
			t.Errorf("firn %s: status %d, want %d", tt.args, got, tt.status)
		}
		if say := stderr.String(); (say != "") != (tt.says != "") || !strings.Contains(say, tt.says) ||
			strings.Count(say, "\n") > 1 {
			t.Errorf("firn %s says %q, want one line with %q", tt.args, say, tt.says)
		}
	}
	for _, err := range []error{
		peer.ErrWaiting, &fence.ClockBehindError{Behind: time.Hour},
		&peer.ClockError{Ahead: time.Hour, Of: 2, Others: 2},
	} {
		explained := explain(err)
		if status(fmt.Errorf("wrapped: %w", explained)) != statusNoNode ||
			!strings.HasSuffix(explained.Error(), "--wait waits") {
			t.Errorf("%v: status %d", explained, status(explained))
		}
	}
	if is := status(fmt.Errorf("wrapped: %w", peer.ErrExpelled)); is != statusExpelled {
		t.Errorf("expelled: status %d, want %d", is, statusExpelled)
	}
}

// A password is what its file holds, without the end of the line.
func TestPasswordFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte(" secret \r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var o serveOptions
	flags := o.apart()
	if err := flags.Parse([]string{"--etcd", "a:1", "--etcd-user", "me", "--etcd-password-file", path}); err != nil {
		t.Fatal(err)
	}
	s, err := o.settings(flags, setting.Sources{})
	if err != nil || s.Etcd.Password != " secret " {
		t.Errorf("the password is %q, %v", s.Etcd.Password, err)
	}
}
