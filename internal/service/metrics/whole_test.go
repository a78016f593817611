package metrics

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store/memstore"
)

// counted returns how many series a cluster shows that have a sequencer, and who shows what is of a whole one.
func (s *stage) counted() (series int, tellers map[string][]string) {
	tellers = map[string][]string{}
	for _, n := range s.nodes {
		if n.dead {
			continue
		}
		for line := range strings.Lines(own(scraped(s.t, n.metrics))) {
			name, rest, ok := strings.Cut(line, `{sequencer="`)
			if !ok {
				continue
			}
			series++
			sequencer, _, _ := strings.Cut(rest, `"`)
			switch name {
			case held.name, free.name, inLine.name, layoutEnd.name:
				tellers[sequencer+" "+name] = append(tellers[sequencer+" "+name], n.name)
			}
		}
	}
	return series, tellers
}

// once checks that what is of a whole sequencer is shown by one node.
func (s *stage) once(sequencers int) {
	s.t.Helper()
	_, tellers := s.counted()
	if want := 4 * sequencers; len(tellers) != want {
		s.t.Errorf("%d facts of sequencers are shown; want %d", len(tellers), want)
	}
	for fact, nodes := range tellers {
		if len(nodes) != 1 {
			s.t.Errorf("%s is shown by %v; want one node", fact, nodes)
		}
	}
}

// What is of a whole sequencer is shown once: also when nodes that showed it die, or leave, and where an application
// that embeds a member has the lowest node ID.
func TestWholeSequencersAreShownOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, store: memstore.NewService(), series: map[string][]string{}}
		client := s.store.Client("app")
		defer client.Close()
		app, err := peer.Join(t.Context(), client, peer.Options{
			Owner: "app", Start: func(nodes cluster.Range) int64 { return nodes.From },
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			s.start("v1")
		}
		d := definition()
		d.Layout.Epoch, d.Nodes = d.Layout.Epoch.Truncate(24*time.Hour), 4
		all := append([]string{"few"}, sequencers...)
		for _, m := range []*peer.Member{app, s.nodes[0].member, s.nodes[1].member, s.nodes[2].member} {
			if _, err := m.EnsureSequencer(t.Context(), "few", d); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		few, _ := app.Value().Sequencer("few")
		for _, first := range few.Nodes() {
			if first != app.ID() {
				t.Errorf("the first node ID is that of %s; want the application's, %s", first, app.ID())
			}
			break
		}
		s.once(len(all))
		s.kill(s.nodes[0])
		time.Sleep(2 * time.Minute)
		s.once(len(all))
		s.start("v1")
		s.leave(s.nodes[1])
		time.Sleep(2 * time.Minute)
		s.once(len(all))
		s.nodes[2].client.CutOff(true)
		time.Sleep(10 * time.Second)
		s.once(len(all))
		s.end()
		app.Leave()
	})
}

// Five nodes with 62 sequencers have four series of each whole sequencer, and eight of each node.
func TestSeriesOfManySequencers(t *testing.T) {
	testenv.Slow(t)
	synctest.Test(t, func(t *testing.T) {
		const sequencers, nodes = 62, 5
		s := &stage{t: t, store: memstore.NewService(), series: map[string][]string{}}
		for range nodes {
			s.start("v1")
		}
		d := definition()
		d.Layout.Epoch = d.Layout.Epoch.Truncate(24 * time.Hour)
		for i := range sequencers - 3 {
			for _, n := range s.nodes {
				if _, err := n.member.EnsureSequencer(t.Context(), fmt.Sprint("s", i), d); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(time.Minute)
		s.once(sequencers)
		n, _ := s.counted()
		if want := sequencers * (4 + 8*nodes); n != want {
			t.Errorf("%d series; want %d", n, want)
		}
		s.end()
	})
}
