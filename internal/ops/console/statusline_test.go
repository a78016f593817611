package console

import (
	"bytes"
	"testing"
)

// Printed lines stand above the status line, which is drawn again below them; without a terminal there is no
// status line.
func TestStatusLine(t *testing.T) {
	var b bytes.Buffer
	s := NewStatusLine(&b)
	s.Set("status")
	if err := s.Print("line\n"); err != nil || b.String() != "line\n" {
		t.Errorf("where there is no terminal it writes %q, %v", &b, err)
	}
	b.Reset()
	s.terminal = true
	s.Set("status")
	if err := s.Print("line\n"); err != nil {
		t.Fatal(err)
	}
	s.Set("")
	drawn := func(text string) string { return eraseLine + cutOff + text + wrap }
	if want := drawn("status") + eraseLine + "line\n" + drawn("status") + drawn(""); b.String() != want {
		t.Errorf("it writes %q, want %q", &b, want)
	}
}
