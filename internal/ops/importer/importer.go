// Package importer gives IDs to rows that exist already, each with the row's own time. It sorts the times of a CSV, has
// a server give IDs to them in ascending order, and brings the IDs back into the order of the rows. Its memory is
// bounded: the rest is in temporary files.
package importer

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/bigsort"
	"github.com/firn-id/firn/internal/base/fresh"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/idtext"
)

// Import is one import. Its methods are called one after the other: Open, Read, Give, Write and, in any case, Close.
type Import struct {
	Client    remote.Client
	Sequencer string
	Column    string         // of the times: its name, or its number from 1 on; empty: the first one
	Zone      *time.Location // of times that name none
	Job       string         // its name; empty: that of the file of progress, or a new one
	Next      bool           // where a tick has no IDs left, its rows get IDs of the next one that has some
	Progress  string         // the file that keeps what was given; empty: none
	Patience  time.Duration  // how long a call is repeated that brings no answer; zero: never
	Warn      func(error)    // gets what is no reason to end; nil: nobody gets it

	now    func() time.Time
	memory int // pairs that each of two sorters has in memory
	batch  int // rows of a call
	pause  time.Duration

	known    idtext.Sequencer // what the server says of Sequencer
	layout   firn.Layout
	progress *progress
	named    bool            // the first row has the names of the columns
	rows     *bigsort.Sorter // the tick and the number of each row
	answers  *bigsort.Sorter // the number and the ID of each
	digest   string          // of the input, and of what was read in it
	opened   bool            // the job has begun: the server is a server
	ids      []firn.ID       // room for an answer
	sent     []byte          // room for a body

	phase                atomic.Int32
	read, given, resumed atomic.Int64 // see Status
	moved, node          int64        // see Result
}

// New returns an Import of a sequencer. Its other public fields may be set until it is opened.
func New(client remote.Client, sequencer string) *Import {
	client.Owner = new(atomic.Pointer[remote.Client]) // for hundreds of calls
	return &Import{
		Client: client, Sequencer: sequencer, Zone: time.UTC, Patience: 10 * time.Minute,
		now: time.Now, memory: 12 << 20 / bigsort.Size, batch: 20_000, pause: 250 * time.Millisecond, node: -1,
	}
}

// Open asks the server what the sequencer is, and opens the file of progress.
func (i *Import) Open(ctx context.Context) (err error) {
	var s calls.StatusSequencer
	if _, err := i.Client.Call(ctx, http.MethodGet, remote.SequencerPath(i.Sequencer, ""), nil, &s); err != nil {
		return err
	}
	switch d := s.Definition; {
	case d.Kind == cluster.Counter:
		return fmt.Errorf("the sequencer %q is a counter, whose numbers have no time that rows could have; want one "+
			"of snowflakes", i.Sequencer)
	case d.Claimed():
		return fmt.Errorf("the sequencer %q is in strict order, in which an earlier time can have no ID any more; "+
			"want one of snowflakes", i.Sequencer)
	}
	i.known = idtext.Of(i.Sequencer, s.Definition, nil)
	i.layout = i.known.Layout
	if i.progress, err = openProgress(i.Progress); err != nil {
		return err
	}
	if h := i.progress.head; h != (head{}) {
		if i.batch = h.Batch; i.Job == "" {
			i.Job = h.Job
		}
	}
	if i.Job == "" {
		i.Job = fresh.Text()
	}
	return nil
}

// Close lets go of the files.
func (i *Import) Close() {
	for _, s := range []*bigsort.Sorter{i.rows, i.answers} {
		if s != nil {
			_ = s.Close() // they were temporary
		}
	}
	if i.progress != nil {
		i.progress.close()
	}
}

// MistakesError is returned by Read when rows have no time that can be used. Nothing was asked for.
type MistakesError struct {
	Some []string // what is wrong with the first ones
	More int64    // how many others there are
}

func (e *MistakesError) Error() string {
	return console.Plural(int64(len(e.Some))+e.More, "row") + " without a time that an ID can have; no ID was made"
}

// mostMistakes is how many are told.
const mostMistakes = 20

func (e *MistakesError) add(format string, values ...any) {
	if len(e.Some) == mostMistakes {
		e.More++
		return
	}
	e.Some = append(e.Some, fmt.Sprintf(format, values...))
}

