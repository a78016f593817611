package doctor

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A secret is removed as it is and in each form, whatever is around it; short words stay.
func TestSecretsAreRemoved(t *testing.T) {
	const secret = `pa/ss "w&rd`
	var s Secrets
	s.Add(secret)
	s.Add("ids")
	for before := range 4 {
		for after := range 4 {
			whole := strings.Repeat("x", before) + secret + strings.Repeat("y", after)
			quoted, err := json.Marshal(whole)
			if err != nil {
				t.Fatal(err)
			}
			for form, text := range map[string]string{
				"raw": whole, "URL": url.QueryEscape(whole), "path": url.PathEscape(whole), "JSON": string(quoted),
				"quoted": fmt.Sprintf("%q", whole),
				"hex":    hex.EncodeToString([]byte(whole)), "HEX": fmt.Sprintf("%X", whole),
				"base64":          base64.StdEncoding.EncodeToString([]byte(whole)),
				"base64 for URLs": base64.RawURLEncoding.EncodeToString([]byte(whole)),
			} {
				if have := string(s.Remove([]byte(text))); !strings.Contains(have, removed) {
					t.Errorf("%s, %d before and %d after: %s", form, before, after, have)
				}
			}
		}
	}
	if have := string(s.Remove([]byte("firn ids"))); have != "firn ids" {
		t.Errorf("have %q", have)
	}
}

// Passwords in URLs and in files, and keys in files, are secrets; comments, and what can't be read, are not.
func TestSecretsAreFound(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var s Secrets
	s.AddURL("postgres://firn:p%40ss%2Fword@db:5432/ids?sslpassword=hunter22&x=1")
	s.AddPassword(write("correct horse\nanother line\n"))
	s.AddPassword(filepath.Join(t.TempDir(), "nothing"))
	s.AddKeys(write("# thisisnosecretatall\n1 bGV0IG1lIHRlbGwgeW91IGEgc2VjcmV0IHRoYXQgaXM=\nfirn1-abcdefghijklmnop\n"))
	s.AddKeys("")
	for text, want := range map[string]string{
		"p%40ss%2Fword": removed, "p@ss/word": removed, "hunter22": removed, "db:5432": "db:5432", "firn": "firn",
		"correct horse": removed, "another line": "another line", "thisisnosecretatall": "thisisnosecretatall",
		"bGV0IG1lIHRlbGwgeW91IGEgc2VjcmV0IHRoYXQgaXM=": removed, "let me tell you a secret that is": removed,
		"firn1-abcdefghijklmnop": removed,
	} {
		if have := string(s.Remove([]byte(text))); have != want {
			t.Errorf("%q becomes %q; want %q", text, have, want)
		}
	}
}
