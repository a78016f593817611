//go:build unix

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/firn-id/firn/internal/core/journal"
)

// journals are the files of the nodes that each test has started, by their cluster.
var journals = struct {
	sync.Mutex
	of   map[testing.TB]map[string][]string
	lost map[testing.TB]bool
}{of: map[testing.TB]map[string][]string{}, lost: map[testing.TB]bool{}}

// storeIsLost notes that the store of a test loses its data while no member runs, so that no journal says so.
func storeIsLost(t testing.TB) {
	journals.Lock()
	defer journals.Unlock()
	journals.lost[t] = true
}

// journaled returns the flag with which a node keeps a journal. When the test ends, and all its nodes have, the
// journals of each of its clusters are checked against the model of the proof.
func journaled(t testing.TB, args []string) string {
	t.Helper()
	file, cluster := filepath.Join(t.TempDir(), "journal"), clusterOf(args)
	journals.Lock()
	defer journals.Unlock()
	of := journals.of[t]
	if of == nil {
		of = map[string][]string{}
		journals.of[t] = of
		t.Cleanup(func() { checkJournals(t) })
	}
	of[cluster] = append(of[cluster], file)
	return "--journal=" + file
}

// clusterOf returns the flags that say to which cluster a node belongs.
func clusterOf(args []string) string {
	var flags []string
	for _, name := range []string{"--quorum=", "--store=", "--etcd=", "--data-dir="} {
		if i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, name) }); i >= 0 {
			flags = append(flags, args[i])
			break
		}
	}
	for _, arg := range args {
		if strings.HasPrefix(arg, "--etcd-prefix=") || strings.HasPrefix(arg, "--postgres-schema=") {
			flags = append(flags, arg)
		}
	}
	return strings.Join(flags, " ")
}

func checkJournals(t testing.TB) {
	t.Helper()
	journals.Lock()
	of, lost := journals.of[t], journals.lost[t]
	delete(journals.of, t)
	delete(journals.lost, t)
	journals.Unlock()
	for cluster, paths := range of {
		var files []journal.File
		if lost {
			said := new(bytes.Buffer)
			w := journal.NewWriter(said, func(err error) { t.Error(err) })
			w.Write(journal.Line{Do: journal.Begin, Journal: journal.Version, Member: "the test"})
			w.Write(journal.Line{Do: journal.Loss})
			files = append(files, journal.File{Name: "the test", Reader: said})
		}
		for _, path := range paths {
			f, err := os.Open(path)
			if os.IsNotExist(err) {
				continue // the node ended before
			}
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			files = append(files, journal.File{Name: path, Reader: f})
		}
		r, err := journal.Check(files...)
		if err != nil {
			t.Errorf("%s: %v", cluster, err)
			continue
		}
		for i, v := range r.Violations {
			if t.Errorf("%s: %v", cluster, v); i == 5 {
				break
			}
		}
		t.Logf("%s: %d lines in the journals of %d members, %d IDs", cluster, r.Lines, r.Members, r.IDs)
	}
}
