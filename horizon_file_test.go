package firn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// crash ends a generator as the death of its process does: nothing more is written, and the file is closed.
func crash(g *Generator) {
	g.file.closing.Do(func() {
		close(g.file.quit)
		<-g.file.done
		g.file.disk.Close()
	})
}

// unsafeDisk keeps what is written until Sync, as a system does, or fails.
type unsafeDisk struct {
	disk
	mu     sync.Mutex
	err    error    // of the next writes; nil: they succeed
	late   [][]byte // what was written and not confirmed, and where
	lateAt []int64
	tear   *rand.Rand // at the end, some bytes of that are there and some are not; nil: none is
}

func (d *unsafeDisk) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *unsafeDisk) WriteAt(p []byte, at int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.late, d.lateAt = append(d.late, append([]byte(nil), p...)), append(d.lateAt, at)
	return len(p), nil
}

func (d *unsafeDisk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return d.err
	}
	for i, p := range d.late {
		if _, err := d.disk.WriteAt(p, d.lateAt[i]); err != nil {
			return err
		}
	}
	d.late, d.lateAt = nil, nil
	return d.disk.Sync()
}

func (d *unsafeDisk) Close() error {
	for i, p := range d.late {
		if d.tear != nil {
			from, to := d.tear.IntN(100), d.tear.IntN(300)
			d.disk.WriteAt(p[min(from, to):max(from, to)], d.lateAt[i]+int64(min(from, to)))
		}
	}
	return d.disk.Close()
}

// over puts an unsafeDisk over the disk.
func over(d *unsafeDisk) Option {
	return func(g *Generator) {
		g.file.wrap = func(real disk) disk { d.disk = real; return d }
	}
}

