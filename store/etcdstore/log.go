package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/appends"
)

// The keys of the log. Those of the checkpoint are written together, and so have one
// version; the position has its own key, so that reading it does not read the value.
const (
	// and an ID: the data of that entry, whose position is the key's create revision
	logPrefix       = "log/"
	checkpointAt    = "checkpoint/position" // in decimal, 19 digits, so that etcd can compare positions
	checkpointValue = "checkpoint/value"

	// the ID of the entry that was appended last; it is put with that, and so its mod revision is the position of that
	lastEntry = "log-last"
)

// triesPerCall is how often an unanswered append is sent. Without a leader, or from a
// server that hangs, often no answer ever comes; another try is safe, and likely goes to
// another server.
const triesPerCall = 2

// trimsPerTxn is how many entries are deleted at once. A server allows 128
// operations, unless it was told otherwise.
const trimsPerTxn = 100

// Append adds an entry to the log, see store.Log. It normally takes one
// transaction, and another read once after Open and after each checkpoint.
func (s *Store) Append(ctx context.Context, id string, data []byte) (store.Position, error) {
	if err := store.ValidateEntry(id, data); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()
	return s.appender.Append(ctx, id, data)
}

// tries implements appends.Log.
type tries struct{ *Store }

// Try is one transaction, sent at most once as in Commit. It reads only the positions of
// an existing entry and of the checkpoint.
func (s tries) Try(ctx context.Context, id string, data []byte, checkpoint store.Version) (appends.Seen, error) {
	ctx, cancel := context.WithTimeout(ctx, s.deadline/triesPerCall)
	defer cancel()
	entry, at := s.prefix+logPrefix+id, s.prefix+checkpointAt
	resp, err := s.write(ctx, "append "+id,
		[]clientv3.Cmp{
			clientv3.Compare(clientv3.CreateRevision(entry), "=", 0),
			clientv3.Compare(clientv3.ModRevision(at), "=", int64(checkpoint)),
		},
		[]clientv3.Op{clientv3.OpPut(entry, string(data)), clientv3.OpPut(s.prefix+lastEntry, id)},
		clientv3.OpGet(at), clientv3.OpGet(entry, clientv3.WithKeysOnly()))
	if err != nil {
		return appends.Seen{}, err
	}
	now := store.Position(resp.Header.Revision)
	if resp.Succeeded {
		return appends.Seen{Entry: now, Checkpoint: checkpoint, Now: now}, nil
	}
	seen, err := seenIn(resp.Responses[0], now)
	if found := kvsIn(resp.Responses[1]); len(found) > 0 {
		seen.Entry = store.Position(found[0].CreateRevision)
	}
	return seen, err
}

// Look reads where the checkpoint is.
func (s tries) Look(ctx context.Context) (appends.Seen, error) {
	resp, err := s.read(ctx, checkpointAt)
	if err != nil {
		return appends.Seen{}, callError("look at the log", err)
	}
	return seen(resp.Kvs, store.Position(resp.Header.Revision))
}

// write sends a transaction of the log, at most once, with a deadline. Before it is sent no
// error is ambiguous.
func (s *Store) write(ctx context.Context, call string, conditions []clientv3.Cmp, then []clientv3.Op,
	otherwise ...clientv3.Op,
) (*clientv3.TxnResponse, error) {
	ctx, cancel, conn, err := s.begin(ctx)
	if err != nil {
		return nil, callError(call, err)
	}
	defer cancel()
	resp, err := conn.Txn(ctx).If(conditions...).Then(then...).Else(otherwise...).Commit()
	if err != nil {
		return nil, writeError(call, err)
	}
	return resp, nil
}

func kvsIn(response *etcdserverpb.ResponseOp) []*mvccpb.KeyValue {
	return response.GetResponseRange().Kvs
}

func seenIn(response *etcdserverpb.ResponseOp, now store.Position) (appends.Seen, error) {
	return seen(kvsIn(response), now)
}

// seen is what the checkpoint's position tells of the log; at is empty without one.
func seen(at []*mvccpb.KeyValue, now store.Position) (appends.Seen, error) {
	if len(at) == 0 {
		return appends.Seen{Now: now}, nil
	}
	trimmed, err := strconv.ParseInt(string(at[0].Value), 10, 64)
	if err != nil || trimmed <= 0 || len(at[0].Value) != len(decimal(0)) {
		return appends.Seen{}, fmt.Errorf("%w: the key %s holds %q; want the position of a checkpoint, in 19 digits",
			store.ErrRefused, at[0].Key, at[0].Value)
	}
	return appends.Seen{Checkpoint: store.Version(at[0].ModRevision), Trimmed: store.Position(trimmed), Now: now}, nil
}

