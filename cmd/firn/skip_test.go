package main

import (
	"context"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/firn-id/firn/store/etcdstore"
)

// poison writes an entry into the log of a quorum of one, which is of a version that nobody knows, and sets POSITION.
func poison(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: poison DIR")
	}
	s, err := etcdstore.Open(etcdstore.Config{Endpoints: []string{"unix://" + ts.MkAbs(args[0]) + "/run/etcd.sock"}})
	ts.Check(err)
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	at, err := s.Append(ctx, "poison", []byte(`{"version":99,"command":"x","args":{}}`))
	ts.Check(err)
	ts.Setenv("POSITION", strconv.FormatInt(int64(at), 10))
}
