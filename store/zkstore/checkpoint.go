package zkstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/appends"
	"github.com/firn-id/firn/store/zkstore/internal/wire"
)

// pieces reads the value of a checkpoint.
func (s *Store) pieces(ctx context.Context, h head) ([]byte, error) {
	gets := make([]wire.Request, len(h.Pieces))
	for i, piece := range h.Pieces {
		gets[i] = wire.Get(s.root + pieces + "/" + piece)
	}
	replies, err := s.peek(ctx, gets...)
	if err != nil {
		return nil, err
	}
	var value []byte
	for _, r := range replies {
		if r.Err != 0 {
			return nil, errMoved
		}
		value = append(value, r.Data...)
	}
	if len(value) > store.MaxCheckpoint {
		return nil, fmt.Errorf("%w: the pieces of the checkpoint have %d bytes; want at most %d", store.ErrRefused,
			len(value), store.MaxCheckpoint)
	}
	return value, nil
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

// replaceCheckpoint replaces the checkpoint of this version; false when another client has replaced it meanwhile. It
// writes all but the last piece of a large value before; Trim removes what comes to nothing.
func (s *Store) replaceCheckpoint(ctx context.Context, call string, under store.Version,
	c store.Checkpoint,
) (bool, error) {
	h := head{Position: c.Position}
	transaction := []wire.Request{{}}
	prefix := newMark()
	rest := c.Value
	for {
		piece := rest[:min(len(rest), pieceSize)]
		rest = rest[len(piece):]
		name := fmt.Sprintf("%s-%d", prefix, len(h.Pieces))
		h.Pieces = append(h.Pieces, name)
		create := s.create(s.root+pieces+"/"+name, piece, wire.Persistent)
		if len(rest) == 0 {
			transaction = append(transaction, create)
			break
		}
		transaction = append(transaction, wire.Check(s.root+pieces+"/"+name, wire.AnyVersion))
		reply, err := s.write(ctx, call, create)
		if _, code := reply.Failed(); err == nil && code != 0 {
			err = wrap(call, store.ErrUnavailable, code)
		}
		if errors.Is(err, store.ErrAmbiguous) { // of the piece; the checkpoint is as it was
			err = fmt.Errorf("%s: %w: a piece may be missing: %s", call, store.ErrUnavailable, err.Error())
		}
		if err != nil {
			return false, err
		}
	}
	text, err := json.Marshal(h)
	if err != nil {
		return false, err
	}
	transaction[0] = wire.Set(s.root+checkpoint, text, int32(under))
	reply, err := s.write(ctx, call, transaction...)
	if err != nil {
		return false, err
	}
	if _, code := reply.Failed(); code != 0 {
		return false, nil //nolint:nilerr // another checkpoint, or the piece of another client's Trim: look again
	}
	s.appender.Learn(appends.Seen{Checkpoint: under + 1, Trimmed: c.Position, Now: store.Position(reply.Stat.Modified)})
	return true, nil
}

// Trim drops the entries that the checkpoint stands for, see store.Log: the oldest first, in as many transactions as
// necessary, each with its own deadline. It also drops the values of former checkpoints.
func (s *Store) Trim(ctx context.Context) error {
	const call = "trim"
	for {
		replies, err := s.read(ctx, wire.Get(s.root+checkpoint), wire.Children(s.root+log, false))
		if err != nil {
			return callError(call, err)
		}
		h, err := parseHead(replies[0])
		if err != nil {
			return callError(call, err)
		}
		if h.Position == 0 {
			return nil
		}
		old := entriesOf(replies[1].Children)
		kept, err := s.after(ctx, old, entry{}, h.Position)
		if err == nil {
			old = old[:len(old)-len(kept)]
			if len(old) == 0 {
				return s.dropPieces(ctx, h, replies[0].Stat)
			}
			err = s.drop(ctx, old)
		}
		if err != nil && !errors.Is(err, errMoved) {
			return callTrim(err)
		}
		if err := ctx.Err(); err != nil {
			return callTrim(err)
		}
	}
}

// callTrim is callError, which leaves what is ambiguous.
func callTrim(err error) error {
	if errors.Is(err, store.ErrAmbiguous) {
		return err
	}
	return callError("trim", err)
}

// drop deletes entries. It returns errMoved when another client has deleted some of them.
func (s *Store) drop(ctx context.Context, old []entry) error {
	for some := range slices.Chunk(old, trimsAtOnce) {
		parts := make([]wire.Request, 0, 2*len(some)+1)
		for _, e := range some {
			parts = append(parts, wire.Delete(s.entryPath(e), wire.AnyVersion),
				wire.Delete(s.idPath(e.id), wire.AnyVersion))
		}
		reply, err := s.write(ctx, "trim", parts...)
		if err != nil {
			return err
		}
		if _, code := reply.Failed(); code != 0 {
			return errMoved
		}
	}
	return nil
}

// dropPieces deletes the pieces of former checkpoints, and those that came to nothing: that are older than the
// checkpoint and not its own.
func (s *Store) dropPieces(ctx context.Context, h head, written wire.Stat) error {
	replies, err := s.read(ctx, wire.Children(s.root+pieces, false))
	if err != nil {
		return callError("trim", err)
	}
	for _, name := range replies[0].Children {
		if slices.Contains(h.Pieces, name) {
			continue
		}
		path := s.root + pieces + "/" + name
		replies, err := s.read(ctx, wire.Exists(path, false))
		if err != nil {
			return callError("trim", err)
		}
		if replies[0].Err != 0 || replies[0].Stat.Created >= written.Modified {
			continue
		}
		if _, err := s.write(ctx, "trim", wire.Delete(path, wire.AnyVersion)); err != nil {
			return err
		}
	}
	return nil
}
