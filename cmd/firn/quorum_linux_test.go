package main

import (
	"testing"

	"github.com/firn-id/firn/internal/test/testenv"
)

// The scripts of quorums have several machines on this one: Linux takes every address that begins with 127 for its own.
func TestQuorumScripts(t *testing.T) {
	testenv.Slow(t)
	scripts(t, "testdata/quorum", nil)
}
