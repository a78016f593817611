package httpapi_test

import (
	"testing"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/test/servertest"
)

// newLog is the member b of a cluster with these commands in its log at the positions 2, 4, 6 and so on.
func newLog(t testing.TB, commands ...cluster.Command) *servertest.Told {
	t.Helper()
	f := servertest.Tell(t, "b")
	for _, c := range commands {
		appendAt(f, time.Time{}, c)
	}
	return f
}

// appendAt appends a command that was sent at a time, after a position that is no entry's.
func appendAt(f *servertest.Told, sent time.Time, c cluster.Command) {
	f.Put("another", "key")
	f.ApplyAt(sent, c)
}
