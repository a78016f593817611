package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
)

// Other is another generator whose IDs a run compares with those of its servers. The command prints them on its
// standard output, one decimal per line, until it ends or the run ends it.
type Other struct {
	Command string       // for sh -c
	Layout  *firn.Layout // of the sequencer; nil: its IDs have no node ID
	Stderr  io.Writer    // gets what the command prints on standard error
}

// Against compares the IDs of another generator with those that the servers gave.
type Against struct {
	IDs      int64     // that the command printed
	Stopped  bool      // the run ended the command; false: it ended before, and printed all its IDs
	Checked  int64     // IDs of the command that were compared
	Again    int64     // those of them that it had printed before
	Same     int64     // that came from both
	Some     []firn.ID // a few of these, the smallest first
	From, To firn.ID   // the smallest and the greatest ID that the command printed
	Ours     []int64   // node IDs of the servers, ascending, without those beyond the first 65,536 of a connection
	Theirs   []int64   // node IDs of the command, ascending, without those beyond the first 65,536
	Both     []int64   // node IDs in both lists, ascending
}

const (
	// printWithin is how long a command may take until its first ID.
	printWithin = time.Minute

	// closeWithin is how long a program that an ended command has left behind may hold its output open.
	closeWithin = time.Second

	// longestLine is the most characters of a line that is an ID.
	longestLine = 100

	// mostNodes is how many node IDs a record keeps at most.
	mostNodes = 1 << 16
)

// nodes are the node IDs of a layout in the IDs of a record, at most mostNodes. Nil: none are wanted.
type nodes struct {
	layout firn.Layout
	last   int64
	seen   map[int64]struct{}
}

func newNodes(layout *firn.Layout) *nodes {
	if layout == nil {
		return nil
	}
	return &nodes{layout: *layout, last: -1, seen: map[int64]struct{}{}}
}

// add takes note of an ID's node ID. An error is returned when the ID is not of the layout.
func (n *nodes) add(id firn.ID) error {
	if n == nil {
		return nil
	}
	node, err := n.layout.NodeID(id)
	if err == nil && node != n.last && len(n.seen) < mostNodes {
		n.last = node
		n.seen[node] = struct{}{}
	}
	return err
}

