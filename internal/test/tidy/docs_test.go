package tidy

import (
	"flag"
	"fmt"
	"go/doc"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of docs/internals.md and docs/pictures/house.svg again")

// A room is a package, and what the first sentence of its comment says.
type room struct{ pkg, holds string }

// rooms returns those of a floor, by name, the library itself first.
func rooms(t *testing.T, on floor) (all []room) {
	for _, f := range sources(t) {
		name := f.parsed.Name.Name
		if floorOf(f.room).name != on.name || f.parsed.Doc == nil || strings.HasSuffix(name, "_test") {
			continue
		}
		holds := new(doc.Package).Synopsis(f.parsed.Doc.Text())
		for _, lead := range []string{"Package " + name + " ", "Command " + filepath.Base(f.room) + " ", "is "} {
			holds = strings.TrimPrefix(holds, lead)
		}
		holds, _, _ = strings.Cut(holds, ": ")
		all = append(all, room{f.room, strings.TrimSuffix(holds, ".")})
	}
	slices.SortFunc(all, func(a, b room) int { return strings.Compare(a.pkg, b.pkg) })
	return all
}

// The table and the picture of docs/internals.md are made from the floors and the comments of the packages:
//
//	go test ./internal/test/tidy -update
func TestThePageShowsTheHouse(t *testing.T) {
	const begin, end = "<!-- the table of rooms, by internal/test/tidy -->\n", "<!-- the end of the table -->\n"
	page := filepath.Join(root, "docs", "internals.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("docs/internals.md has no %q and %q", begin, end)
	}
	for path, want := range map[string]string{
		page: before + begin + table(t) + end + after,
		filepath.Join(root, "docs", "pictures", "house.svg"): picture(t),
	} {
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, _ := os.ReadFile(path); string(got) != want {
			t.Errorf("%s does not show the house; run: go test ./internal/test/tidy -update", path)
		}
	}
}

func table(t *testing.T) string {
	var b strings.Builder
	for _, f := range house {
		fmt.Fprintf(&b, "\n**%s**: %s\n\n| room | what it does |\n|---|---|\n", f.name, f.holds)
		for _, r := range rooms(t, f) {
			name, link := r.pkg, "../"+r.pkg
			if name == "." {
				name, link = "firn", "../doc.go"
			}
			fmt.Fprintf(&b, "| [%s](%s) | %s |\n", name, link, r.holds)
		}
	}
	return b.String() + "\n"
}

// picture draws a band for each floor, with a box for each room: blue where applications can import it.
func picture(t *testing.T) string {
	const width, left, height, gap = 780, 104, 28, 8
	var b strings.Builder
	y := 16
	for _, f := range house {
		top, x := y, left
		for _, r := range rooms(t, f) {
			name, class := strings.TrimPrefix(r.pkg, "internal/"), "room"
			if _, below, ok := strings.Cut(name, "/"); ok && !slices.Contains(public, r.pkg) &&
				!strings.HasPrefix(name, "cmd/") {
				name = below
			}
			if name == "." {
				name = "firn"
			}
			if slices.Contains(public, r.pkg) {
				class = "public"
			}
			w := 16 + 7*len(name)
			if x+w > width-16 {
				x, y = left, y+height+gap
			}
			fmt.Fprintf(&b, "  <rect class=%q x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\"/>\n", class,
				x, y, w, height)
			fmt.Fprintf(&b, "  <text class=\"name\" x=\"%d\" y=\"%d\">%s</text>\n", x+w/2, y+18, name)
			x += w + gap
		}
		fmt.Fprintf(&b, "  <text class=\"floor\" x=\"16\" y=\"%d\">%s</text>\n", top+18, f.name)
		y += height + gap
		fmt.Fprintf(&b, "  <line x1=\"16\" y1=\"%[1]d\" x2=\"%[2]d\" y2=\"%[1]d\"/>\n", y, width-16)
		y += gap
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" role="img"
    aria-labelledby="title desc">
  <title id="title">The house</title>
  <desc id="desc">The packages on %[3]d floors, and those for tests below. An import only points down.
    What applications can import is blue.</desc>
  <style>
    .card { fill: #f6f8fa; stroke: #d0d7de; }
    .room { fill: #ffffff; stroke: #8c959f; }
    .public { fill: #d6e6f7; stroke: #2563a8; }
    .name { font: 12px ui-monospace, "SF Mono", Consolas, "DejaVu Sans Mono", monospace; fill: #1f2328;
      text-anchor: middle; }
    .floor { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #57606a; }
    line { stroke: #d0d7de; }
  </style>
  <rect class="card" x="0.5" y="0.5" width="%[4]d" height="%[5]d" rx="8"/>
%[6]s</svg>
`, width, y, len(floors), width-1, y-1, b.String())
}
