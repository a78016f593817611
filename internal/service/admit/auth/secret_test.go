package auth

import (
	"regexp"
	"strings"
	"testing"
)

func TestNewTokens(t *testing.T) {
	shape := regexp.MustCompile(`^firn_[A-Za-z0-9_-]{43}$`)
	seen := map[string]bool{}
	for range 1000 {
		token := NewToken()
		if !shape.MatchString(token) || seen[token] || !isToken(token) || CheckToken(token) != nil {
			t.Fatalf("%s, which was there: %v", token, seen[token])
		}
		seen[token] = true
	}
}

// The vector of FIPS 180-2, so that sha256sum can be used in the place of firn token --hash.
func TestHashIsSHA256(t *testing.T) {
	if got, want := Hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestCheckToken(t *testing.T) {
	for token, want := range map[string]string{
		"sixteen-letters!":        "",
		strings.Repeat("~", 4096): "",
		"":                        "the token has 0 characters; want 16 to 4096, hard to guess",
		"fifteen-letters":         "the token has 15 characters; want 16 to 4096, hard to guess",
		strings.Repeat("~", 4097): "the token has 4097 characters; want 16 to 4096, hard to guess",
		"sixteen letters!": "the token has a space or a character that is not ASCII; want letters, digits and " +
			"signs such as '-' and '_'",
		"sixteen\x00letters!": "the token has a space or a character that is not ASCII; want letters, digits and " +
			"signs such as '-' and '_'",
		"sixteen-lettersé": "the token has a space or a character that is not ASCII; want letters, digits and " +
			"signs such as '-' and '_'",
	} {
		if err := CheckToken(token); text(err) != want {
			t.Errorf("%.50q: %v; want %q", token, err, want)
		}
	}
}
