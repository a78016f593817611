package calls_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/counter"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/sequencer"
	"github.com/firn-id/firn/store/memstore"
)

// invoices is a counter of 5 to 104.
var invoices = cluster.Definition{Kind: cluster.Counter, After: 4, Max: 104}

// A counter is created, gives numbers to whoever may have IDs, also at a node that attaches to nothing by itself, stops
// when the store has lost data, goes on when it is resumed, and ends at its maximum.
func TestCounter(t *testing.T) {
	store := memstore.NewService().Client("a")
	member := servertest.JoinOver(t, store)
	s := calls.New(member, calls.Options{NoAutoAttach: true})
	who, err := (&auth.Policy{Trusted: true}).Admit("")
	if err != nil {
		t.Fatal(err)
	}
	if _, created, err := s.Create(t.Context(), who, "invoices", invoices, 0); err != nil || !created {
		t.Fatal(err)
	}
	next := func() (firn.ID, codes.Code) {
		id, _, err := s.Next(t.Context(), who, "invoices")
		if err != nil {
			return id, calls.CodeOf(err)
		}
		return id, codes.OK
	}
	status := func() calls.StatusSequencer {
		q, err := s.Sequencer(t.Context(), who, "invoices")
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	ready := func(want bool) {
		t.Helper()
		if err := s.ReadyFor(t.Context(), "invoices"); (err == nil) != want {
			t.Errorf("ready: %v, want %v", err, want)
		}
	}
	ready(true)
	if q := status(); *q.Count != (calls.Count{}) || q.Here.State != "none" {
		t.Errorf("it begins as %+v, here %+v", q.Count, q.Here)
	}
	for want := firn.ID(5); want < 8; want++ {
		if id, code := next(); id != want {
			t.Fatalf("%d (%s), want %d", id, code, want)
		}
	}
	if q := status(); q.Count.Reserved < 7 || q.Count.Lost || q.Here.State != "counting" {
		t.Errorf("it is %+v, here %+v", q.Count, q.Here)
	}
	if given := s.Given()["invoices"]; given != 3 {
		t.Errorf("%d numbers are counted, want 3", given)
	}

	if err := counter.Tell(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	last := firn.ID(7)
	for {
		id, code := next()
		if code == codes.Lost {
			break
		}
		if id != last+1 {
			t.Fatalf("%d (%s) after %d", id, code, last)
		}
		last = id
	}
	if q := status(); !q.Count.Lost || q.Here.State != "lost" || q.Here.Why == "" {
		t.Errorf("after a loss it is %+v, here %+v", q.Count, q.Here)
	}
	if v := member.Vitals().Counters["invoices"]; !v.Lost || v.Reserved < last {
		t.Errorf("the vitals are %+v", v)
	}
	ready(false)
	for after, want := range map[int64]codes.Code{-1: codes.BadRequest, 6: codes.Refused} {
		if _, err := s.ResumeCounter(t.Context(), who, "invoices", after); err == nil || calls.CodeOf(err) != want {
			t.Errorf("resumed after %d: %v, want %s", after, err, want)
		}
	}
	q, err := s.ResumeCounter(t.Context(), who, "invoices", 100)
	if err != nil || q.Count.Lost || q.Count.Reserved < 100 {
		t.Fatalf("resumed: %v, %+v", err, q.Count)
	}
	eventually(t, func() bool { _, code := next(); return code == codes.OK })
	eventually(t, func() bool { _, code := next(); return code == codes.Exhausted })
	ready(false)
	if q := status(); q.Here.State != "exhausted" || q.Count.Reserved != 104 {
		t.Errorf("at its end it is %+v, here %+v", q.Count, q.Here)
	}
}

func eventually(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); {
		if time.Now().After(end) {
			t.Fatal("not within a minute")
		}
	}
}

func TestProblemsOfCounters(t *testing.T) {
	for name, c := range map[string]struct {
		first, second peer.Counting
		want          []string
	}{
		"few used": {peer.Counting{Reserved: 83}, peer.Counting{}, nil},
		"80 %": {
			peer.Counting{Reserved: 7},
			peer.Counting{Reserved: 84},
			[]string{"warning: invoices has 20 numbers left"},
		},
		"95 %": {peer.Counting{Reserved: 99}, peer.Counting{}, []string{"error: invoices has 5 numbers left"}},
		"all reserved": {peer.Counting{}, peer.Counting{Reserved: 104}, []string{
			"error: invoices has no numbers left but those that nodes have reserved",
		}},
		"lost": {peer.Counting{Reserved: 6}, peer.Counting{Reserved: 9, Lost: true}, []string{
			"error: Nobody gets numbers of invoices",
		}},
	} {
		s := healthy()
		s.Sequencers = append(s.Sequencers, calls.StatusSequencer{Name: "invoices", Definition: invoices})
		for i, is := range []peer.Counting{c.first, c.second} {
			s.Members[i].Vitals.Counters = map[string]peer.Counting{"invoices": is}
		}
		var got []string
		for _, p := range calls.Problems(s) {
			if p.Kind != calls.CounterProblem || len(p.Members) != 2 || p.Do == "" {
				t.Errorf("%s: %+v", name, p)
			}
			got = append(got, string(p.Level)+": "+p.Effect)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The numbers of a date end with its digits, until the next one.
func TestProblemsOfDatedCounters(t *testing.T) {
	d := cluster.Definition{Kind: cluster.Counter, Dated: sequencer.Dated{Every: sequencer.EveryDay, Digits: 2}}
	s := healthy()
	first, last, until := d.Dated.At(s.At, time.UTC)
	for reserved, want := range map[firn.ID]string{
		first + 78: "",
		first + 79: "warning: receipts has 19 numbers left until " + until.Format(time.RFC3339),
		last - 4:   "error: receipts has 4 numbers left until " + until.Format(time.RFC3339),
		last: "error: receipts has no numbers left until " + until.Format(time.RFC3339) +
			" but those that nodes have reserved",
		first - 1000000: "", // of an earlier date
	} {
		s := healthy()
		s.Sequencers = append(s.Sequencers, calls.StatusSequencer{Name: "receipts", Definition: d})
		s.Members[0].Vitals.Counters = map[string]peer.Counting{"receipts": {Reserved: reserved}}
		var got strings.Builder
		for _, p := range calls.Problems(s) {
			got.WriteString(string(p.Level) + ": " + p.Effect)
		}
		if got.String() != want {
			t.Errorf("%d: %q, want %q", reserved, got.String(), want)
		}
	}
}
