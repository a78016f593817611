package counter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/store"
)

// Key returns the key of a counter, which outlives the sequencer.
func Key(name string) string { return "sequencers/" + name + "/counter" }

// recordJSON is what the key of a counter holds.
type recordJSON struct {
	Last int64  `json:"last"`
	Size int64  `json:"size,omitempty"`
	Era  int64  `json:"era,omitempty"`
	Mark string `json:"mark,omitempty"` // of the write, which its owner knows again
	By   string `json:"by,omitempty"`   // whom the owner said it is
}

func (r Record) put(key, mark, by string) (store.Op, error) {
	value, err := json.Marshal(recordJSON{r.Last, r.Size, r.Era, mark, by})
	return store.Put(key, value), err
}

// parse reads the value of a key; an empty one is that of an absent key.
func parse(key string, value []byte) (v recordJSON, err error) {
	if len(value) == 0 {
		return v, nil
	}
	if err = json.Unmarshal(value, &v); err == nil && (v.Last < 0 || v.Size < 0 || v.Size > v.Last) {
		err = fmt.Errorf("a block of %d numbers up to %d", v.Size, v.Last)
	}
	if err != nil {
		return v, fmt.Errorf("the key %q can't be read, so that no number can be given: it holds %.100q: %w", key,
			value, err)
	}
	return v, nil
}

// Read reads a counter and the store's era. The mark is that of the record's write. Errors are those of the store, or
// say what can't be read.
func Read(ctx context.Context, s store.Store, key string) (v View, mark string, err error) {
	era, err := s.Get(ctx, floor.EraKey)
	if err != nil {
		return v, "", err
	}
	kv, err := s.Get(ctx, key) // last: if the era has changed since, nothing can be written by what this shows
	if err != nil {
		return v, "", err
	}
	v = View{Version: kv.Version, IfEra: era.Version}
	if v.StoreEra, err = floor.ParseEra(era.Value); err != nil {
		return v, "", err
	}
	r, err := parse(key, kv.Value)
	v.Record, v.By = Record{r.Last, r.Size, r.Era}, r.By
	return v, r.Mark, err
}

// Tell changes the store's era, once it has lost data, so that nobody claims numbers before an operator resumes. A
// write in doubt needs no care: another one does no harm. Errors are those of the store.
func Tell(ctx context.Context, s store.Store) error {
	_, err := s.Commit(ctx, store.Txn{Then: []store.Op{floor.NewEra()}})
	return err
}

// Fits returns a *SmallerError when the numbers of the rule's present time are not above those that are reserved.
func Fits(v View, r Rule, now time.Time) error {
	if l := r.Limits(now, v.Last); max(v.Last, l.After) >= l.Last && !l.Until.IsZero() {
		return &SmallerError{After: max(v.Last, l.After), Last: l.Last}
	}
	return nil
}

// Found puts the record of a counter that is created, unless there is one. It must be there before anybody can claim: a
// counter without one may be one whose record the store has lost. So after a loss of data Found does nothing, unless
// the operator has said after which number the counter begins: it is lost until Resume. A write in doubt needs no care:
// the caller calls Found again. Errors are those of the store, or say what can't be read.
func Found(ctx context.Context, s store.Store, key string, after int64) error {
	v, _, err := Read(ctx, s, key)
	if err != nil || v.Version != 0 || v.StoreEra != 0 && after == 0 {
		return err
	}
	err = write(ctx, s, key, v, Record{Era: v.StoreEra})
	if errors.Is(err, store.ErrConflict) { // another one was faster, or the era has changed
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return err
}

// ResumeAfter has a counter go on above a number after the store has lost data. A *ResumeError is returned when it
// can't, and store.ErrUnavailable also when another write came in between. After a write in doubt the caller calls it
// again; if it then returns that the counter has not stopped, the write was applied.
func ResumeAfter(ctx context.Context, s store.Store, key string, after int64, l Limits) error {
	v, _, err := Read(ctx, s, key)
	if err != nil {
		return err
	}
	r, err := Resume(v, after, l)
	if err != nil {
		return err
	}
	err = write(ctx, s, key, v, r)
	if errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return err
}

// write puts a record that is no block, and so needs no mark.
func write(ctx context.Context, s store.Store, key string, v View, r Record) error {
	put, err := r.put(key, "", "")
	if err != nil {
		return err
	}
	_, err = s.Commit(ctx, store.Txn{
		If:   []store.Condition{{Key: key, Version: v.Version}, {Key: floor.EraKey, Version: v.IfEra}},
		Then: []store.Op{put},
	})
	return err
}
