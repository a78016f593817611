package zkstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/answers"
	"github.com/firn-id/firn/store/internal/appends"
	"github.com/firn-id/firn/store/zkstore/internal/wire"
)

// triesPerCall is how often an unanswered append is sent: another try is safe, and goes to another server.
const triesPerCall = 2

// trimsAtOnce is how many entries are deleted in one transaction.
const trimsAtOnce = 100

// pieceSize is the most of a checkpoint's value that is in one node, which must fit into one request.
const pieceSize = 512 << 10

// maxPieces is in how many nodes a checkpoint's value may be.
const maxPieces = 16

// head is what the node of the checkpoint holds; nothing at all without a checkpoint.
type head struct {
	Position store.Position `json:"position"`
	Pieces   []string       `json:"pieces"` // the nodes of the value, in order
}

func parseHead(reply wire.Reply) (h head, err error) {
	if reply.Err != 0 {
		return h, reply.Err
	}
	if len(reply.Data) == 0 {
		return h, nil
	}
	if err := json.Unmarshal(reply.Data, &h); err != nil || h.Position <= 0 || len(h.Pieces) > maxPieces {
		return head{}, fmt.Errorf("%w: the node %s holds %.80q; want a position, and at most %d pieces",
			store.ErrRefused, checkpoint, reply.Data, maxPieces)
	}
	return h, nil
}

// seen is what a read of the checkpoint's node tells of the log. Its version is how often the node was written.
func seen(reply wire.Reply) (appends.Seen, error) {
	h, err := parseHead(reply)
	return appends.Seen{
		Checkpoint: store.Version(reply.Stat.Version), Trimmed: h.Position,
		Now: store.Position(reply.Zxid),
	}, err
}

// entry is a node of the log, by its name: the entry's ID, "-", and ten digits by which the nodes are in order.
type entry struct {
	id, name string
	number   int64
}

const entryDigits = 10

func entryOf(name string) (entry, bool) {
	at := len(name) - entryDigits
	if at < 2 || name[at-1] != '-' {
		return entry{}, false
	}
	number, err := strconv.ParseInt(name[at:], 10, 64)
	return entry{id: name[:at-1], name: name, number: number}, err == nil
}

// entriesOf are the entries of these nodes, in order.
func entriesOf(names []string) []entry {
	all := make([]entry, 0, len(names))
	for _, name := range names {
		if e, ok := entryOf(name); ok {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.number, b.number) })
	return all
}

func (s *Store) entryPath(e entry) string { return s.root + log + "/" + e.name }
func (s *Store) idPath(id string) string  { return s.root + ids + "/" + id }

// Append adds an entry to the log, see store.Log. It normally takes one transaction, and a read once after Open.
func (s *Store) Append(ctx context.Context, id string, data []byte) (store.Position, error) {
	if err := store.ValidateEntry(id, data); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()
	position, err := s.appender.Append(ctx, id, data)
	if err != nil && !errors.Is(err, store.ErrRolledBack) {
		return 0, err
	}
	if s.tellLoss() && err == nil {
		return 0, fmt.Errorf("append %s: %w", id, store.ErrRolledBack)
	}
	return position, err
}

// tellLoss returns true once after each loss of data, unless a Follow has told of it.
func (s *Store) tellLoss() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	untold := s.untold
	s.untold = false
	return untold
}

// tries implements appends.Log.
type tries struct{ *Store }

