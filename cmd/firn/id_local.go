package main

import (
	"context"
	"time"

	"github.com/firn-id/firn"
)

// local makes IDs in this process.
type local struct{ *firn.Generator }

func newLocal(o idOptions) (local, error) {
	layout, err := o.layout.chosen()
	if err != nil {
		return local{}, err
	}
	if o.node >= layout.NodeIDs() {
		return local{}, usagef("--node: the layout %v has node IDs 0 to %d, not %d", layout, layout.NodeIDs()-1, o.node)
	}
	g, err := firn.NewGenerator(layout, o.node)
	return local{g}, err
}

// end waits until the last tick that was used is over, so that the next run can't use it too.
func (l local) end(ctx context.Context) error {
	over := l.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(over)):
		return nil
	}
}
