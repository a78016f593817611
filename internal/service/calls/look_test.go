package calls_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/test/servertest"
)

// A status says how old what it says of a member is. It relies on what was seen of its pulse, where that is known, and
// not on the other's clock.
func TestHowOldAPulseIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := servertest.Tell(t, "a", cluster.PrepareJoin{Joiner: "a"}, cluster.PrepareJoin{Joiner: "b"},
			cluster.NotifyWatchers{Joiner: "b"}, cluster.AcceptJoin{Joiner: "b"})
		s := calls.New(f.Member, calls.Options{})
		who, err := (&auth.Policy{Trusted: true}).Admit("")
		if err != nil {
			t.Fatal(err)
		}
		written := func(ahead time.Duration, v peer.Vitals) {
			f.SetPulses(map[string]peer.Pulse{
				"a": {Owner: "host-a"},
				"b": {Owner: "host-b", Clock: time.Now().Add(ahead), Every: 10 * time.Second, Vitals: v},
			})
		}
		expect := func(what string, ago time.Duration, fresh bool, problems ...calls.ProblemKind) {
			t.Helper()
			status, err := s.Status(t.Context(), who)
			if err != nil {
				t.Fatal(err)
			}
			b := status.Members[1]
			var found []calls.ProblemKind
			for _, p := range status.Problems {
				found = append(found, p.Kind)
			}
			if have := status.At.Sub(*b.AsOf); have != ago || b.Fresh != fresh || b.Owner != "host-b" ||
				len(found) != len(problems) {
				t.Errorf("%s: it was written %v ago, fresh: %v, of %s, problems %v; want %v, %v, %v", what, have,
					b.Fresh, b.Owner, found, ago, fresh, problems)
			}
			for i, kind := range problems[:min(len(problems), len(found))] {
				if found[i] != kind {
					t.Errorf("%s: the problems are %v, want %v", what, found, problems)
				}
			}
		}
		ready := peer.Vitals{Ready: true}
		written(0, ready)
		time.Sleep(3 * time.Second)
		expect("it is believed what a clock says", 3*time.Second, true)
		time.Sleep(time.Second)
		written(-time.Hour, ready)
		time.Sleep(time.Second)
		expect("its clock is an hour late: it was not written before the last reading", 2*time.Second, true)
		written(time.Hour, ready)
		expect("an hour ahead", 0, true)
		time.Sleep(11 * time.Second)
		expect("due", 11*time.Second, true)
		time.Sleep(time.Millisecond)
		expect("overdue", 11*time.Second+time.Millisecond, false, calls.LateProblem)
		f.Fail(errors.New("no answer"))
		time.Sleep(time.Second)
		expect("no store", 12*time.Second+time.Millisecond, false, calls.StoreProblem)
		f.Fail(nil)
		f.SetPulses(map[string]peer.Pulse{"a": {}})
		expect("gone", 12*time.Second+time.Millisecond, false, calls.GoneProblem)
		f.Apply(cluster.Leave{Member: "b"})
		if status, err := s.Status(t.Context(), who); err != nil || len(status.Members) != 1 ||
			len(status.Problems) != 0 {
			t.Errorf("after it was taken out: %v %v", status, err)
		}

		// One that was not seen before, and whose clock says that it is old: it is overdue, or its clock is behind.
		unknown := func(what string, known bool) {
			t.Helper()
			status, err := s.Status(t.Context(), who)
			if err != nil {
				t.Fatal(err)
			}
			b, problems := status.Members[1], status.Problems
			if (b.AsOf != nil) != known || b.Fresh || len(problems) != 1 || problems[0].Kind != calls.LateProblem ||
				strings.HasSuffix(problems[0].Cause, ", or its clock is behind") == known {
				t.Errorf("%s: as of %v, fresh: %v, problems %v", what, b.AsOf, b.Fresh, problems)
			}
		}
		first := servertest.Tell(t, "a", cluster.PrepareJoin{Joiner: "a"}, cluster.PrepareJoin{Joiner: "b"},
			cluster.NotifyWatchers{Joiner: "b"}, cluster.AcceptJoin{Joiner: "b"})
		f, s = first, calls.New(first.Member, calls.Options{})
		written(-time.Hour, ready)
		unknown("just seen", false)
		time.Sleep(21 * time.Second)
		unknown("seen a while ago", false)
		time.Sleep(time.Second)
		unknown("not renewed since", true)
		written(-time.Hour, ready)
		expect("renewed", 0, true)

		behind := servertest.Tell(t, "a", cluster.PrepareJoin{Joiner: "a"}, cluster.PrepareJoin{Joiner: "b"},
			cluster.NotifyWatchers{Joiner: "b"}, cluster.AcceptJoin{Joiner: "b"})
		f, s = behind, calls.New(behind.Member, calls.Options{})
		written(-time.Hour, peer.Vitals{Verdict: "behind", Offset: -time.Hour, Code: "clock"})
		time.Sleep(4 * time.Second)
		expect("a clock that is known to be late", 4*time.Second, true, calls.ClockProblem)
	})
}