// nodesOf returns the node IDs of records, in ascending order.
func nodesOf(records ...*record) []int64 {
	all := map[int64]struct{}{}
	for _, r := range records {
		if r.nodes != nil {
			maps.Copy(all, r.nodes.seen)
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// command is the running command of an Other. It is the writer of its output.
type command struct {
	stop    context.CancelFunc // ends the process
	fail    func(error)        // is called once with what is wrong
	printed chan struct{}      // closed with the first ID, or the end if there is none
	ended   chan struct{}      // closed with the end; what follows is the writer's until then

	scattered bool
	seen      *record
	lines     int64
	rest      []byte // of a line that goes on
	ids       int64
	from, to  firn.ID
	stopped   bool // before its end
	err       error
}

// start starts the command. It calls fail if the command does what it should not, and ends with ctx.
func (o Other) start(ctx context.Context, seen *record, scattered bool, fail func(error)) (*command, error) {
	ctx, stop := context.WithCancel(ctx)
	c := &command{
		stop: stop, fail: fail, printed: make(chan struct{}), ended: make(chan struct{}),
		scattered: scattered, seen: seen,
	}
	seen.nodes = newNodes(o.Layout)
	process := exec.CommandContext(ctx, "sh", "-c", o.Command)
	process.Stdout, process.Stderr, process.WaitDelay = c, o.Stderr, closeWithin
	inGroup(process)
	if err := process.Start(); err != nil {
		stop()
		return nil, fmt.Errorf("the command can't be started: %w", err)
	}
	go func() {
		c.end(process.Wait(), ctx.Err() != nil)
		stop()
	}()
	return c, nil
}

// end takes note of how the process ended: if it failed after canceled, that was why.
func (c *command) end(err error, canceled bool) {
	failed := errors.As(err, new(*exec.ExitError)) // else it ended with 0, even if others hold its output open
	c.stopped = canceled && failed
	switch {
	case c.err != nil || c.stopped: // its last line may be cut off
	case failed:
		c.err = fmt.Errorf("the command ended with %w; want 0", err)
	default:
		c.err = c.last()
	}
	if c.err != nil {
		c.fail(c.err)
	}
	if c.ids == 0 {
		close(c.printed)
	}
	close(c.ended)
}

// last reads a last line without an end. An error is returned when it is not an ID, or there is no ID in all lines.
func (c *command) last() error {
	err := c.line(c.rest)
	if err == nil && c.ids == 0 {
		return errors.New("the command printed no ID; want decimals, one per line")
	}
	return err
}

// Write reads the IDs of whole lines. It returns an error, and ends the process, when a line is not an ID.
func (c *command) Write(b []byte) (int, error) {
	for n := len(b); ; {
		line, after, ok := bytes.Cut(b, []byte{'\n'})
		if !ok {
			c.rest = append(c.rest, b...)
			b = nil
		} else {
			c.rest, b = append(c.rest, line...), after
		}
		if len(c.rest) > longestLine || ok {
			if c.err = c.line(c.rest); c.err != nil {
				c.stop()
				return 0, c.err
			}
			c.rest = c.rest[:0]
		}
		if !ok {
			return n, nil
		}
	}
}

// line reads an ID, unless the line is blank.
func (c *command) line(text []byte) error {
	c.lines++
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return nil
	}
	id, err := firn.Parse(string(text))
	if err != nil {
		return fmt.Errorf("line %d of the command's output: %w", c.lines, err)
	}
	made := id
	if c.scattered {
		made = firn.Gather(id)
	}
	if err := c.seen.nodes.add(made); err != nil {
		return fmt.Errorf("line %d of the command's output: %w", c.lines, err)
	}
	c.seen.keep(int64(made))
	if c.ids == 0 || made < c.from {
		c.from = made
	}
	c.to = max(c.to, made)
	if c.ids++; c.ids == 1 {
		close(c.printed)
	}
	return nil
}

// doAgainst executes the plan while the other generator's command runs.
func (r *Run) doAgainst(ctx context.Context) error {
	running, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var memory atomic.Int64 // else a fast command could take all
	half := r.memory.Load() / 2
	r.memory.Add(-half)
	memory.Store(half)
	c, err := r.plan.Against.start(running, newRecord(&memory), r.plan.Scattered, fail)
	switch {
	case ctx.Err() != nil && err != nil: // it was too late to start
		return nil
	case err != nil:
		return err
	}
	r.other = c
	for _, ours := range r.records {
		ours.nodes = newNodes(r.plan.Against.Layout)
	}
	late := time.NewTimer(printWithin)
	defer late.Stop()
	select {
	case <-c.printed:
	case <-running.Done():
	case <-late.C:
		fail(fmt.Errorf("the command printed no ID in %v", printWithin))
	}
	if running.Err() == nil {
		err = r.load(running)
	}
	c.stop()
	<-c.ended
	why := context.Cause(running)
	if ctx.Err() == nil && why != nil {
		return why
	}
	return err
}

// against compares the IDs of the other generator with those of the servers.
func (r *Run) against() *Against {
	if r.other == nil {
		return nil
	}
	c := r.other
	theirs := []*record{c.seen}
	a := &Against{
		IDs: c.ids, Stopped: c.stopped, Checked: c.seen.kept, From: c.from, To: c.to,
		Ours: nodesOf(r.records...), Theirs: nodesOf(theirs...),
	}
	a.Again, _ = repeated(theirs)
	a.Same, a.Some = common(r.records, theirs)
	if r.plan.Scattered {
		for i := range a.Some {
			a.Some[i] = firn.Scatter(a.Some[i])
		}
	}
	for _, node := range a.Theirs {
		if _, ok := slices.BinarySearch(a.Ours, node); ok {
			a.Both = append(a.Both, node)
		}
	}
	return a
}