// Try is one transaction. The entry's position is the transaction's number.
func (s tries) Try(ctx context.Context, id string, data []byte, under store.Version) (appends.Seen, error) {
	call := "append " + id
	ctx, cancel := context.WithTimeout(ctx, s.deadline/triesPerCall)
	defer cancel()
	reply, err := s.write(ctx, call,
		wire.Check(s.root+checkpoint, int32(under)),
		s.create(s.idPath(id), nil, wire.Persistent),
		s.create(s.root+log+"/"+id+"-", data, wire.Sequential),
	)
	if err != nil {
		return appends.Seen{}, err
	}
	part, code := reply.Failed()
	switch {
	case code == 0:
		now := store.Position(reply.Stat.Modified)
		return appends.Seen{Entry: now, Checkpoint: under, Now: now}, nil
	case part > 1:
		return appends.Seen{}, wrap(call, store.ErrUnavailable, code)
	}
	for {
		replies, err := s.read(ctx, wire.Exists(s.idPath(id), false), wire.Get(s.root+checkpoint))
		if err != nil {
			return appends.Seen{}, callError(call, err)
		}
		seen, err := seen(replies[1])
		if err != nil {
			return seen, callError(call, err)
		}
		if replies[1].Stat.Modified > replies[0].Zxid { // whether the entry was there is from before this checkpoint
			continue
		}
		if replies[0].Err == 0 {
			seen.Entry = store.Position(replies[0].Stat.Created)
		}
		return seen, nil
	}
}

// Look reads where the checkpoint is.
func (s tries) Look(ctx context.Context) (appends.Seen, error) {
	const call = "look at the log"
	replies, err := s.read(ctx, wire.Get(s.root+checkpoint))
	if err != nil {
		return appends.Seen{}, callError(call, err)
	}
	seen, err := seen(replies[0])
	if err != nil {
		return seen, callError(call, err)
	}
	return seen, nil
}

// write sends a transaction of the log, at most once, with a deadline. Its errors are those of package store; what a
// server refuses is in the reply, unless another try is of no use.
func (s *Store) write(ctx context.Context, call string, parts ...wire.Request) (wire.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()
	conn, err := s.link(ctx)
	if err != nil {
		return wire.Reply{}, callError(call, err)
	}
	reply, err := s.transact(ctx, conn, parts)
	if errors.Is(err, wire.ErrLost) {
		return reply, wrap(call, store.ErrAmbiguous, err)
	}
	if _, code := reply.Failed(); err == nil && code != 0 && code != wire.ErrNoNode && code != wire.ErrNodeExists &&
		code != wire.ErrBadVersion {
		err = code
	}
	if err != nil {
		return reply, callError(call, err)
	}
	return reply, nil
}

// Read returns what comes after a position, see store.Log.
func (s *Store) Read(ctx context.Context, after store.Position) (store.Batch, error) {
	batch, _, err := s.readLog(ctx, mark{upTo: after}, 0, false)
	return batch, err
}

// mark is how far a log is known.
type mark struct {
	upTo   store.Position
	read   bool           // the log was read up to there, so it reached that far
	last   entry          // the last entry that was read; without a name: none was
	lastAt store.Position // and its position
}

// errMoved means that the log was changed while it was read.
var errMoved = errors.New("the log was changed meanwhile")

// readLog reads what comes after a mark, at most limit entries unless that is zero, and returns the mark after that.
// hints asks for an event when the log changes, and then the answer may be older than the call.
func (s *Store) readLog(ctx context.Context, known mark, limit int, hints bool) (store.Batch, mark, error) {
	call := fmt.Sprintf("read the log after %d", known.upTo)
	if known.upTo < 0 {
		return store.Batch{}, known,
			fmt.Errorf("%s: %w: the position is negative; want 0 or more", call, store.ErrRefused)
	}
	ctx, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()
	for {
		batch, now, err := s.readLogOnce(ctx, known, limit, hints)
		if errors.Is(err, errMoved) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return store.Batch{}, known, callError(call, err)
		}
		return batch, now, nil
	}
}

