package counter

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
)

var errStopped = errors.New("stopped")

func wanted(b *Blocks) bool {
	select {
	case <-b.Wanted():
		return true
	default:
		return false
	}
}

func TestBlocksAskForTheNextAtAQuarter(t *testing.T) {
	for _, c := range []struct{ size, asks int64 }{{1, 1}, {2, 1}, {4, 1}, {5, 2}, {8, 2}, {100, 25}} {
		for _, by := range []string{"Next", "Fill", "Take"} {
			b := newBlocks(nil, nil)
			b.Add(Block{11, 10 + c.size})
			b.Add(Block{1001, 1001})
			for n := int64(1); n <= c.size; n++ {
				ids := make([]firn.ID, 1)
				var err error
				switch by {
				case "Next":
					ids[0], err = b.Next(t.Context())
				case "Fill":
					err = b.Fill(t.Context(), ids)
				case "Take":
					ids[0], err = b.Take(t.Context(), 1)
				}
				if err != nil || ids[0] != firn.ID(10+n) || wanted(b) != (n == c.asks) {
					t.Errorf("%s: the %dth of %d is %v %v; want the next block to be asked for at the %dth", by, n,
						c.size, ids, err, c.asks)
				}
			}
			if d := b.Demand(9, nil); d != (Demand{Next: 1}) || b.Given() != c.size {
				t.Errorf("%+v after %d", d, c.size)
			}
		}
	}
}

func TestFillGivesConsecutiveNumbersIfTheyFit(t *testing.T) {
	b := newBlocks(nil, nil)
	b.Add(Block{1, 10})
	b.Add(Block{21, 30})
	b.Add(Block{31, 40})
	for _, want := range [][]firn.ID{
		{1, 2, 3, 4},
		{5, 6, 7, 8},
		{},
		{9, 10, 21, 22},
		{23, 24, 25, 26, 27, 28, 29, 30, 31, 32},
		{33, 34, 35, 36, 37, 38, 39, 40},
	} {
		have := make([]firn.ID, len(want))
		if err := b.Fill(t.Context(), have); err != nil || !slices.Equal(have, want) {
			t.Errorf("%v %v, want %v", have, err, want)
		}
	}
}

func TestTakeGivesConsecutiveNumbers(t *testing.T) {
	b := newBlocks(nil, nil)
	for _, block := range []Block{{1, 10}, {21, 30}, {31, 40}, {51, 52}, {61, 80}} {
		b.Add(block)
	}
	given := int64(0)
	for _, c := range []struct {
		n    int64
		last firn.ID
		asks bool
	}{
		{2, 2, false},
		{4, 6, true},
		{4, 10, false},
		{2, 22, false}, // of the next block, which is not asked for the one after it yet
		{9, 31, true},  // of two that adjoin
		{9, 40, false}, // all that is left
		{3, 63, false}, // the next block has fewer
		{15, 78, true}, // 2 are left
		{1, 79, false},
	} {
		last, err := b.Take(t.Context(), c.n)
		if given += c.n; err != nil || last != c.last || wanted(b) != c.asks || b.Given() != given {
			t.Errorf("%d are up to %d, %v, with %+v; want %+v", c.n, last, err, b.Demand(9, nil), c)
		}
	}
	if have := b.Stop(errStopped); have != [2]Block{1: {80, 80}} {
		t.Errorf("unused are %v", have)
	}
	if last, err := b.Take(t.Context(), 1); last != 0 || !errors.Is(err, errStopped) {
		t.Errorf("%d %v after the stop", last, err)
	}
}

