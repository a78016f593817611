package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/firn-id/firn/store"
)

// "It yields the first batch as soon as it has read the log, even an empty one";
// it "goes on with what is appended later".
func followGoesOn(s *suite) {
	empty := s.follow(s.Store, 0)
	empty.begun()
	a := s.append(s.Store, "a", "1")
	other := s.open()
	all, later := s.follow(other, 0), s.follow(other, a)
	all.reaches(a)
	later.begun()
	last := s.append(s.Store, "b", "2")
	for _, t := range []*tape{empty, all, later} {
		t.reaches(last)
	}
	empty.want("a=1", "b=2")
	all.want("a=1", "b=2")
	later.want("b=2")
}

// "In order, with no gap and no repeat": several append, several follow, through
// one client and through different ones, from the beginning and from later on.
func followOrder(s *suite) {
	const appenders, each = 4, 50
	tapes := []*tape{s.follow(s.Store, 0), s.follow(s.Store, 0), s.follow(s.open(), 0)}
	var all sync.WaitGroup
	half := make(chan store.Position, appenders)
	for i := range appenders {
		client := s.open()
		all.Go(func() {
			for n := range each {
				position, err := client.Append(s.ctx, fmt.Sprintf("e-%d-%d", i, n), []byte(strconv.Itoa(n)))
				if err != nil {
					s.Errorf("Append: %v", err)
				}
				if n == each/2 {
					half <- position
				}
				s.put(fmt.Sprintf("other/%d", i), strconv.Itoa(n)) // what is no entry is a gap in the positions
			}
		})
	}
	late := s.follow(s.Store, <-half)
	lateElsewhere := s.follow(s.open(), 0)
	all.Wait()
	want := s.read(0).Entries
	if len(want) != appenders*each {
		s.Fatalf("the log has %d entries, want %d", len(want), appenders*each)
	}
	last := want[len(want)-1].Position
	for i, t := range append(tapes, late, lateElsewhere) {
		t.reaches(last)
		expect := lines(want)
		if t == late {
			expect = expect[len(expect)-len(t.entries):]
		}
		if got := lines(t.entries); !slices.Equal(got, expect) {
			s.Errorf("follower %d has yielded %q, want %q", i, got, expect)
		}
	}
}

// "It survives broken connections", and misses nothing.
func followCutOff(s *suite, victim store.Store) {
	before := s.follow(victim, 0)
	before.reaches(s.append(s.Store, "a", "1"))
	s.CutOff(victim, true)
	during := s.follow(victim, 0)
	s.append(s.Store, "b", "2")
	healthy := s.follow(s.Store, 0)
	healthy.reaches(s.append(s.Store, "c", "3"))
	before.want("a=1")
	during.want()
	s.CutOff(victim, false)
	last := s.append(s.Store, "d", "4")
	for _, t := range []*tape{before, during, healthy} {
		t.reaches(last)
		t.want("a=1", "b=2", "c=3", "d=4")
	}
}

func followRestart(s *suite) {
	s.needs(s.Stop != nil, "restart the service")
	t := s.follow(s.Store, 0)
	a := s.append(s.Store, "a", "1")
	t.reaches(a)
	s.Stop(s.T)
	s.Start(s.T)
	other := s.open()
	s.appendAtLast(other, "b", "2")
	last := s.append(other, "c", "3")
	t.reaches(last)
	t.want("a=1", "b=2", "c=3")
	if got := s.read(0).Entries; !slices.Equal(lines(got), []string{"a=1", "b=2", "c=3"}) || got[0].Position != a {
		s.Errorf("the log has %q, its first entry at %d, which was at %d", lines(got), got[0].Position, a)
	}
}

// "Where it has fallen behind a trim it goes on from the checkpoint."
func followCheckpoint(s *suite) {
	a, b := s.append(s.Store, "a", "1"), s.append(s.Store, "b", "2")
	inTime := s.follow(s.Store, 0)
	inTime.reaches(b)
	s.checkpoint(s.Store, b, "a and b")
	s.trim(s.Store)
	late, later, there := s.follow(s.Store, 0), s.follow(s.open(), a), s.follow(s.open(), b)
	there.begun()
	last := s.append(s.Store, "c", "3")
	for _, t := range []*tape{late, later} {
		t.reaches(last)
		t.want("c=3")
		if len(t.checkpoints) != 1 || t.checkpoints[0].Position != b || string(t.checkpoints[0].Value) != "a and b" {
			s.Errorf("Follow from before the checkpoint has yielded the checkpoints %+v", t.checkpoints)
		}
	}
	inTime.reaches(last)
	there.reaches(last)
	inTime.want("a=1", "b=2", "c=3")
	there.want("c=3")
	if len(inTime.checkpoints)+len(there.checkpoints) > 0 {
		s.Errorf("Follow that was not behind has yielded the checkpoints %+v, %+v", inTime.checkpoints,
			there.checkpoints)
	}
}

// A follower that was parted while the log was cut has either all entries or the
// checkpoint in place of those that it missed, and nothing twice.
func followCutOffCheckpoint(s *suite, victim store.Store) {
	t := s.follow(victim, 0)
	t.reaches(s.append(s.Store, "e-0", "1"))
	s.CutOff(victim, true)
	entries := 1
	for round := range 3 {
		var at store.Position
		for range 5 {
			at = s.append(s.Store, fmt.Sprintf("e-%d", entries), "1")
			entries++
		}
		s.append(s.Store, fmt.Sprintf("more-%d", round), "1")
		s.checkpoint(s.Store, at, strconv.Itoa(entries+round))
		s.trim(s.Store)
	}
	s.CutOff(victim, false)
	t.reaches(s.append(s.Store, "last", "1"))
	want := entries + 3 + 1 // of three rounds one more each, and the last
	have := len(t.entries)
	if len(t.checkpoints) > 0 { // one checkpoint stands for all up to it, e-0 included
		have += standsFor(&t.checkpoints[0]) - 1
	}
	if len(t.checkpoints) > 1 || have != want {
		s.Errorf("Follow has yielded %d of %d entries, and the checkpoints %+v", have, want, t.checkpoints)
	}
}

// "It yields an error last: that of ctx when ctx has ended"; each follower of one
// client ends for itself.
func followContext(s *suite) {
	ended, others := s.follow(s.Store, 0), s.follow(s.Store, 0)
	ended.begun()
	others.begun()
	ended.stop()
	s.fires("the end of Follow after that of its context", ended.ended)
	if !errors.Is(ended.err, context.Canceled) {
		s.Errorf("Follow ended with %v, want context.Canceled", ended.err)
	}
	others.reaches(s.append(s.Store, "a", "1"))
	ended.want()

	for batch, err := range s.Follow(s.ctx, 0) { // the caller may stop at any time
		if err != nil || !slices.Equal(lines(batch.Entries), []string{"a=1"}) {
			s.Errorf("Follow yields %+v, %v", batch, err)
		}
		break
	}
	others.reaches(s.append(s.Store, "b", "1"))
}

// "Close ends every session, watch and Follow of this client."
func followClosed(s *suite) {
	other := s.open()
	t := s.follow(other, 0)
	t.begun()
	s.must("Close", other.Close())
	s.fires("the end of Follow after that of its store", t.ended)
	if !errors.Is(t.err, store.ErrRefused) {
		s.Errorf("Follow ended with %v, want ErrRefused", t.err)
	}
}
