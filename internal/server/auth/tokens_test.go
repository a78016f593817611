package auth

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fileOfTokens is a file of tokens that is in use.
type fileOfTokens struct {
	*Tokens
	clock
	t    *testing.T
	path string
	log  journal
}

func open(t *testing.T, content string) *fileOfTokens {
	t.Helper()
	f := &fileOfTokens{t: t, path: filepath.Join(t.TempDir(), "tokens.yaml")}
	write(t, f.path, []byte(content))
	var err error
	if f.Tokens, err = openTokens(f.path, f.log.logger(), f.now); err != nil {
		t.Fatal(err)
	}
	return f
}

// becomes has the file changed, and a second pass.
func (f *fileOfTokens) becomes(content string) {
	f.t.Helper()
	write(f.t, f.path, []byte(content))
	f.pass(time.Second)
}

// knows fails unless the callers of the tokens have these names; an empty name is nobody.
func (f *fileOfTokens) knows(names map[string]string) {
	f.t.Helper()
	for token, want := range names {
		c, err := f.Identify(token)
		if c.Name() != want || (want == "") != errors.Is(err, ErrUnauthenticated) {
			f.t.Errorf("%q is %q, %v; want %q", token, c.Name(), err, want)
		}
	}
}

func TestIdentify(t *testing.T) {
	f := open(t, entry("a", "token-a")+entry("b", "token-b", "sequencers: [x]", "rate: 5"))
	f.knows(map[string]string{"token-a": "a", "token-b": "b", "token-c": "", "": "", "token-a ": "", hashA: "", "Token-a": ""})
	c, err := f.Identify("token-b")
	if err != nil || c.May(Issue, "x") != nil || c.May(Issue, "y") == nil || c.May(Admin, "x") == nil || c.Spend(5) != nil || c.Spend(1) == nil {
		t.Errorf("b is %+v, %v", c, err)
	}
}

func TestAllowedIsWhatTheEntrySays(t *testing.T) {
	for allow, want := range map[string]Right{"issue": Issue, "attach": Attach, "admin": Admin, "admin, issue": Issue | Admin, "issue, attach, admin": All} {
		f := open(t, "- {name: a, sha256: "+hashA+", allow: ["+allow+"]}")
		if c, err := f.Identify("token-a"); err != nil || c.rights != want {
			t.Errorf("[%s]: %+v, %v; want %v", allow, c, err, want)
		}
	}
}

