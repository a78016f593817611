package respapi

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/test/servertest"
)

// generated is a member with a generator.
type generated struct{ *firn.Generator }

func (generated) Ready() error { return nil }
func (g generated) FillAfter(ctx context.Context, _ firn.ID, ids []firn.ID) error {
	return g.Fill(ctx, ids)
}
func (g generated) NodeIDs() []int64               { return []int64{g.NodeID()} }
func (g generated) Definition() cluster.Definition { return cluster.Define(g.Layout()) }

func newGenerated(t testing.TB, l firn.Layout, options ...firn.Option) generated {
	t.Helper()
	g, err := firn.NewGenerator(l, 5, options...)
	if err != nil {
		t.Fatal(err)
	}
	return generated{g}
}

// Where integers are not wanted, each command that replies with them has the same digits in bulk strings.
func TestIntegersAsTexts(t *testing.T) {
	for _, texts := range []bool{false, true} {
		s := newServer(newGenerated(t, firn.Default))
		s.Texts = texts
		says := array("INCR", "default") + array("INCRBY", "default", "3") + array("FIRN.NEXT", "default") + array("FIRN.NEXT", "default", "2")
		got := talk(s, says, maxCommand)
		integers, bulks := strings.Count(got, ":"), strings.Count(got, "$")
		if integers+bulks != 5 || (bulks == 5) != texts || (integers == 5) == texts {
			t.Errorf("as texts: %t; the replies are %q", texts, got)
		}
	}
}

// The IDs of an INCRBY are of nobody else: not of others who take some with INCRBY at the same time, nor of those who
// take them one by one, in pipelines or as lists. All of them are IDs of the node.
func TestIncrByIsReserved(t *testing.T) {
	for _, options := range [][]firn.Option{nil, {firn.WithRandomStart()}} {
		m := newGenerated(t, firn.Default, options...)
		s := newServer(m)
		var mu sync.Mutex
		var taken []int64
		var all sync.WaitGroup
		for _, says := range []string{
			array("INCRBY", "default", "1000"), array("INCRBY", "default", "100"), array("INCRBY", "default", "7"),
			strings.Repeat(array("INCR", "default"), 16), array("FIRN.NEXT", "default", "50"), array("INCR", "default"),
		} {
			all.Go(func() {
				for range 50 {
					got, err := show(talk(s, says, maxCommand))
					var ids []int64
					for text := range strings.FieldsSeq(strings.Trim(got, "[]")) {
						id, notNumber := strconv.ParseInt(text, 10, 64)
						if err != nil || notNumber != nil {
							t.Errorf("%q got %.200s, %v", says, got, err)
							return
						}
						ids = append(ids, id)
					}
					if _, n, by := strings.Cut(says, "INCRBY\r\n$7\r\ndefault\r\n"); by {
						count, _ := strconv.Atoi(strings.Fields(n)[1])
						for i := range int64(count - 1) {
							ids = append(ids, ids[0]-i-1)
						}
					}
					mu.Lock()
					taken = append(taken, ids...)
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if want := 50 * (1000 + 100 + 7 + 16 + 50 + 1); len(taken) != want {
			t.Errorf("%d IDs were taken, want %d", len(taken), want)
		}
		slices.Sort(taken)
		for i, id := range taken {
			if i > 0 && id == taken[i-1] {
				t.Fatalf("%d was given twice", id)
			}
			if p, err := firn.Default.Decompose(firn.ID(id)); err != nil || p.Node != 5 {
				t.Fatalf("%d is of node %d, %v", id, p.Node, err)
			}
		}
	}
}

// All IDs of a tick can be had at once, wherever in a tick the node is, again and again.
func TestIncrByAWholeTick(t *testing.T) {
	for _, options := range [][]firn.Option{nil, {firn.WithRandomStart()}} {
		s := newServer(newGenerated(t, firn.Default, options...))
		for range 20 {
			got := replies(t, s, "INCR default\r\nINCRBY default 4096\r\n")
			_, last, _ := strings.Cut(got, "\n")
			if id, err := strconv.ParseInt(last, 10, 64); err != nil || id%4096 != 4095 {
				t.Fatalf("got %s", got)
			}
		}
	}
}

// Where the node lies lowest no two IDs of it are consecutive, unless it has no bits. One is always.
func TestIncrByInOtherLayouts(t *testing.T) {
	alone := firn.Sonyflake
	alone.NodeBits, alone.SequenceBits = 0, 12
	for _, tt := range []struct {
		name   string
		layout firn.Layout
		n      int
		want   string // of the error; empty: none
	}{
		{"sonyflake", firn.Sonyflake, 1, ""},
		{"sonyflake", firn.Sonyflake, 2, "-ERR 2 consecutive IDs: in this layout the node is lowest, and one node's IDs are 65536 apart; ask for a list of IDs: FIRN.IDS default 2"},
		{"default", firn.Default, 4096, ""},
		{"default", firn.Default, 4097, "-ERR 4097 consecutive IDs: this layout has at most 4096, in one tick; ask for fewer, or for a list of IDs: FIRN.IDS default 4097"},
		{"one node, lowest", alone, 4096, ""},
	} {
		node := int64(5)
		if tt.layout.NodeIDs() == 1 {
			node = 0
		}
		g, err := firn.NewGenerator(tt.layout, node)
		if err != nil {
			t.Fatal(err)
		}
		got := replies(t, newServer(generated{g}), fmt.Sprintf("INCRBY default %d\r\n", tt.n))
		if _, err := strconv.ParseInt(got, 10, 64); got != tt.want && (tt.want != "" || err != nil) {
			t.Errorf("%s, %d: %s, want %s", tt.name, tt.n, got, tt.want)
		}
	}
}

// scattered gives IDs with gaps.
type scattered struct {
	*servertest.Issuer
	last int64
}

func (s *scattered) FillAfter(_ context.Context, _ firn.ID, ids []firn.ID) error {
	for i := range ids {
		ids[i] = firn.ID(s.last)
		s.last += 2
	}
	return nil
}

// When others always get in between it ends, and says so.
func TestIncrByAmongOthers(t *testing.T) {
	f := newCounting()
	const want = "-OVERLOADED no 3 consecutive IDs in 16 tries, since others took IDs in between; ask for fewer, or for a list of IDs, or try again"
	if got := replies(t, newServer(&scattered{Issuer: f}), "INCRBY default 3\r\n"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// No scattered ID follows another: only one can be taken so.
func TestScatteredIDsAreNotConsecutive(t *testing.T) {
	got := replies(t, newServer(scattering{newGenerated(t, firn.Default)}), "INCRBY default 1\r\nINCRBY default 2\r\n")
	one, two, _ := strings.Cut(got, "\n")
	if _, err := strconv.ParseInt(one, 10, 64); err != nil || two != "-ERR 2 consecutive IDs: this sequencer scatters its IDs, so none follows another; ask for a list of IDs: FIRN.IDS default 2" {
		t.Errorf("got %s", got)
	}
}

// scattering is a generated whose definition says that its IDs are scattered.
type scattering struct{ generated }

func (s scattering) Definition() cluster.Definition {
	d := s.generated.Definition()
	d.Scattered = true
	return d
}
