package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/service/admit/auth"
)

// What is printed below the token is a file of tokens, by which servers know it.
func TestServersKnowTokens(t *testing.T) {
	for _, args := range []string{
		"", " --rate 0.25", " --rate 1e9 --sequencer * --sequencer [a-z]? --allow admin",
		" --name null", " --name 12", " --name {a:&*b}#",
	} {
		var out, errs bytes.Buffer
		if status := run(t.Context(), strings.Fields("token --name - --allow issue"+args), nil, nil, &out,
			&errs); status != statusOK {
			t.Fatalf("%s: %d, %s", args, status, &errs)
		}
		token, entry, _ := strings.Cut(out.String(), "\n\n")
		path := filepath.Join(t.TempDir(), "tokens.yaml")
		if err := os.WriteFile(path, []byte(entry), 0o600); err != nil {
			t.Fatal(err)
		}
		tokens, err := auth.OpenTokens(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Errorf("%s: %v, of\n%s", args, err, entry)
			continue
		}
		if _, err := tokens.Identify(token); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}
