package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/firn-id/firn/internal/overlay"
)

// Every fault has its place in the code. This takes a moment; running all mutants takes minutes.
func TestEveryMutantHasItsPlace(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	for _, m := range slices.Concat(mutants, clocks, times, coarse, horizonFile, adapters) {
		if _, err := overlay.Edit(m.file, m.old, m.change); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}
