package bigsort

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// However little memory there is, the pairs come sorted, each as often as it was added, and again the second time.
func TestSorts(t *testing.T) {
	for range 200 {
		n, most := rand.IntN(3000), 1+rand.IntN(300)
		folder := t.TempDir()
		s := New(folder, most)
		var want []Pair
		for range n {
			p := Pair{rand.Int64N(50) - 25, rand.Int64N(50) - 25}
			if rand.IntN(10) == 0 {
				p.First = int64(rand.Uint64())
			}
			want = append(want, p)
			if err := s.Add(p); err != nil {
				t.Fatal(err)
			}
		}
		slices.SortFunc(want, compare)
		for range 2 {
			var got []Pair
			for p, err := range s.All() {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, p)
			}
			if !slices.Equal(got, want) || s.Count() != int64(n) {
				t.Fatalf("%d pairs, %d in memory: %v; want %v", n, most, got, want)
			}
			for range s.All() { // one that is not read to its end
				break
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if left, _ := os.ReadDir(folder); len(left) > 0 {
			t.Fatalf("%v is left", left)
		}
	}
}

func TestSaysThatItCannotWriteOrRead(t *testing.T) {
	s := New(t.TempDir()+"/none", 2)
	var err error
	for i := range int64(3) {
		err = s.Add(Pair{i, i})
	}
	if err == nil {
		t.Error("no error without a folder")
	}

	s = New(t.TempDir(), 2)
	for i := range int64(5) {
		if err := s.Add(Pair{i, i}); err != nil {
			t.Fatal(err)
		}
	}
	var got []Pair
	for p := range s.All() {
		got = append(got, p)
	}
	if len(got) != 5 {
		t.Fatal(got)
	}
	if err := s.file.Truncate(8); err != nil {
		t.Fatal(err)
	}
	err = nil
	for _, err = range s.All() {
	}
	if err == nil {
		t.Error("no error where the file is cut off")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func BenchmarkSort(b *testing.B) {
	s := New(b.TempDir(), 24<<20/Size)
	defer s.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range int64(b.N) {
		if err := s.Add(Pair{r.Int64N(1e12), i}); err != nil {
			b.Fatal(err)
		}
	}
	for _, err := range s.All() {
		if err != nil {
			b.Fatal(err)
		}
	}
}
