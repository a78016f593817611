package firn

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// HorizonWindow is how far ahead of the clock the horizon lies that a generator keeps in a file: 10 s.
const HorizonWindow = 10 * time.Second

// longestStart is how long a start waits at most for the clock to reach the horizon in the file.
const longestStart = time.Minute

// WithHorizonFile has the generator keep a horizon in the file at path, which makes the IDs of a
// node ID unique across restarts, whatever the clock shows. Before the generator uses an instant,
// the file says that it may; the next generator begins where the file says that this one ended.
// Each node ID of each layout needs a file of its own, on a disk that keeps what it has confirmed.
//
// The first start creates the file, which only its owner can read. A goroutine writes it about
// every 5 s, before the IDs come to the horizon; Next waits for it only after the clock has jumped
// ahead. The generator must be stopped: Stop writes the end of use, so that the next start need not
// wait, and closes the file. After a crash the next start gives no ID (ErrNotYet) for up to
// HorizonWindow.
//
// NewGenerator returns an error, and changes nothing, when
//
//   - the file can't be read, written or created;
//   - another generator has it open, in this process or in another one;
//   - on Unix, it belongs to another user than the process's or root, or everybody can write it;
//   - it is that of another layout or node ID;
//   - it is empty or damaged, or has another inode than the file that a generator wrote: it is a
//     copy, such as one from a backup (on another file system a copy may have the same by chance,
//     and passes);
//   - the horizon lies more than a minute ahead, since the clock is behind, or was ahead.
//
// While the file can't be written, for instance because the disk is full, the generator gives IDs
// up to the horizon, and then an error that wraps ErrBound and the reason, at once. It tries again
// every half second, and goes on when that succeeds. It writes no file that was removed, replaced
// or renamed: it ends at the horizon until the file is back.
//
// The generator moves its bound itself: SetBound does nothing, and WithBound is refused.
func WithHorizonFile(path string) Option {
	return func(g *Generator) { g.file = &horizonFile{path: path} }
}

// horizonFile is the file of a generator, and what its goroutine knows about it.
type horizonFile struct {
	path   string
	window time.Duration
	disk   disk
	floor  time.Time     // the horizon of its user before
	info   os.FileInfo   // of the file that is open
	last   horizonRecord // the latest that the disk has confirmed
	slot   int64         // where the next one goes: not where the last one is

	wrap       func(disk) disk       // set by tests, for faults
	asked      chan struct{}         // a caller is at the bound
	failure    atomic.Pointer[error] // why the bound does not move; nil: it does
	quit, done chan struct{}
	closing    sync.Once
}

// disk is what is needed of an *os.File.
type disk interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
	Close() error
}

// openFile makes the horizon of the file's last user the floor, and writes that of this one.
func (g *Generator) openFile(now time.Time) error {
	f := g.file
	if g.limit.Load() != g.ticks*g.perTick {
		return errors.New("WithHorizonFile moves the bound itself; want it without WithBound")
	}
	f.window = HorizonWindow
	err := f.open(horizonRecord{Format: horizonFormat, Layout: g.layout.String(), NodeID: g.node})
	if err != nil {
		return fmt.Errorf("horizon file %q: %w", f.path, err)
	}
	f.floor = f.last.Horizon
	if ahead := f.floor.Sub(now); ahead > longestStart {
		err = fmt.Errorf("IDs of node ID %d may be used until %s, and the clock shows %v less; want a clock that is "+
			"right, "+
			"or another node ID with a file of its own", g.node, stamp(f.floor), ahead.Round(time.Second))
	} else {
		err = f.extend(now)
	}
	if err != nil {
		_ = f.disk.Close()
		return fmt.Errorf("horizon file %q: %w", f.path, err)
	}
	g.next.Store(max(g.next.Load(), g.place(f.floor.Add(g.layout.Tick-1))))
	g.limit.Store(g.place(f.last.Horizon))
	f.asked, f.quit, f.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	return nil
}

