package manpage

import "testing"

// Nothing in a text is taken for a command to roff.
func TestTextStaysText(t *testing.T) {
	for in, want := range map[string]string{
		"--x":        `\-\-x`,
		`a\nb`:       `a\enb`,
		".SH x":      `\&.SH x`,
		"'tis":       `\(aqtis`,
		"say `this`": `say \(gathis\(ga`,
		"2^10 ~":     `2\(ha10 \(ti`,
	} {
		if got := Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
}