func (s *Store) readLogOnce(ctx context.Context, known mark, limit int, hints bool) (batch store.Batch,
	now mark, err error,
) {
	ask := s.read
	if hints {
		ask = s.peek
	}
	replies, err := ask(ctx, wire.Children(s.root+log, hints), wire.Get(s.root+checkpoint))
	if err != nil {
		return batch, known, err
	}
	h, err := parseHead(replies[1])
	if err != nil {
		return batch, known, err
	}
	if replies[1].Stat.Modified > replies[0].Zxid { // the entries are from before this checkpoint
		return batch, known, errMoved
	}
	reached, entries := store.Position(replies[0].Zxid), entriesOf(replies[0].Children)
	if err := known.missing(h, reached, entries); err != nil {
		return batch, known, err
	}
	s.appender.Learn(appends.Seen{
		Checkpoint: store.Version(replies[1].Stat.Version),
		Trimmed:    h.Position, Now: reached,
	})
	now = known
	now.read = true
	from := known.upTo
	if h.Position > from {
		value, err := s.pieces(ctx, h)
		if err != nil {
			return batch, known, err
		}
		batch.Checkpoint = &store.Checkpoint{Position: h.Position, Value: value}
		from = h.Position
	}
	if entries, err = s.after(ctx, entries, known.last, from); err != nil {
		return batch, known, err
	}
	if limit > 0 && len(entries) > limit {
		entries, batch.More = entries[:limit], true
	}
	if err := s.entries(ctx, entries, limit > 0, &batch, &now); err != nil {
		return batch, known, err
	}
	if err := answers.Batch(known.upTo, batch); err != nil {
		return batch, known, err
	}
	now.upTo = max(from, now.lastAt)
	return batch, now, nil
}

// entries reads entries into a batch, and marks the last. In pieces, it stops where the batch takes much memory.
func (s *Store) entries(ctx context.Context, entries []entry, inPieces bool, batch *store.Batch, now *mark) error {
	size := 0
	for some := range slices.Chunk(entries, readsAtOnce) {
		switch {
		case size > answers.Max/2 && inPieces:
			batch.More = true
			return nil
		case size > answers.Max:
			return fmt.Errorf("the log has more than %d bytes", answers.Max)
		}
		gets := make([]wire.Request, len(some))
		for i, e := range some {
			gets[i] = wire.Get(s.entryPath(e))
		}
		replies, err := s.peek(ctx, gets...)
		if err != nil {
			return err
		}
		for i, r := range replies {
			if r.Err != 0 {
				return errMoved
			}
			size += len(r.Data)
			now.last, now.lastAt = some[i], store.Position(r.Stat.Created)
			batch.Entries = append(batch.Entries, store.LogEntry{Position: now.lastAt, ID: some[i].id, Data: r.Data})
		}
	}
	return nil
}

// missing returns an error when the log is not the one that was read up to a mark.
func (m mark) missing(h head, reached store.Position, entries []entry) error {
	switch {
	case m.upTo > reached && m.read:
		return fmt.Errorf("%w: the store has reached position %d only", store.ErrRolledBack, reached)
	case m.upTo > reached:
		return fmt.Errorf("%w: the store has reached position %d only", store.ErrRefused, reached)
	case m.lastAt <= h.Position:
		return nil
	case slices.Contains(entries, m.last):
		return nil
	}
	return fmt.Errorf("%w: the entry %s at %d is gone", store.ErrRolledBack, m.last.id, m.lastAt)
}

// after drops the entries up to a position: those up to the last known one without asking.
func (s *Store) after(ctx context.Context, entries []entry, last entry, position store.Position) ([]entry, error) {
	if last.name != "" {
		entries = slices.DeleteFunc(entries, func(e entry) bool { return e.number <= last.number })
	}
	if position == 0 || len(entries) == 0 {
		return entries, nil
	}
	var failed error
	first := sort.Search(len(entries), func(i int) bool {
		if failed != nil {
			return true
		}
		at, err := s.position(ctx, entries[i])
		failed = err
		return at > position
	})
	return entries[first:], failed
}

// position reads where an entry is.
func (s *Store) position(ctx context.Context, e entry) (store.Position, error) {
	replies, err := s.peek(ctx, wire.Exists(s.entryPath(e), false))
	switch {
	case err != nil:
		return 0, err
	case replies[0].Err != 0:
		return 0, errMoved
	}
	return store.Position(replies[0].Stat.Created), nil
}