// decimal writes positions so that they sort like numbers.
func decimal(position store.Position) string { return fmt.Sprintf("%019d", position) }

// Read returns what comes after a position, see store.Log. It is one transaction
// that only reads, and so at one revision.
func (s *Store) Read(ctx context.Context, after store.Position) (store.Batch, error) {
	batch, _, err := s.readLog(ctx, mark{upTo: after}, 0)
	return batch, err
}

// mark is how far a log is known.
type mark struct {
	upTo store.Position
	read bool // the log was read up to there, so it reached that far

	// The last entry that was read: it stays until a checkpoint stands for it. Zero: none was read.
	last   store.Position
	lastID string
}

// after is the mark once a batch was read that goes up to a position.
func (m mark) after(b store.Batch, upTo store.Position) mark {
	m.upTo, m.read = upTo, true
	if n := len(b.Entries); n > 0 {
		m.last, m.lastID = b.Entries[n-1].Position, b.Entries[n-1].ID
	}
	return m
}

// missing returns an error when the log is not the one that was read up to a mark.
func (m mark) missing(call string, seen appends.Seen, first []*mvccpb.KeyValue,
	idOf func(*mvccpb.KeyValue) string,
) error {
	switch {
	case m.upTo > seen.Now && m.read:
		return fmt.Errorf("%s: %w: the store has reached position %d only", call, store.ErrRolledBack, seen.Now)
	case m.upTo > seen.Now:
		return fmt.Errorf("%s: %w: the store has reached position %d only", call, store.ErrRefused, seen.Now)
	case m.last <= seen.Trimmed:
		return nil
	case len(first) > 0 && store.Position(first[0].CreateRevision) == m.last && idOf(first[0]) == m.lastID:
		return nil
	}
	return fmt.Errorf("%s: %w: the entry %s at %d is gone", call, store.ErrRolledBack, m.lastID, m.last)
}

// readLog reads what comes after a mark, at most so many entries unless that is zero, and
// returns how far the batch goes. It reads the checkpoint's value only if it must: etcd
// compares the positions. It reads the last known entry again, to see that it is there.
func (s *Store) readLog(ctx context.Context, known mark, atMost int64) (store.Batch, store.Position, error) {
	after, limit := known.upTo, atMost
	call := fmt.Sprintf("read the log after %d", after)
	if after < 0 {
		return store.Batch{}, 0, fmt.Errorf("%s: %w: the position is negative; want 0 or more", call, store.ErrRefused)
	}
	ctx, cancel, conn, err := s.begin(ctx)
	if err != nil {
		return store.Batch{}, 0, callError(call, err)
	}
	defer cancel()
	from := after + 1
	if known.last > 0 {
		from = known.last
		if limit > 0 {
			limit++
		}
	}
	at, value := clientv3.OpGet(s.prefix+checkpointAt), clientv3.OpGet(s.prefix+checkpointValue)
	entries := clientv3.OpGet(s.prefix+logPrefix, clientv3.WithPrefix(), clientv3.WithMinCreateRev(int64(from)),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend), clientv3.WithLimit(limit))
	resp, err := conn.Txn(ctx).
		If(clientv3.Compare(clientv3.Value(s.prefix+checkpointAt), ">", decimal(after))).
		Then(at, entries, value).
		Else(at, entries).
		Commit()
	switch {
	case isTooLong(err) && atMost > 1:
		return s.readLog(ctx, known, atMost/2)
	case err != nil:
		return store.Batch{}, 0, callError(call, err)
	}
	seen, err := seenIn(resp.Responses[0], store.Position(resp.Header.Revision))
	if err != nil {
		return store.Batch{}, 0, err
	}
	found := kvsIn(resp.Responses[1])
	if err := known.missing(call, seen, found, s.idOf); err != nil {
		if errors.Is(err, store.ErrRolledBack) {
			s.appender.Forget()
		}
		return store.Batch{}, 0, err
	}
	s.appender.Learn(seen)
	var batch store.Batch
	if resp.Succeeded {
		batch.Checkpoint = &store.Checkpoint{Position: seen.Trimmed}
		if value := kvsIn(resp.Responses[2]); len(value) > 0 {
			batch.Checkpoint.Value = value[0].Value
		}
		after = seen.Trimmed
	}
	for _, kv := range found {
		if entry := s.entry(kv); entry.Position > after {
			batch.Entries = append(batch.Entries, entry)
		}
	}
	if resp.Responses[1].GetResponseRange().More {
		batch.More = true
		return batch, max(after, store.Position(found[len(found)-1].CreateRevision)), nil
	}
	return batch, seen.Now, nil
}