func madeAt(t *testing.T, id ID) time.Time {
	t.Helper()
	made, err := tiny.Time(id)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func horizonPath(t *testing.T) string { return filepath.Join(t.TempDir(), "orders.firn") }

// The clock is 100 ms behind at each start. Without a file, most IDs of that time come twice.
func TestNoIDComesAgainAfterARestart(t *testing.T) {
	for name, end := range map[string]func(*Generator){"stop": func(g *Generator) { g.Stop() }, "crash": crash} {
		t.Run(name, func(t *testing.T) {
			clock, path, given := newManual(at(5000)), horizonPath(t), map[ID]bool{}
			for range 5 {
				g := newGenerator(t, Default, WithClock(clock), WithHorizonFile(path))
				for range 2000 {
					for id, err := g.TryNext(); err == nil; id, err = g.TryNext() {
						if given[id] {
							t.Fatalf("%d came twice", id)
						}
						if given[id] = true; len(given)%50 == 0 {
							break
						}
					}
					clock.pass(10 * time.Millisecond)
				}
				end(g)
				clock.pass(-100 * time.Millisecond)
			}
			if len(given) < 50_000 {
				t.Errorf("only %d IDs in 100 s", len(given))
			}
		})
	}
}

// Whatever clock, disk and process do, no ID comes twice. The disk confirms or fails, and a crash tears what it has not
// confirmed.
func TestNoIDComesAgainUnderAnyFault(t *testing.T) {
	seed := rand.Uint64()
	chance := rand.New(rand.NewPCG(seed, 0))
	clock, path, given := newManual(at(100_000)), horizonPath(t), map[ID]int{}
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	for run := range 300 {
		d := &unsafeDisk{tear: chance}
		g, err := NewGenerator(tiny, 1, WithClock(clock), WithHorizonFile(path), over(d))
		if err != nil {
			t.Logf("run %d: %v", run, err)
			clock.pass(time.Minute)
			continue
		}
		for range chance.IntN(40) {
			d.fail([]error{nil, nil, errors.New("no space")}[chance.IntN(3)])
			for range chance.IntN(10) {
				id, err := g.TryNext()
				if before, twice := given[id]; err == nil && twice {
					t.Fatalf("run %d gave %d, as run %d did", run, id, before)
				}
				if err == nil {
					given[id] = run
				}
				if errors.Is(err, ErrBound) {
					runtime.Gosched() // the goroutine was asked to write
				}
			}
			steps := []time.Duration{
				-time.Second, -20 * time.Millisecond, time.Millisecond, time.Second,
				9 * time.Second, 30 * time.Second,
			}
			clock.pass(time.Duration(
				chance.Int64N(int64(steps[chance.IntN(len(steps))].Abs())+1)) * time.Duration(1-2*(chance.IntN(4)/3)))
		}
		if chance.IntN(3) > 0 {
			crash(g)
		} else {
			g.Stop()
		}
	}
	if len(given) < 1000 {
		t.Errorf("only %d IDs", len(given))
	}
}

// A write that the disk never confirmed, and of which a crash leaves any part, changes nothing.
func TestATornWriteLeavesTheRecordBefore(t *testing.T) {
	clock, path := newManual(at(5000)), horizonPath(t)
	for try := range uint64(20) {
		d := unsafeDisk{tear: rand.New(rand.NewPCG(try, 0))}
		g := newGenerator(t, tiny, WithClock(clock), WithHorizonFile(path), over(&d))
		confirmed := g.file.last.Horizon
		d.fail(errors.New("no space"))
		clock.set(confirmed)
		if _, err := g.Next(t.Context()); !errors.Is(err, ErrBound) {
			t.Fatalf("at the horizon: %v", err)
		}
		crash(g)
		g = newGenerator(t, tiny, WithClock(clock), WithHorizonFile(path))
		if !g.file.floor.Equal(confirmed) {
			t.Fatalf("try %d: the floor is %s, want %s", try, g.file.floor, confirmed)
		}
		g.Stop()
		clock.pass(time.Minute)
	}
}

// After a crash the next start waits for the horizon, at most a window; after Stop it waits for the end of the tick.
func TestWhenTheNextOneBegins(t *testing.T) {
	clock, path := newManual(at(5000)), horizonPath(t)
	options := []Option{WithClock(clock), WithHorizonFile(path), WithLookAhead(0)}
	g := newGenerator(t, tiny, options...)
	wants(t, g, 1, nil, [2]int64{5000, 0})
	g.Stop()
	g = newGenerator(t, tiny, options...)
	wants(t, g, 1, ErrNotYet)
	clock.set(at(5001))
	wants(t, g, 1, nil, [2]int64{5001, 0})
	crash(g)
	g = newGenerator(t, tiny, options...)
	wants(t, g, 1, ErrNotYet)
	clock.set(at(14_999))
	wants(t, g, 1, ErrNotYet)
	clock.set(at(15_000))
	if id, err := g.Next(t.Context()); err != nil || !madeAt(t, id).Equal(at(15_000)) {
		t.Errorf("at the horizon: %v, %v", id, err)
	}
	g.Stop()

	// One that gave no ID leaves the floor where it was, also where the clock has gone back.
	clock.set(at(14_000))
	newGenerator(t, tiny, options...).Stop()
	g = newGenerator(t, tiny, options...)
	wants(t, g, 1, ErrNotYet)
	clock.set(at(15_001))
	wants(t, g, 1, nil, [2]int64{15_001, 0})
	g.Stop()
}

// Crashes in a row do not add up: none moves the horizon further than a window ahead of the clock.
func TestCrashesDoNotAddUp(t *testing.T) {
	clock, path := newManual(at(5000)), horizonPath(t)
	for range 20 {
		crash(newGenerator(t, tiny, WithClock(clock), WithHorizonFile(path)))
		clock.pass(time.Second)
	}
	clock.pass(HorizonWindow)
	g := newGenerator(t, tiny, WithClock(clock), WithHorizonFile(path))
	defer g.Stop()
	if _, err := g.TryNext(); err != nil {
		t.Errorf("a window after the last of 20 crashes: %v", err)
	}
}

// A clock that jumps over the horizon costs one write, for which Next waits.
func TestAJumpOfTheClockIsFollowed(t *testing.T) {
	clock := newManual(at(5000))
	g := newGenerator(t, tiny, WithClock(clock), WithHorizonFile(horizonPath(t)))
	defer g.Stop()
	for range 10 {
		clock.pass(time.Hour)
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// In use, the file is written every half window, also while nobody asks for IDs, and callers never wait.
func TestTheHorizonMovesBeforeItIsReached(t *testing.T) {
	path := horizonPath(t)
	synctest.Test(t, func(t *testing.T) {
		layout := tiny
		layout.Epoch = time.Now()
		var d unsafeDisk
		g := newGenerator(t, layout, WithHorizonFile(path), over(&d))
		defer g.Stop()
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			if _, err := g.TryNext(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if writes := g.file.last.Count; writes < 12 || writes > 15 {
			t.Errorf("%d writes in a minute; want one in 5 s", writes)
		}
	})
}

// A full disk is noticed at the horizon. Callers learn the reason at once, also those that wait, and it passes by
// itself.
func TestTheDiskIsFull(t *testing.T) {
	path := horizonPath(t)
	synctest.Test(t, func(t *testing.T) {
		layout := tiny
		layout.Epoch = time.Now()
		full := errors.New("no space left on device")
		var d unsafeDisk
		g := newGenerator(t, layout, WithHorizonFile(path), over(&d))
		defer g.Stop()
		horizon := g.file.last.Horizon
		d.fail(full)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for time.Now().Before(horizon) {
			if _, err := g.Next(ctx); err != nil {
				t.Fatalf("%v before the horizon: %v", time.Until(horizon), err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		for _, take := range []func() error{
			func() error { _, err := g.Next(ctx); return err },
			func() error { _, err := g.TryNext(); return err },
			func() error { return g.Fill(ctx, make([]ID, 10)) },
		} {
			if err := take(); !errors.Is(err, ErrBound) || !errors.Is(err, full) ||
				!strings.Contains(err.Error(), path) {
				t.Errorf("at the horizon: %v; want ErrBound, %q and the path", err, full)
			}
		}
		d.fail(nil)
		time.Sleep(time.Second)
		if _, err := g.TryNext(); err != nil {
			t.Errorf("a second after there is space again: %v", err)
		}
	})
}

func TestWhoWaitsLearnsThatTheDiskIsFull(t *testing.T) {
	path := horizonPath(t)
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space left on device")
		var d unsafeDisk
		clock := newManual(at(5000))
		g := newGenerator(t, tiny, WithClock(clock), WithHorizonFile(path), over(&d))
		defer g.Stop()
		d.fail(full)
		clock.pass(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := g.Next(ctx); !errors.Is(err, ErrBound) || !errors.Is(err, full) {
			t.Errorf("it waited, and got %v", err)
		}
	})
}

// What a horizon file is refused for. Nothing is changed: what was right before is right after.
func TestHorizonFilesThatAreRefused(t *testing.T) {
	clock := newManual(at(5000))
	write := func(t *testing.T, path string, contents []byte) {
		t.Helper()
		if err := os.WriteFile(path, contents, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(t *testing.T, path string) []byte {
		t.Helper()
		contents, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return contents
	}
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, path string) (other string)
		layout  Layout
		node    int64
		options []Option
		want    string
	}{
		{"another layout", nil, Twitter, 1, nil, "it belongs to node ID 1 of the layout 41/10/2"},
		{"another epoch", nil, func() Layout {
			l := tiny
			l.Epoch = l.Epoch.Add(1)
			return l
		}(), 1, nil, "want another file for node ID 1"},
		{"another node ID", nil, tiny, 2, nil, "want another file for node ID 2"},
		{"empty", func(t *testing.T, path string) string {
			write(t, path, nil)
			return path
		}, tiny, 1, nil, "it is empty or damaged; make sure that nothing makes IDs of node ID 1"},
		{"damaged", func(t *testing.T, path string) string {
			contents := read(t, path)
			contents[20]++
			contents[slotSize+20]++
			write(t, path, contents)
			return path
		}, tiny, 1, nil, "it is empty or damaged"},
		{"another format", func(t *testing.T, path string) string {
			r, _, _ := latestRecord(read(t, path))
			r.Format = 2
			write(t, path, append(r.slot(), r.slot()...))
			return path
		}, tiny, 1, nil, "it has the format 2; want 1"},
		{"a copy", func(t *testing.T, path string) string {
			other := filepath.Join(t.TempDir(), "orders.firn")
			write(t, other, read(t, path))
			return other
		}, tiny, 1, nil, "it is a copy, or comes from a backup"},
		{"a folder", func(t *testing.T, _ string) string { return t.TempDir() }, tiny, 1, nil, ""},
		{"no such folder", func(_ *testing.T, path string) string { return path + "/none/file" }, tiny, 1, nil, ""},
		{"a clock that is far behind", func(*testing.T, string) string {
			clock.pass(-time.Hour)
			return ""
		}, tiny, 1, nil, "the clock shows 1h0m10s less; want a clock that is right"},
		{"with a bound", nil, tiny, 1, []Option{WithBound(at(9000))}, "want it without WithBound"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := horizonPath(t)
			clock.set(at(5_000_000))
			crash(newGenerator(t, tiny, WithClock(clock), WithHorizonFile(path)))
			before := read(t, path)
			refused := path
			if c.prepare != nil {
				if other := c.prepare(t, path); other != "" {
					refused = other
				}
			}
			prepared, _ := os.ReadFile(refused)
			_, err := NewGenerator(c.layout, c.node, append(c.options, WithClock(clock), WithHorizonFile(refused))...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if after, _ := os.ReadFile(refused); string(after) != string(prepared) {
				t.Error("the file was changed")
			}
			write(t, path, before)
			clock.set(at(5_010_000))
			newGenerator(t, tiny, WithClock(clock), WithHorizonFile(path)).Stop() // the file is not locked
		})
	}
}

func TestOneGeneratorForEachHorizonFile(t *testing.T) {
	path, other := horizonPath(t), horizonPath(t)
	g := newGenerator(t, tiny, WithHorizonFile(path))
	if err := os.Link(path, other+"2"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, other + "2"} {
		if _, err := NewGenerator(tiny, 1, WithHorizonFile(name)); !errors.Is(err, errFileInUse) {
			t.Errorf("a second generator: %v", err)
		}
	}
	newGenerator(t, Default, WithHorizonFile(other)).Stop()
	g.Stop()
	g.Stop()
	newGenerator(t, tiny, WithHorizonFile(path)).Stop()
}

// Who can write the file can have IDs come twice: one that others can write is refused.
func TestOthersWriteTheHorizonFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes tell nothing")
	}
	path := horizonPath(t)
	newGenerator(t, tiny, WithHorizonFile(path)).Stop()
	refused := func(want string) {
		t.Helper()
		if _, err := NewGenerator(tiny, 1, WithHorizonFile(path)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want an error with %q", err, want)
		}
	}
	if err := os.Chmod(path, 0o606); err != nil {
		t.Fatal(err)
	}
	refused("everybody can write it (mode 0606)")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	newGenerator(t, tiny, WithHorizonFile(path)).Stop()
	if os.Geteuid() != 0 {
		return // only root can give files away
	}
	if err := os.Chown(path, 4711, 4711); err != nil {
		t.Fatal(err)
	}
	refused("it belongs to user 4711")
}

// Of many that start at once over no file, one gets it.
func TestManyStartAtOnce(t *testing.T) {
	path := horizonPath(t)
	var started, refused []any
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			g, err := NewGenerator(tiny, 1, WithHorizonFile(path))
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, errFileInUse) {
				refused = append(refused, err)
			} else {
				started = append(started, fmt.Sprint(err))
				if err == nil {
					t.Cleanup(func() { g.Stop() })
				}
			}
		})
	}
	all.Wait()
	if len(started) != 1 || len(refused) != 19 {
		t.Errorf("started: %v, refused: %v", started, refused)
	}
	if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
		t.Errorf("there are %v", files)
	}
}

