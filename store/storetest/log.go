package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/firn-id/firn/store"
)

// "While an entry of that ID is in the log ..., Append adds no other and returns the
// position of that one."
func appendOnce(s *suite) {
	first := s.append(s.Store, "a", "first")
	other := s.open()
	for _, client := range []store.Store{s.Store, other, s.Store} {
		if again := s.append(client, "a", "again"); again != first {
			s.Errorf("the entry is at %d, and appended again at %d", first, again)
		}
	}
	s.wantLog("a=first")
}

// The same when many append it at once.
func appendOnceAtOnce(s *suite) {
	const clients, each = 4, 3
	positions := make(chan store.Position, clients*each)
	var all sync.WaitGroup
	for range clients {
		client := s.open()
		for range each {
			all.Go(func() {
				position, err := client.Append(s.ctx, "a", []byte("1"))
				if err != nil {
					s.Errorf("Append: %v", err)
				}
				positions <- position
			})
		}
	}
	all.Wait()
	close(positions)
	entries := s.wantLog("a=1")
	for position := range positions {
		if position != entries[0].Position {
			s.Errorf("the entry is at %d, and one who appended it has it at %d", entries[0].Position, position)
		}
	}
}

// "Later entries have greater positions ... Every position is positive"; and Read
// returns everything after any of them.
func positionsAscend(s *suite) {
	clients := []store.Store{s.Store, s.open()}
	var positions []store.Position
	var want []string
	for i := range 6 {
		id := fmt.Sprintf("e-%d", 9-i) // the order of the IDs is not that of the entries
		positions = append(positions, s.append(clients[i%2], id, strconv.Itoa(i)))
		want = append(want, fmt.Sprintf("%s=%d", id, i))
		s.put("other", "1")
	}
	if positions[0] <= 0 || !slices.IsSorted(positions) ||
		len(slices.Compact(slices.Clone(positions))) != len(positions) {
		s.Fatalf("the positions are %v", positions)
	}
	for i, entry := range s.wantLog(want...) {
		if entry.Position != positions[i] {
			s.Errorf("%s is at %d, and was appended at %d", entry.ID, entry.Position, positions[i])
		}
	}
	for i, after := range positions {
		for _, after := range []store.Position{after, after + 1} { // between two entries too
			if batch := s.read(after); !slices.Equal(lines(batch.Entries), want[i+1:]) || batch.Checkpoint != nil {
				s.Errorf("after %d there is %q, want %q", after, lines(batch.Entries), want[i+1:])
			}
			if i == len(positions)-1 {
				break // beyond is nothing
			}
		}
	}
}

// Data are bytes, and are the log's own once appended.
func entryData(s *suite) {
	for i, data := range [][]byte{nil, {}, {0}, {0, 255, 10, 13}, bytes.Repeat([]byte{7}, store.MaxEntry)} {
		mine := slices.Clone(data)
		position, err := s.Append(s.ctx, fmt.Sprintf("d-%d", i), mine)
		s.must("Append", err)
		for j := range mine {
			mine[j] ^= 1
		}
		if entries := s.read(position - 1).Entries; len(entries) != 1 || !bytes.Equal(entries[0].Data, data) {
			s.Errorf("%d bytes came back as %d entries", len(data), len(entries))
		}
	}
}

// "Read returns everything after a position as it was at one moment": also while
// the beginning is cut off. The entries are numbered, and each checkpoint says
// the number of the last one that it stands for.
func readMoment(s *suite) {
	defer s.meanwhile(func(i int) error {
		number := []byte(strconv.Itoa(i))
		position, err := s.Append(s.ctx, fmt.Sprintf("e-%d", i), number)
		if err != nil || i%5 != 0 {
			return err
		}
		err = s.Checkpoint(s.ctx, store.Checkpoint{Position: position, Value: number})
		return errors.Join(err, s.Trim(s.ctx))
	})()
	reader := s.open()
	var after store.Position
	last := 0 // the number of the entry there
	for range 100 {
		batch, err := reader.Read(s.ctx, after)
		s.must("Read", err)
		if batch.Checkpoint != nil {
			if batch.Checkpoint.Position <= after {
				s.Fatalf("a log read after %d begins with a checkpoint at %d", after, batch.Checkpoint.Position)
			}
			after = batch.Checkpoint.Position
			last, _ = strconv.Atoi(string(batch.Checkpoint.Value))
		}
		for _, entry := range batch.Entries {
			if number, _ := strconv.Atoi(string(entry.Data)); number != last+1 || entry.Position <= after {
				s.Fatalf("entry %d at %d comes after %d at %d", number, entry.Position, last, after)
			}
			last++
			after = entry.Position
		}
	}
}