// A call for consecutive numbers waits for a block that is large enough, and leaves the others what there is meanwhile.
func TestTakeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBlocks(nil, nil)
		b.Add(Block{1, 4})
		take := func(n int64) <-chan firn.ID {
			last := make(chan firn.ID, 1)
			go func() {
				id, err := b.Take(t.Context(), n)
				if err != nil {
					t.Error(err)
				}
				last <- id
			}()
			synctest.Wait()
			return last
		}
		wants := func(want Demand) {
			t.Helper()
			if d := b.Demand(9, nil); !wanted(b) || d != want {
				t.Errorf("%+v is wanted; want %+v", d, want)
			}
		}
		waits := take(5)
		wants(Demand{Short: 5 + 4, Next: 4})
		if id, err := b.Next(t.Context()); id != 1 || err != nil {
			t.Errorf("%d %v, want what there is", id, err)
		}
		if last := <-take(2); last != 3 {
			t.Errorf("%d, want what there is", last)
		}
		b.Add(Block{11, 13})
		synctest.Wait()
		wants(Demand{Short: 5 + 3, Next: 3})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if last, err := b.Take(ctx, 6); last != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d %v", last, err)
		}
		b.Add(Block{14, 15})
		if last := <-waits; last != 15 {
			t.Errorf("%d, want 15", last)
		}
		if d := b.Demand(9, nil); d != (Demand{}) || b.Given() != 8 {
			t.Errorf("%+v", d)
		}

		b.Add(Block{16, 17})
		down := errors.New("the store is down")
		b.Fail(down)
		if last, err := b.Take(t.Context(), 3); last != 0 || !errors.Is(err, down) {
			t.Errorf("%d %v, want %v at once", last, err, down)
		}
		if last := <-take(2); last != 17 {
			t.Errorf("%d, want what there is", last)
		}
	})
}

func TestBlocksAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBlocks(nil, nil)
		first := make(chan firn.ID, 1)
		go func() {
			id, _ := b.Next(t.Context())
			first <- id
		}()
		synctest.Wait()
		if !wanted(b) || b.Demand(9, nil) != (Demand{Short: 1}) {
			t.Errorf("%+v while a caller waits", b.Demand(9, nil))
		}
		b.Add(Block{1, 3})
		if id := <-first; id != 1 {
			t.Errorf("%d, want 1", id)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ids := []firn.ID{7, 7, 7}
		err := b.Fill(ctx, ids)
		if !errors.Is(err, context.DeadlineExceeded) || !slices.Equal(ids, []firn.ID{0, 0, 0}) {
			t.Errorf("3 of 2: %v %v", ids, err)
		}
		if d := b.Demand(9, nil); d != (Demand{Short: 3}) {
			t.Errorf("%+v, want that it took none", d)
		}
		down := errors.New("the store is down")
		b.Fail(down)
		if err := b.Fill(t.Context(), ids); !errors.Is(err, down) {
			t.Errorf("%v, want %v at once", err, down)
		}
		if id, err := b.Next(t.Context()); id != 2 || err != nil {
			t.Errorf("%d %v, want what there is", id, err)
		}
		b.Add(Block{4, 5})
		if err := b.Fill(t.Context(), ids); err != nil || !slices.Equal(ids, []firn.ID{3, 4, 5}) {
			t.Errorf("%v %v", ids, err)
		}
		go func() {
			time.Sleep(time.Second)
			b.Stop(errStopped)
		}()
		if _, err := b.Next(t.Context()); !errors.Is(err, errStopped) {
			t.Errorf("%v, want %v", err, errStopped)
		}
	})
}

// From the moment when a caller may get the error that there are no more numbers, Ready returns it too.
func TestBlocksAreNotReadyAtTheirEnd(t *testing.T) {
	b, end := newBlocks(nil, nil), errors.New("no more")
	b.Add(Block{1, 1})
	ready := func(left int64, want error) {
		t.Helper()
		b.Demand(left, end)
		if err := b.Ready(); !errors.Is(err, want) {
			t.Errorf("ready: %v, want %v", err, want)
		}
	}
	ready(0, nil)
	if id, err := b.Next(t.Context()); id != 1 || err != nil {
		t.Fatal(id, err)
	}
	ready(1, nil)
	ready(0, end)
	b.Add(Block{3, 3})
	ready(0, nil)
}