// Read reads the CSV, and checks all of it. A *MistakesError is returned when rows have no time that can be used.
func (i *Import) Read(in io.Reader) error {
	raw, ticks := sha256.New(), sha256.New()
	t, c, now := newTable(io.TeeReader(in, raw), i.Column), clock{i.Zone}, i.now()
	var err error
	if i.named, err = t.header(func(cell string) bool { _, err := c.parse(cell); return err == nil }); err != nil {
		return err
	}
	i.rows = bigsort.New("", i.memory)
	var wrong MistakesError
	buffer := make([]byte, 0, 8<<10)
	for {
		cell, line, err := t.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if _, ok := errors.AsType[*rowError](err); err != nil && !ok {
			return err
		}
		tick := int64(0)
		if err == nil {
			tick, err = i.tick(c, cell, now)
		}
		if err != nil {
			wrong.add("line %d: %v", line, err)
			continue
		}
		if err := i.rows.Add(bigsort.Pair{First: tick, Second: i.read.Load()}); err != nil {
			return err
		}
		i.read.Add(1)
		if buffer = binary.BigEndian.AppendUint64(buffer, uint64(tick)); len(buffer) == cap(buffer) {
			ticks.Write(buffer)
			buffer = buffer[:0]
		}
	}
	if len(wrong.Some) > 0 {
		return &wrong
	}
	ticks.Write(buffer)
	sum := sha256.Sum256(ticks.Sum(raw.Sum(nil)))
	i.digest = hex.EncodeToString(sum[:])
	return i.fits()
}

// tick returns that of a cell.
func (i *Import) tick(c clock, cell string, now time.Time) (int64, error) {
	at, err := c.read(cell)
	if err != nil {
		return 0, err
	}
	if at.After(now) {
		return 0, fmt.Errorf("%s is in the future; want a time up to %s", stamp(at), stamp(now))
	}
	return i.layout.TickAt(at)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// fits returns an error if more rows have the same tick than it has IDs.
func (i *Import) fits() error {
	if i.Next {
		return nil
	}
	var tick, n, ticks, worst, most int64 // worst is the tick with most rows
	for p, err := range i.rows.All() {
		if err != nil {
			return err
		}
		if p.First != tick {
			tick, n = p.First, 0
		}
		if n++; n == i.perTick()+1 {
			ticks++
		}
		if n > most {
			worst, most = tick, n
		}
	}
	if ticks == 0 {
		return nil
	}
	others := ""
	if ticks > 1 {
		others = fmt.Sprintf(" (so it is with %s)", console.Plural(ticks-1, "other time"))
	}
	return fmt.Errorf("%d rows are of %s, and a node ID has %d IDs for each %v%s; no ID was made: want --if-full "+
		"next, which gives some a later time, or a sequencer with more bits for the sequence",
		most, stamp(i.layout.TickStart(worst)), i.perTick(), i.layout.Tick, others)
}

// perTick is how many IDs a node ID has for a tick.
func (i *Import) perTick() int64 { return 1 << i.layout.SequenceBits }

// Write writes the IDs in the order of the rows, each on a line, below a header if the input has one.
func (i *Import) Write(to io.Writer) error {
	i.phase.Store(int32(Writing))
	out := bufio.NewWriterSize(to, 64<<10)
	if i.named {
		_, _ = out.WriteString("id\n") // Flush says what fails
	}
	row, line := int64(0), make([]byte, 0, 24)
	for p, err := range i.answers.All() {
		if err != nil {
			return err
		}
		if p.First != row {
			return fmt.Errorf("row %d has no ID, or two: this is a bug", row+1)
		}
		row++
		if _, err := out.Write(append(strconv.AppendInt(line, p.Second, 10), '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}

// Phase is what an Import does.
type Phase int

// Phases, in their order.
const (
	Reading Phase = iota
	Giving
	Writing
)

// Status is how far an Import is.
type Status struct {
	Phase   Phase
	Rows    int64 // read so far
	Given   int64 // how many of them have IDs
	Resumed int64 // those of them that an earlier run has brought
}

// Status returns how far the Import is. It is safe for concurrent use with the other methods.
func (i *Import) Status() Status {
	return Status{Phase(i.phase.Load()), i.read.Load(), i.given.Load(), i.resumed.Load()}
}

// Result is what came of an Import.
type Result struct {
	Job   string
	Rows  int64 // of the input, and so many IDs
	New   int64 // how many of them this run has brought, and no earlier one
	Moved int64 // how many IDs are of a later tick than their row
	Node  int64 // the node ID of the last one; -1: there is none
}

// Result returns what came of the Import, after Give.
func (i *Import) Result() Result {
	s := i.Status()
	return Result{i.Job, s.Rows, s.Given - s.Resumed, i.moved, i.node}
}
