package main

import (
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// A run of firn id --local ends after the last tick that it used, so that the next can't use it too.
func TestLocalRunsFollowEachOther(t *testing.T) {
	layout := firn.Default
	layout.Tick = 20 * time.Millisecond
	l, err := newLocal(idOptions{layout: layoutFlags{layout: layout}})
	if err != nil {
		t.Fatal(err)
	}
	var last firn.ID
	for range 2 {
		id, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		last = id
	}
	if err := l.end(t.Context()); err != nil {
		t.Fatal(err)
	}
	if first, err := layout.First(time.Now()); err != nil || first <= last {
		t.Errorf("the run has ended within the tick of %d: %v", last, err)
	}
}
