package member

import (
	"io"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequencer"
)

// Every option gets to the member behind: a field that is forgotten there, or here, fails.
func TestEveryOptionIsPassedOn(t *testing.T) {
	o := Options{
		TTL: time.Minute, Window: time.Minute, Nodes: func(string, sequencer.Definition) *sequencer.Range {
			return nil
		},
		Region: sequencer.Region{Number: 1, Of: 2}, CheckpointEvery: 5, Order: WaitForIDs, Journal: io.Discard,
		Resumed: make(chan struct{}), Owner: "ids-1", Host: "host", Place: "place",
		Clock: firn.NewSteadyClock(0), Logger: slog.New(slog.DiscardHandler),
	}
	given, passed := reflect.ValueOf(o), reflect.ValueOf(o.peer())
	for i := range given.NumField() {
		name := given.Type().Field(i).Name
		if to := passed.FieldByName(name); given.Field(i).IsZero() || !to.IsValid() || to.IsZero() {
			t.Errorf("%s is %v here, and %v there", name, given.Field(i), to)
		}
	}
}
