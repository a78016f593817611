package deploy

import "testing"

func TestQuoted(t *testing.T) {
	for word, want := range map[string]string{
		"/usr/bin/firn": "/usr/bin/firn", "/tmp/a b/firn": "'/tmp/a b/firn'", "/it's/firn": `'/it'\''s/firn'`, "": "''",
	} {
		if got := Quote(word); got != want {
			t.Errorf("%q is quoted %s, want %s", word, got, want)
		}
	}
}