// A store that does not answer is out of reach since it last answered anything, however long ago somebody looked at the
// members.
func TestSinceWhenTheStoreIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, wrote := range []time.Duration{0, time.Hour} {
			f := servertest.Tell(t, "a", cluster.PrepareJoin{Joiner: "a"})
			f.SetPulses(map[string]peer.Pulse{"a": {Owner: "host-a"}})
			s := calls.New(f.Member, calls.Options{})
			who, err := (&auth.Policy{Trusted: true}).Admit("")
			if err != nil {
				t.Fatal(err)
			}
			looked := time.Now()
			if _, err := s.Status(t.Context(), who); err != nil {
				t.Fatal(err)
			}
			time.Sleep(wrote + time.Second) // the member writes its pulse every ten seconds
			f.Fail(errors.New("no answer"))
			time.Sleep(2 * time.Hour)
			status, err := s.Status(t.Context(), who)
			if err != nil {
				t.Fatal(err)
			}
			if is := status.Store; is.Reached || !is.AsOf.Equal(looked) || !is.Answered.Equal(looked.Add(wrote)) {
				t.Errorf("%+v: it told of the members at %v and answered at %v, want %v and %v", is, is.AsOf,
					is.Answered, looked, looked.Add(wrote))
			}
			if p := status.Problems[0]; p.Kind != calls.StoreProblem || !p.Since.Equal(looked.Add(wrote)) {
				t.Errorf("the problem is %+v", p)
			}
		}
	})
}

// Who watches the members reads their pulses now and then. Between two readings none is said to be late or to have
// little time, one that has come is not gone, and nor is one that leaves, in whatever order that is heard.
func TestAHealthyClusterHasNoProblems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every = 10 * time.Second / 3 // the shortest
		joins := func(id string) []cluster.Command {
			return []cluster.Command{
				cluster.PrepareJoin{Joiner: id},
				cluster.NotifyWatchers{Joiner: id},
				cluster.AcceptJoin{Joiner: id},
			}
		}
		f := servertest.Tell(t, "a", slices.Concat(joins("a"), joins("b"))...)
		s := calls.New(f.Member, calls.Options{})
		who, err := (&auth.Policy{Trusted: true}).Admit("")
		if err != nil {
			t.Fatal(err)
		}
		pulses := map[string]peer.Pulse{"a": {Owner: "host-a"}}
		write := func(id string, ahead time.Duration) {
			pulses[id] = peer.Pulse{
				Owner: "host-" + id, Clock: time.Now().Add(ahead), Every: every,
				Vitals: peer.Vitals{Ready: true, Left: 3 * every, For: time.Minute},
			}
			f.SetPulses(pulses)
		}
		var r *calls.Reading
		read := func() {
			t.Helper()
			if r, err = s.Pulses(t.Context(), who); err != nil {
				t.Fatal(err)
			}
		}
		expect := func(what string, alive map[string]bool, problems ...calls.ProblemKind) {
			t.Helper()
			status, err := s.Look(who, r, nil)
			if err != nil {
				t.Fatal(err)
			}
			var found []calls.ProblemKind
			for _, p := range status.Problems {
				found = append(found, p.Kind)
			}
			if !slices.Equal(found, problems) {
				t.Errorf("%s: the problems are %v, want %v", what, status.Problems, problems)
			}
			for _, m := range status.Members {
				is, known := alive[m.ID]
				if (m.Alive != nil) != known || known && *m.Alive != is ||
					m.ID != "a" && m.Fresh != (is && len(problems) == 0) {
					t.Errorf("%s: %s is alive: %v, fresh: %v", what, m.ID, m.Alive, m.Fresh)
				}
			}
		}
		// also at the first look
		for _, ahead := range []time.Duration{0, -9500 * time.Millisecond, 9500 * time.Millisecond} {
			s = calls.New(f.Member, calls.Options{})
			write("b", ahead)
			time.Sleep(every + time.Second) // as late as it may be
			read()
			for range 4 {
				expect("just before it is written again, and until the next reading",
					map[string]bool{"a": true, "b": true})
				time.Sleep(time.Second)
			}
			write("b", ahead)
			read()
			expect("written again", map[string]bool{"a": true, "b": true})
			time.Sleep(every + time.Second + time.Millisecond)
			read()
			if ahead == 0 {
				expect("overdue at a reading", map[string]bool{"a": true, "b": true}, calls.LateProblem)
			}
		}

		write("b", 0)
		read()
		write("c", 0)
		f.Apply(joins("c")...)
		expect("one has come", map[string]bool{"a": true, "b": true})
		read()
		expect("and is read", map[string]bool{"a": true, "b": true, "c": true})

		f.Store.Lag(time.Millisecond)
		f.Append(cluster.Leave{Member: "c"})
		delete(pulses, "c")
		f.SetPulses(pulses)
		read()
		expect("one has left, and this member has not heard of it", map[string]bool{"a": true, "b": true})
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		expect("it has heard of it", map[string]bool{"a": true, "b": true})
		delete(pulses, "b")
		f.SetPulses(pulses)
		expect("one has died, and was not read since", map[string]bool{"a": true, "b": true})
		read()
		expect("one has died", map[string]bool{"a": true, "b": false}, calls.GoneProblem)
	})
}
