package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/firn-id/firn/store"
)

func (s *suite) append(client store.Store, id, data string) store.Position {
	s.Helper()
	position, err := client.Append(s.ctx, id, []byte(data))
	s.must("Append "+id, err)
	return position
}

// appendAtLast appends through a client that may not reach the service yet.
func (s *suite) appendAtLast(client store.Store, id, data string) (position store.Position) {
	s.Helper()
	s.eventually("Append "+id, func() (err error) {
		position, err = client.Append(s.ctx, id, []byte(data))
		return err
	})
	return position
}

func (s *suite) read(after store.Position) store.Batch {
	s.Helper()
	batch, err := s.Read(s.ctx, after)
	s.must(fmt.Sprintf("Read after %d", after), err)
	return batch
}

func (s *suite) checkpoint(client store.Store, at store.Position, value string) {
	s.Helper()
	err := client.Checkpoint(s.ctx, store.Checkpoint{Position: at, Value: []byte(value)})
	s.must(fmt.Sprintf("Checkpoint at %d", at), err)
}

func (s *suite) trim(client store.Store) {
	s.Helper()
	s.must("Trim", client.Trim(s.ctx))
}

// wantLog checks that the log was never cut and has these entries, as "id=data".
func (s *suite) wantLog(want ...string) []store.LogEntry {
	s.Helper()
	batch := s.read(0)
	if got := lines(batch.Entries); batch.Checkpoint != nil || !slices.Equal(got, want) {
		s.Fatalf("the log has %q after %+v, want %q", got, batch.Checkpoint, want)
	}
	return batch.Entries
}

func lines(entries []store.LogEntry) (all []string) {
	for _, e := range entries {
		all = append(all, e.ID+"="+string(e.Data))
	}
	return all
}

// tape is what a Follow has yielded so far.
type tape struct {
	suite *suite
	stop  context.CancelFunc
	ended chan struct{} // closed when the Follow has ended

	mu          sync.Mutex // guards what follows
	batches     int
	upTo        store.Position // the last position that it yielded
	checkpoints []store.Checkpoint
	entries     []store.LogEntry
	err         error
}

// follow runs a Follow until the case ends. It checks that positions ascend and
// that only the first batch is empty.
func (s *suite) follow(client store.Store, after store.Position) *tape {
	ctx, stop := context.WithCancel(s.ctx)
	t := &tape{suite: s, stop: stop, ended: make(chan struct{}), upTo: after}
	go func() {
		defer close(t.ended)
		for batch, err := range client.Follow(ctx, after) {
			t.add(batch, err)
		}
	}()
	s.Cleanup(func() {
		stop()
		<-t.ended
	})
	return t
}

func (t *tape) add(batch store.Batch, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		t.suite.Errorf("Follow goes on after %v", t.err)
	}
	if t.err = err; err != nil {
		if batch.Checkpoint != nil || len(batch.Entries) > 0 {
			t.suite.Errorf("Follow yields %+v with %v", batch, err)
		}
		return
	}
	if t.batches++; t.batches > 1 && batch.Checkpoint == nil && len(batch.Entries) == 0 {
		t.suite.Error("Follow yields nothing, and not at its beginning")
	}
	if batch.Checkpoint != nil {
		t.ascends(batch.Checkpoint.Position)
		t.checkpoints = append(t.checkpoints, *batch.Checkpoint)
	}
	for _, e := range batch.Entries {
		t.ascends(e.Position)
	}
	t.entries = append(t.entries, batch.Entries...)
}

func (t *tape) ascends(position store.Position) {
	if position <= t.upTo {
		t.suite.Errorf("Follow yields %d after %d", position, t.upTo)
	}
	t.upTo = position
}

// until waits for something to be true of the tape; it is called with mu held.
func (t *tape) until(what string, is func() bool) {
	t.suite.Helper()
	t.suite.eventually(what, func() error {
		t.mu.Lock()
		defer t.mu.Unlock()
		if is() {
			return nil
		}
		return errors.Join(fmt.Errorf("a follower has got %d entries up to %d", len(t.entries), t.upTo), t.err)
	})
}

// begun waits for the first batch.
func (t *tape) begun() {
	t.suite.Helper()
	t.until("the first batch of Follow", func() bool { return t.batches > 0 })
}

// reaches waits until the tape is at this position.
func (t *tape) reaches(position store.Position) {
	t.suite.Helper()
	t.until("Follow reaches the last entry", func() bool { return t.upTo >= position })
}

// want checks all entries that it has yielded, as "id=data".
func (t *tape) want(want ...string) {
	t.suite.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	if got := lines(t.entries); !slices.Equal(got, want) {
		t.suite.Errorf("Follow has yielded %q, want %q", got, want)
	}
}