// quiet reports whether nothing has come to the log since it was read up to a mark, and up to where that is so. False
// may also mean that nobody can tell. It reads three small keys, where readLog has the servers look at every entry that
// is there.
func (s *Store) quiet(ctx context.Context, known mark) (upTo store.Position, ok bool) {
	ctx, cancel, conn, err := s.begin(ctx)
	if err != nil {
		return 0, false
	}
	defer cancel()
	resp, err := conn.Txn(ctx).Then(clientv3.OpGet(s.prefix+checkpointAt),
		clientv3.OpGet(s.prefix+lastEntry, clientv3.WithKeysOnly()),
		clientv3.OpGet(s.prefix+logPrefix+known.lastID, clientv3.WithKeysOnly())).Commit()
	if err != nil {
		return 0, false
	}
	seen, err := seenIn(resp.Responses[0], store.Position(resp.Header.Revision))
	last := kvsIn(resp.Responses[1])
	if err != nil || len(last) == 0 || last[0].ModRevision > int64(known.upTo) || seen.Trimmed > known.upTo ||
		known.missing("", seen, kvsIn(resp.Responses[2]), s.idOf) != nil {
		return 0, false
	}
	s.appender.Learn(seen)
	return seen.Now, true
}

func (s *Store) entry(kv *mvccpb.KeyValue) store.LogEntry {
	return store.LogEntry{Position: store.Position(kv.CreateRevision), ID: s.idOf(kv), Data: kv.Value}
}

func (s *Store) idOf(kv *mvccpb.KeyValue) string {
	return strings.TrimPrefix(string(kv.Key), s.prefix+logPrefix)
}

// Checkpoint writes what the log led to, see store.Log.
func (s *Store) Checkpoint(ctx context.Context, c store.Checkpoint) error {
	if err := c.Validate(); err != nil {
		return err
	}
	call := fmt.Sprintf("checkpoint at %d", c.Position)
	ctx, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()
	for {
		seen, err := tries{s}.Look(ctx)
		switch {
		case err != nil:
			return err
		case c.Position <= seen.Trimmed:
			return nil
		case c.Position > seen.Now:
			return fmt.Errorf("%s: %w: the store has reached position %d only", call, store.ErrRefused, seen.Now)
		}
		written, err := s.replaceCheckpoint(ctx, call, seen.Checkpoint, c)
		if written || err != nil {
			return err
		}
	}
}

// replaceCheckpoint replaces the checkpoint of this version; false when another client
// has replaced it meanwhile.
func (s *Store) replaceCheckpoint(ctx context.Context, call string, version store.Version,
	c store.Checkpoint,
) (bool, error) {
	at := s.prefix + checkpointAt
	resp, err := s.write(ctx, call,
		[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(at), "=", int64(version))},
		[]clientv3.Op{
			clientv3.OpPut(at, decimal(c.Position)),
			clientv3.OpPut(s.prefix+checkpointValue, string(c.Value)),
		})
	if err != nil {
		return false, err
	}
	if resp.Succeeded {
		now := store.Position(resp.Header.Revision)
		s.appender.Learn(appends.Seen{Checkpoint: store.Version(now), Trimmed: c.Position, Now: now})
	}
	return resp.Succeeded, nil
}

// Trim drops the entries that the checkpoint stands for, see store.Log. It sends as many
// transactions as necessary, each with its own deadline.
//
// The condition of a delete is that the entry's create revision is still not beyond the
// checkpoint. It also holds for an entry that another client has deleted: so clients
// that trim at once don't hinder each other, and an entry whose ID was used again stays.
func (s *Store) Trim(ctx context.Context) error {
	seen, err := tries{s}.Look(ctx)
	if err != nil || seen.Trimmed == 0 {
		return err
	}
	old, err := s.read(ctx, logPrefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(),
		clientv3.WithMaxCreateRev(int64(seen.Trimmed)))
	if err != nil {
		return callError("trim", err)
	}
	for some := range slices.Chunk(old.Kvs, trimsPerTxn) {
		if err := s.deleteUpTo(ctx, seen.Trimmed, some); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) deleteUpTo(ctx context.Context, position store.Position, old []*mvccpb.KeyValue) error {
	const call = "trim"
	conditions, deletes := make([]clientv3.Cmp, 0, len(old)), make([]clientv3.Op, 0, len(old))
	for _, kv := range old {
		key := string(kv.Key)
		conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(key), "<", int64(position)+1))
		deletes = append(deletes, clientv3.OpDelete(key))
	}
	resp, err := s.write(ctx, call, conditions, deletes)
	if err != nil {
		return err
	}
	if !resp.Succeeded {
		return fmt.Errorf("%s: %w: an entry ID was reused meanwhile", call, store.ErrUnavailable)
	}
	return nil
}