// Who takes the file away while it is in use could start a second generator, so the first one ends at its horizon.
func TestAHorizonFileThatIsTakenAway(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is open can't be removed")
	}
	for name, take := range map[string]func(path string) error{
		"removed": os.Remove,
		"renamed": func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			clock, path := newManual(at(5000)), horizonPath(t)
			g := newGenerator(t, tiny, WithClock(clock), WithHorizonFile(path))
			defer g.Stop()
			if err := take(path); err != nil {
				t.Fatal(err)
			}
			if _, err := g.Next(t.Context()); err != nil {
				t.Errorf("before the horizon: %v", err)
			}
			clock.pass(time.Hour)
			if _, err := g.Next(t.Context()); !errors.Is(err, ErrBound) || err == ErrBound {
				t.Errorf("at the horizon: %v", err)
			}
		})
	}
}

func TestAHorizonFileIsItsOwners(t *testing.T) {
	path := horizonPath(t)
	newGenerator(t, tiny, WithHorizonFile(path)).Stop()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode != 0o600 {
		t.Errorf("its mode is %o", mode)
	}
	if info.Size() != 2*slotSize {
		t.Errorf("it has %d bytes", info.Size())
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := NewGenerator(tiny, 1, WithHorizonFile(path)); os.Getuid() > 0 && !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a file that can't be written: %v", err)
	}
}