// "Checkpoint, when not nil, replaces all that the reader knew before": a read from
// before it begins with it, a read from there on doesn't, whether it was trimmed or not.
func readCheckpoint(s *suite) {
	a, b := s.append(s.Store, "a", "1"), s.append(s.Store, "b", "2")
	s.append(s.Store, "c", "3")
	s.checkpoint(s.Store, b, "a and b")
	for range 2 {
		for _, after := range []store.Position{0, a, b - 1} {
			batch := s.read(after)
			if batch.Checkpoint == nil || batch.Checkpoint.Position != b ||
				string(batch.Checkpoint.Value) != "a and b" {
				s.Errorf("what comes after %d begins with the checkpoint %+v", after, batch.Checkpoint)
			}
			if got := lines(batch.Entries); !slices.Equal(got, []string{"c=3"}) {
				s.Errorf("what comes after %d is %q", after, got)
			}
		}
		if batch := s.read(b); batch.Checkpoint != nil || !slices.Equal(lines(batch.Entries), []string{"c=3"}) {
			s.Errorf("what comes after the checkpoint is %+v", batch)
		}
		s.trim(s.Store)
	}
}

// "ErrRefused, for example when the position is negative or lies beyond all that the
// store has written."
func readElsewhere(s *suite) {
	last := s.append(s.Store, "a", "1")
	for _, after := range []store.Position{-1, last + 1000, 1<<63 - 1} {
		if _, err := s.Read(s.ctx, after); !errors.Is(err, store.ErrRefused) {
			s.Errorf("Read after %d: %v, want ErrRefused", after, err)
		}
		for batch, err := range s.Follow(s.ctx, after) {
			if !errors.Is(err, store.ErrRefused) {
				s.Fatalf("Follow after %d: %+v, %v, want ErrRefused", after, batch, err)
			}
		}
	}
}

// "It only moves forward: a checkpoint at or before the current one changes nothing
// and is no error."
func checkpointForward(s *suite) {
	var positions []store.Position
	for i := range 4 {
		positions = append(positions, s.append(s.Store, fmt.Sprintf("e-%d", i), "1"))
	}
	other := s.open()
	for _, c := range []struct {
		client store.Store
		at     int
		value  string
		want   string
	}{
		{s.Store, 1, "one", "one"},
		{other, 1, "one again", "one"},
		{other, 0, "zero", "one"},
		{other, 2, "two", "two"},
		{s.Store, 1, "one", "two"},
		{s.Store, 2, "two again", "two"},
		{s.Store, 3, "", ""},
	} {
		s.checkpoint(c.client, positions[c.at], c.value)
		if got := s.read(0).Checkpoint; got == nil || string(got.Value) != c.want {
			s.Errorf("after a checkpoint at %d the log begins with %+v, want %q", positions[c.at], got, c.want)
		}
	}
	s.checkpoint(s.Store, 0, "nothing")
	err := s.Checkpoint(s.ctx, store.Checkpoint{Position: positions[3] + 1000})
	if !errors.Is(err, store.ErrRefused) {
		s.Errorf("a checkpoint that lies ahead: %v, want ErrRefused", err)
	}
	if c := s.read(0).Checkpoint; c == nil || c.Position != positions[3] {
		s.Errorf("the log begins with %+v, want %d", c, positions[3])
	}
}

// The same when several write them at once: what was written, or found to be
// written already, is never undone.
func checkpointForwardAtOnce(s *suite) {
	const clients, each = 4, 20
	positions := make([]store.Position, clients*each)
	for i := range positions {
		positions[i] = s.append(s.Store, fmt.Sprintf("e-%d", i), "1")
	}
	s.atOnce(clients, func(i int, client store.Store) error {
		var last store.Position
		for n := range each {
			at := positions[n*clients+i]
			err := client.Checkpoint(s.ctx, store.Checkpoint{Position: at, Value: []byte(strconv.Itoa(int(at)))})
			if err != nil {
				return err
			}
			batch, err := client.Read(s.ctx, 0)
			if err != nil || batch.Checkpoint == nil || batch.Checkpoint.Position < max(at, last) ||
				string(batch.Checkpoint.Value) != strconv.Itoa(int(batch.Checkpoint.Position)) {
				return fmt.Errorf("after checkpoints up to %d the log begins with %+v, %w", max(at, last),
					batch.Checkpoint, err)
			}
			last = batch.Checkpoint.Position
		}
		return nil
	})
}

