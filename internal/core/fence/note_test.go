package fence

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/core/journal"
)

// Owners that come and go over a store that misbehaves do what the model of the proof does.
func TestJournalsOfOwners(t *testing.T) {
	owners := 0
	for seed := range uint64(50) {
		inBubble(t, func(t *testing.T, p *place) {
			d := &dice{r: rand.New(rand.NewPCG(seed, 8))}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			var files []journal.File
			var running sync.WaitGroup
			for _, name := range []string{"a", "b", "c"} {
				k := &keeper{party: p.party(name), dice: d, ended: map[*Fence]time.Time{}}
				lines := new(bytes.Buffer)
				files = append(files, journal.File{Name: name, Reader: lines})
				w := journal.NewWriter(lines, func(err error) { t.Error(err) })
				w.Write(journal.Line{Do: journal.Begin, Journal: journal.Version})
				k.config.Journal = w.Write
				running.Go(func() { k.run(ctx) })
			}
			p.service.Inject(d.fault)
			running.Wait()
			r, err := journal.Check(files...)
			if err != nil || len(r.Violations) > 0 {
				t.Errorf("seed %d: %v %v", seed, err, r.Violations)
			}
			owners += r.Owners
		})
	}
	if owners < 500 {
		t.Errorf("only %d owners", owners)
	}
}