func TestRefusedTokensAreNotShown(t *testing.T) {
	f := open(t, entry("a", "token-a"))
	for token, want := range map[string]string{
		NewToken():                "door: it is not known who asks: the token is not known here",
		strings.Repeat("x", 4096): "door: it is not known who asks: the token is not known here",
		strings.Repeat("x", 4097): "door: it is not known who asks: the token has 4097 bytes, more than any",
	} {
		if _, err := f.Identify(token); text(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	f.log.wants(t)
}

func TestTokensThatCantBeOpened(t *testing.T) {
	directory := t.TempDir()
	empty := filepath.Join(directory, "empty")
	write(t, empty, nil)
	bad := filepath.Join(directory, "bad")
	write(t, bad, []byte("- name: a b"))
	for path, want := range map[string]string{
		filepath.Join(directory, "none"): ": no such file or directory",
		empty:                            ": it has no tokens; want at least one, as `firn token` prints it",
		bad:                              `: line 1: name: "a b" is not right; want 1 to 100 printable characters without spaces`,
		directory:                        ": it is no regular file; want one",
	} {
		var log journal
		if _, err := OpenTokens(path, log.logger()); text(err) != path+want {
			t.Errorf("%v, want %s%s", err, path, want)
		}
		log.wants(t) // who gets the error logs it
	}
}

func TestChangedTokensAreReadAgain(t *testing.T) {
	f := open(t, entry("a", "token-a"))
	f.becomes(entry("renamed", "token-a") + entry("b", "token-b"))
	f.knows(map[string]string{"token-a": "renamed", "token-b": "b"})
	f.log.wants(t, `level=INFO msg="the tokens were read again"`)
	f.becomes(entry("b", "token-b"))
	f.knows(map[string]string{"token-a": "", "token-b": "b"})
	f.log.wants(t, "the tokens were read again")
	f.pass(time.Hour)
	f.knows(map[string]string{"token-a": "", "token-b": "b"})
	f.log.wants(t)
}

func TestTokensAreLookedAtOnceASecond(t *testing.T) {
	f := open(t, entry("a", "token-a"))
	write(t, f.path, []byte(entry("b", "token-b")))
	f.pass(time.Second - 1)
	f.knows(map[string]string{"token-a": "a", "token-b": ""})
	f.pass(1)
	f.knows(map[string]string{"token-a": "", "token-b": "b"})
	write(t, f.path, []byte(entry("c", "token-c")))
	f.pass(time.Second - 1)
	f.knows(map[string]string{"token-b": "b"})
	f.pass(1)
	f.knows(map[string]string{"token-b": ""})
}

// What went wrong with a file is logged once per change, and nobody is shut out.
func TestBadTokensDoNotTakeThePlaceOfGoodOnes(t *testing.T) {
	f := open(t, entry("a", "token-a"))
	a := map[string]string{"token-a": "a", "token-b": ""}
	secret := NewToken()
	for _, bad := range []struct{ content, logged string }{
		{"", "no tokens"},
		{"- name: b\n  sha256: " + secret, "it is a token, which must stay secret"},
		{secret + "\n" + entry("b", "token-b"), "it is no YAML"},
		{entry("b", "token-b", "rate: 0"), "rate: 0 is not right"},
		{entry("b", "token-b", "rate: 0", ""), "rate: 0 is not right"}, // another change, with the same mistake
	} {
		f.becomes(bad.content)
		f.knows(a)
		lines := strings.Join(f.log.take(), "\n")
		if !strings.Contains(lines, bad.logged) || !strings.Contains(lines, "level=ERROR") || !strings.Contains(lines, f.path) ||
			strings.Count(lines, "\n") != 0 || strings.Contains(lines, secret[5:13]) {
			t.Errorf("%q is logged as\n%s\nwant one line with %q", bad.content, lines, bad.logged)
		}
		f.pass(time.Minute)
		f.knows(a)
		f.log.wants(t)
	}
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	for _, logged := range [][]string{{"no such file"}, nil, nil} {
		f.pass(time.Second)
		f.knows(a)
		f.log.wants(t, logged...)
	}
	if err := os.Mkdir(f.path, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, logged := range [][]string{{"no regular file"}, nil} {
		f.pass(time.Second)
		f.knows(a)
		f.log.wants(t, logged...)
	}
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	f.becomes(entry("a", "token-a")) // as it was in the beginning
	f.knows(a)
	f.log.wants(t, "were read again")
	f.becomes(entry("b", "token-b"))
	f.knows(map[string]string{"token-a": "", "token-b": "b"})
}

// Kubernetes keeps files behind two links, and turns the second one over.
func TestTokensBehindLinksThatAreTurnedOver(t *testing.T) {
	f := &fileOfTokens{t: t}
	directory := t.TempDir()
	in := func(name string) string { return filepath.Join(directory, name) }
	turnTo := func(version, content string) {
		t.Helper()
		err := errors.Join(
			os.Mkdir(in(version), 0o700),
			os.WriteFile(filepath.Join(in(version), "tokens.yaml"), []byte(content), 0o600),
			os.Chtimes(filepath.Join(in(version), "tokens.yaml"), f.now(), f.now()), // nothing but the link tells them apart
			os.Symlink(version, in("..part")),
			os.Rename(in("..part"), in("..data")))
		if err != nil {
			t.Fatal(err)
		}
	}
	turnTo("..1", entry("a", "token-a"))
	if err := os.Symlink(filepath.Join("..data", "tokens.yaml"), in("tokens.yaml")); err != nil {
		t.Fatal(err)
	}
	var err error
	if f.Tokens, err = openTokens(in("tokens.yaml"), f.log.logger(), f.now); err != nil {
		t.Fatal(err)
	}
	turnTo("..2", entry("b", "token-b"))
	f.pass(time.Second)
	f.knows(map[string]string{"token-a": "", "token-b": "b"})
}

func TestLimitersGoOnAcrossChanges(t *testing.T) {
	f := open(t, entry("a", "token-a", "rate: 0.001")+entry("b", "token-b", "rate: 0.001"))
	spend := func(token string, may bool) {
		t.Helper()
		c, err := f.Identify(token)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Spend(1); (err == nil) != may {
			t.Errorf("%s spends: %v; want that it may: %v", token, err, may)
		}
	}
	spend("token-a", true)
	spend("token-b", true)
	f.becomes(entry("c", "token-c") + entry("a", "token-a", "rate: 0.001") + entry("b", "token-b", "rate: 0.002"))
	spend("token-a", false)
	spend("token-b", true) // another rate begins anew
	f.becomes("rubbish")
	spend("token-a", false)
	f.becomes(entry("renamed", "token-a", "rate: 0.001") + entry("b", "token-b"))
	spend("token-a", false)
	spend("token-b", true)
	spend("token-b", true) // no rate, no limit
	f.becomes(entry("other", "token-d", "rate: 0.001"))
	spend("token-d", true)
}

// Who is in the file before and after is known all the time.
func TestMayIdentifyWhileTheFileChanges(t *testing.T) {
	f := open(t, entry("a", "token-a", "rate: 1000")+entry("b0", "token-b"))
	done := make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if c, err := f.Identify("token-a"); c.Name() != "a" {
					t.Errorf("%v, %v", c, err)
					return
				}
				_, _ = f.Identify("token-b")
			}
		})
	}
	for i := range 50 {
		content := entry("a", "token-a", "rate: 1000")
		if i%2 == 0 {
			content += entry("b", "token-b")
		}
		if i%5 == 0 {
			content = "rubbish"
		}
		f.becomes(content)
	}
	close(done)
	all.Wait()
	f.becomes(entry("b", "token-b"))
	f.knows(map[string]string{"token-a": "", "token-b": "b"})
}