// "Trim drops the entries up to the checkpoint's position", and no other. An ID
// that was trimmed is in the log no more.
func trimDrops(s *suite) {
	const many = 250
	s.trim(s.Store) // nothing yet
	positions := make([]store.Position, many)
	for i := range positions {
		positions[i] = s.append(s.Store, fmt.Sprintf("e-%d", i), "1")
	}
	s.trim(s.Store) // nothing without a checkpoint
	if n := len(s.read(0).Entries); n != many {
		s.Fatalf("%d entries are left of %d without a checkpoint", n, many)
	}
	s.checkpoint(s.Store, positions[many-3], "most")
	if again := s.append(s.Store, "e-0", "2"); again != positions[0] {
		s.Errorf("e-0 is at %d, and appended again at %d before it was trimmed", positions[0], again)
	}
	s.trim(s.open())
	s.trim(s.Store)
	if got := lines(s.read(positions[many-3]).Entries); !slices.Equal(got, []string{"e-248=1", "e-249=1"}) {
		s.Errorf("%q is left", got)
	}
	if again := s.append(s.Store, "e-0", "2"); again <= positions[many-1] {
		s.Errorf("e-0 was trimmed, and is at %d", again)
	}
	if again := s.append(s.Store, "e-249", "2"); again != positions[many-1] {
		s.Errorf("e-249 was not trimmed, and is at %d as well as %d", again, positions[many-1])
	}
}

// "It is safe at any time, by several clients at once": whatever they do, a
// checkpoint and the entries after it are the whole log.
func trimAtOnce(s *suite) {
	const appenders, cutters, each = 3, 2, 40
	s.atOnce(appenders+cutters, func(i int, client store.Store) error {
		for n := range each {
			var err error
			if i < appenders {
				_, err = client.Append(s.ctx, fmt.Sprintf("e-%d-%d", i, n), []byte("1"))
			} else if n%2 == 0 {
				err = cut(s, client)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	batch := s.read(0)
	if have := standsFor(batch.Checkpoint) + len(batch.Entries); have != appenders*each {
		s.Errorf("the log has %d entries, want %d", have, appenders*each)
	}
}

// cut writes a checkpoint that says how many entries it stands for, and trims.
func cut(s *suite, client store.Store) error {
	batch, err := client.Read(s.ctx, 0)
	if err != nil || len(batch.Entries) < 2 {
		return err
	}
	keep := len(batch.Entries) / 2
	c := store.Checkpoint{
		Position: batch.Entries[keep-1].Position,
		Value:    []byte(strconv.Itoa(standsFor(batch.Checkpoint) + keep)),
	}
	return errors.Join(client.Checkpoint(s.ctx, c), client.Trim(s.ctx))
}

// standsFor is what the value of such a checkpoint says.
func standsFor(c *store.Checkpoint) int {
	if c == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(c.Value))
	return n
}

// "It returns ErrRefused when the ID is empty, too long or has characters other than
// ..., or when the data is too long"; what is just within the limits is accepted.
func logLimits(s *suite) {
	long := strings.Repeat("x", store.MaxID)
	for _, id := range []string{"", long + "x", "a/b", "a b", "ä", "a_b", "a\x00", "."} {
		if _, err := s.Append(s.ctx, id, nil); !errors.Is(err, store.ErrRefused) {
			s.Errorf("Append(%q) = %v, want ErrRefused", id, err)
		}
	}
	if _, err := s.Append(s.ctx, "a", make([]byte, store.MaxEntry+1)); !errors.Is(err, store.ErrRefused) {
		s.Errorf("Append of too much: %v, want ErrRefused", err)
	}
	s.wantLog()
	last := s.append(s.Store, long, strings.Repeat("x", store.MaxEntry))
	s.append(s.Store, "AZaz09-", "")
	large := make([]byte, store.MaxCheckpoint+1)
	if err := s.Checkpoint(s.ctx, store.Checkpoint{Position: last, Value: large}); !errors.Is(err, store.ErrRefused) {
		s.Errorf("Checkpoint of too much: %v, want ErrRefused", err)
	}
	if batch := s.read(0); batch.Checkpoint != nil || len(batch.Entries) != 2 {
		s.Errorf("the log has %d entries after %+v", len(batch.Entries), batch.Checkpoint)
	}
	s.checkpoint(s.Store, last, string(large[1:]))
	if c := s.read(0).Checkpoint; c == nil || !bytes.Equal(c.Value, large[1:]) {
		s.Error("the largest checkpoint did not come back")
	}
}
