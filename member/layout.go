package member

import (
	"context"
	"errors"
	"fmt"

	"github.com/firn-id/firn/store"
)

// A LayoutError is returned when the members of a sequencer have agreed on another layout: their
// IDs and those of this member could be the same.
type LayoutError struct {
	Sequencer, Have, Want string
}

func (e *LayoutError) Error() string {
	return fmt.Sprintf("member: sequencer %q has the layout %s; this member wants %s, which would make duplicates", e.Sequencer, e.Have, e.Want)
}

// agreeOnLayout makes sure that all members of the sequencer have one layout: the first writes it down.
func (m *Member) agreeOnLayout(ctx context.Context) error {
	if m.agreed {
		return nil
	}
	key, want := "sequencers/"+m.config.Sequencer+"/layout", m.config.Layout.String()
	have, err := m.config.Store.Get(ctx, key)
	if err != nil {
		return err
	}
	if have.Version == 0 {
		_, err := m.config.Store.Commit(ctx, store.Txn{
			If:   []store.Condition{{Key: key}},
			Then: []store.Op{store.Put(key, []byte(want))},
		})
		if err == nil {
			m.agreed = true
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		if have, err = m.config.Store.Get(ctx, key); err != nil {
			return err
		}
	}
	if string(have.Value) != want {
		return &LayoutError{Sequencer: m.config.Sequencer, Have: string(have.Value), Want: want}
	}
	m.agreed = true
	return nil
}