// SetBound would give IDs that the file knows nothing of.
func TestAHorizonFileMovesTheBoundAlone(t *testing.T) {
	clock := newManual(at(5000))
	var d unsafeDisk
	g := newGenerator(t, tiny, WithClock(clock), WithHorizonFile(horizonPath(t)), over(&d))
	defer g.Stop()
	full := errors.New("full")
	d.fail(full)
	g.SetBound(at(90_000_000))
	clock.pass(time.Hour)
	if _, err := g.Next(t.Context()); !errors.Is(err, full) {
		t.Errorf("behind the horizon: %v", err)
	}
}

// A slot that is damaged anywhere leaves the record before.
func TestADamagedSlotIsNotRead(t *testing.T) {
	older := horizonRecord{Format: 1, Layout: "x", Count: 7, Horizon: at(1)}
	newer := horizonRecord{Format: 1, Layout: "x", Count: 8, Horizon: at(2)}
	for _, both := range [][]byte{append(older.slot(), newer.slot()...), append(newer.slot(), older.slot()...)} {
		if r, _, ok := latestRecord(both); !ok || r.Count != 8 || !r.Horizon.Equal(at(2)) {
			t.Fatalf("got %+v, %v", r, ok)
		}
		_, slot, _ := latestRecord(both)
		for i := range 100 {
			damaged := append([]byte(nil), both...)
			damaged[int(slot)*slotSize+i] ^= 1
			if r, _, ok := latestRecord(damaged); !ok || r.Count != 7 {
				t.Fatalf("byte %d of the newer: got %+v, %v", i, r, ok)
			}
			damaged[(1-int(slot))*slotSize+i] ^= 1
			if r, _, ok := latestRecord(damaged); ok {
				t.Fatalf("byte %d of both: got %+v", i, r)
			}
		}
		for _, size := range []int{0, 1, 100, slotSize - 1} {
			if r, _, ok := latestRecord(both[:size]); ok {
				t.Fatalf("%d bytes: got %+v", size, r)
			}
		}
	}
}

// Where the file system has no hard links, the error says so.
func TestAFileSystemWithoutLinks(t *testing.T) {
	err := cantLink(&os.LinkError{Op: "link", Old: "a", New: "b", Err: fs.ErrPermission})
	if !errors.Is(err, fs.ErrPermission) ||
		!strings.Contains(err.Error(), "want a folder on a file system with hard links") {
		t.Error(err)
	}
}