func TestStopReturnsWhatNobodyGot(t *testing.T) {
	for _, c := range []struct {
		blocks []Block
		given  int
		want   [2]Block
	}{
		{nil, 0, [2]Block{}},
		{[]Block{{1, 4}}, 4, [2]Block{}},
		{[]Block{{1, 4}}, 3, [2]Block{1: {4, 4}}},
		{[]Block{{1, 4}, {5, 8}}, 3, [2]Block{{4, 4}, {5, 8}}},
		{[]Block{{1, 4}, {9, 12}}, 3, [2]Block{{4, 4}, {9, 12}}},
		{[]Block{{1, 4}, {5, 8}}, 5, [2]Block{1: {6, 8}}},
		{[]Block{{1, 4}, {5, 8}, {9, 12}}, 1, [2]Block{{2, 8}, {9, 12}}},
		{[]Block{{1, 4}, {6, 8}, {9, 12}}, 1, [2]Block{{6, 8}, {9, 12}}},
	} {
		b := newBlocks(nil, nil)
		for _, block := range c.blocks {
			b.Add(block)
		}
		for range c.given {
			if _, err := b.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if have := b.Stop(errStopped); have != c.want {
			t.Errorf("%v after %d: %v, want %v", c.blocks, c.given, have, c.want)
		}
		b.Add(Block{101, 200}) // a claim that was under way
		if id, err := b.Next(t.Context()); !errors.Is(err, errStopped) {
			t.Errorf("%d %v after the stop", id, err)
		}
		if err := b.Fill(t.Context(), make([]firn.ID, 2)); !errors.Is(err, errStopped) {
			t.Errorf("%v after the stop", err)
		}
		b.Start()
		b.Add(Block{201, 300})
		if id, err := b.Next(t.Context()); id != 201 || err != nil || b.Given() != int64(c.given+1) {
			t.Errorf("%d %v %+v after it starts again", id, err, b.Demand(9, nil))
		}
	}
}

// TestBlocksGiveEachNumberOnce has many callers take numbers while blocks come, and a stop at any moment: what was
// given and what was not are all numbers, each once, and they ascend for each caller.
func TestBlocksGiveEachNumberOnce(t *testing.T) {
	const callers, size, blocks = 8, 64, 200
	for round := range 20 {
		b := newBlocks(nil, nil)
		var given [callers][]firn.ID
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				for {
					ids := make([]firn.ID, 1+(i+len(given[i]))%3)
					if len(ids) == 1 {
						id, err := b.Next(t.Context())
						if err != nil {
							return
						}
						ids[0] = id
					} else if i%2 == 0 {
						last, err := b.Take(t.Context(), int64(len(ids)))
						if err != nil {
							return
						}
						for k := range ids {
							ids[k] = last - firn.ID(len(ids)-1-k)
						}
					} else if b.Fill(t.Context(), ids) != nil {
						return
					}
					given[i] = append(given[i], ids...)
				}
			})
		}
		last := int64(0)
		for range blocks * (round + 1) / 20 {
			<-b.Wanted()
			b.Add(Block{last + 1, last + size})
			last += size
		}
		const much = 1 << 16
		b.Add(Block{last + 1, last + much})
		for last += much; b.Given() < last-much+100; { // the stop comes while all take numbers
			runtime.Gosched()
		}
		unused := b.Stop(errStopped)
		all.Wait()
		times := make([]int, last+1)
		for i, ids := range given {
			if !slices.IsSorted(ids) {
				t.Errorf("those of caller %d do not ascend", i)
			}
			for _, id := range ids {
				times[id]++
			}
		}
		for _, block := range unused {
			for n := block.From; block.Size() > 0 && n <= block.To; n++ {
				times[n]++
			}
		}
		missing := 0
		for n, count := range times[1:] {
			if count > 1 {
				t.Fatalf("round %d: %d is there %d times; unused are %v", round, n+1, count, unused)
			}
			missing += 1 - count
		}
		if missing > 2*callers { // what a Fill had taken before the stop
			t.Errorf("round %d: %d of %d are neither given nor unused", round, missing, last)
		}
	}
}