// open opens the file, and creates it if there is none.
func (f *horizonFile) open(mine horizonRecord) (err error) {
	if f.path, err = filepath.Abs(f.path); err != nil {
		return err
	}
	if _, err := os.Stat(f.path); errors.Is(err, fs.ErrNotExist) {
		if err := createHorizonFile(f.path, mine); err != nil {
			return fmt.Errorf("can't create it: %w", err)
		}
	}
	file, err := openAlone(f.path)
	if err != nil {
		return err
	}
	if f.disk = file; f.wrap != nil {
		f.disk = f.wrap(file)
	}
	if f.info, err = file.Stat(); err == nil {
		mine.File, err = fileNumber(file)
	}
	if err == nil {
		err = f.samePlace()
	}
	if err == nil {
		err = f.read(mine)
	}
	if err != nil {
		file.Close()
	}
	return err
}

// createHorizonFile creates a file that is whole from the first moment on, unless there is one.
func createHorizonFile(path string, first horizonRecord) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	defer f.Close()
	if first.File, err = fileNumber(f); err != nil {
		return err
	}
	if _, err := f.Write(append(first.slot(), make([]byte, slotSize)...)); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	f.Close()
	if err := os.Link(f.Name(), path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil // another process was faster
		}
		return cantLink(err)
	}
	return syncFolder(filepath.Dir(path))
}

// cantLink says what is wrong where a file can't be given its name. A file system without links has no lasting numbers
// of files either, by which a copy is told.
func cantLink(err error) error {
	return fmt.Errorf("%w; want a folder on a file system with hard links, which FAT and exFAT do not have", err)
}

// read reads the latest record, which must be one of this file and of its user.
func (f *horizonFile) read(mine horizonRecord) error {
	contents := make([]byte, 2*slotSize)
	n, err := f.disk.ReadAt(contents, 0)
	if err != nil && err != io.EOF {
		return err
	}
	last, slot, ok := latestRecord(contents[:n])
	if err := last.check(ok, mine); err != nil {
		return err
	}
	f.last, f.slot = last, 1-slot
	return nil
}

// extend moves the horizon to a window ahead, if half of that is used up.
func (f *horizonFile) extend(now time.Time) error {
	if f.last.Horizon.Sub(now) > f.window/2 {
		return nil
	}
	return f.write(now.Add(f.window))
}

// write has the disk confirm a horizon. After an error it may be there or not.
func (f *horizonFile) write(horizon time.Time) error {
	next := f.last
	next.Count++
	next.Horizon = horizon.UTC()
	if err := f.samePlace(); err != nil {
		return err
	}
	if _, err := f.disk.WriteAt(next.slot(), f.slot*slotSize); err != nil {
		return err
	}
	if err := f.disk.Sync(); err != nil {
		return err
	}
	f.last, f.slot = next, 1-f.slot
	return nil
}

// samePlace returns an error when a generator that starts now would not open the same file.
func (f *horizonFile) samePlace() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	if !os.SameFile(info, f.info) {
		return errors.New("another file has taken its place; want the one that was there")
	}
	return nil
}

// keepHorizon extends the horizon and moves the bound, until Stop.
func (g *Generator) keepHorizon() {
	f := g.file
	defer close(f.done)
	for {
		now := time.Unix(0, g.now())
		pause, asked := min(max(f.last.Horizon.Sub(now)-f.window/2, f.window/20), f.window/2), f.asked
		if f.failure.Load() != nil {
			pause, asked = f.window/20, nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-f.quit:
			timer.Stop()
			return
		case <-asked:
		case <-timer.C:
		}
		timer.Stop()
		if err := f.extend(time.Unix(0, g.now())); err != nil {
			err = fmt.Errorf("%w: it can't move its horizon in the file %q: %w", ErrBound, f.path, err)
			f.failure.Store(&err)
			g.open() // those that wait return it
			continue
		}
		f.failure.Store(nil)
		g.setBound(f.last.Horizon)
	}
}

// atBound returns the error of a caller at the bound, and has the goroutine look.
func (f *horizonFile) atBound() error {
	select {
	case f.asked <- struct{}{}:
	default:
	}
	if failure := f.failure.Load(); failure != nil {
		return *failure
	}
	return ErrBound
}

// close writes the end of use, and closes the file. If that can't be written, the horizon remains: the next start
// waits.
func (f *horizonFile) close(used time.Time) {
	f.closing.Do(func() {
		close(f.quit)
		<-f.done
		_ = f.write(later(f.floor, used))
		_ = f.disk.Close()
	})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
