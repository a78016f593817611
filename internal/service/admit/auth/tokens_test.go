package auth

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/test/logtest"
)

// fileOfTokens is a file of tokens that is in use.
type fileOfTokens struct {
	*Tokens
	t    *testing.T
	path string
	log  logtest.Journal
}

// withTokens runs a test with a file of tokens, in simulated time.
func withTokens(t *testing.T, content string, test func(f *fileOfTokens)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	synctest.Test(t, func(t *testing.T) {
		f := &fileOfTokens{t: t, path: path}
		write(f.t, f.path, content)
		var err error
		if f.Tokens, err = OpenTokens(f.path, f.log.Logger()); err != nil {
			t.Fatal(err)
		}
		test(f)
	})
}

// write puts a file in the place of another, as a whole.
func write(t *testing.T, path, content string) {
	t.Helper()
	part := filepath.Join(filepath.Dir(path), ".part")
	if err := errors.Join(os.WriteFile(part, []byte(content), 0o600), os.Rename(part, path)); err != nil {
		t.Fatal(err)
	}
}

// becomes changes the file, and waits until it is read again.
func (f *fileOfTokens) becomes(content string) {
	f.t.Helper()
	write(f.t, f.path, content)
	time.Sleep(time.Second)
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
	withTokens(t, entry("a", "token-a")+entry("b", "token-b", "sequencers: [x]", "rate: 5"), func(f *fileOfTokens) {
		f.knows(map[string]string{
			"token-a": "a", "token-b": "b", "token-c": "", "": "", "token-a ": "", hashA: "",
			"Token-a": "",
		})
		c, err := f.Identify("token-b")
		if err != nil || c.May(Issue, "x") != nil || c.May(Issue, "y") == nil || c.May(Admin, "x") == nil ||
			c.Spend(5) != nil || c.Spend(1) == nil {
			t.Errorf("b is %+v, %v", c, err)
		}
	})
}

func TestAllowedIsWhatTheEntrySays(t *testing.T) {
	for allow, want := range map[string]Right{
		"issue": Issue, "attach": Attach, "admin": Admin,
		"admin, issue": Issue | Admin, "issue, open, import, order, attach, admin": All, "open": Open,
	} {
		withTokens(t, "- {name: a, sha256: "+hashA+", allow: ["+allow+"]}", func(f *fileOfTokens) {
			if c, err := f.Identify("token-a"); err != nil || c.rights != want {
				t.Errorf("[%s]: %+v, %v; want %v", allow, c, err, want)
			}
		})
	}
}

func TestRefusedTokensAreNotShown(t *testing.T) {
	withTokens(t, entry("a", "token-a"), func(f *fileOfTokens) {
		for token, want := range map[string]string{
			NewToken():                "unknown token: it is not in this node's file of tokens",
			strings.Repeat("x", 4096): "unknown token: it is not in this node's file of tokens",
			strings.Repeat("x", 4097): "the token has 4097 bytes; want at most 4096",
		} {
			if _, err := f.Identify(token); text(err) != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		f.log.Wants(f.t)
	})
}

func TestTokensThatCantBeOpened(t *testing.T) {
	directory := t.TempDir()
	empty := filepath.Join(directory, "empty")
	write(t, empty, "")
	bad := filepath.Join(directory, "bad")
	write(t, bad, "- name: a b")
	for path, want := range map[string]string{
		filepath.Join(directory, "none"): ": no such file or directory",

		empty:     ": no tokens; want at least one, as `firn token` prints it",
		bad:       `: line 1: name: "a b" is not a valid name; want 1 to 100 printable characters without spaces`,
		directory: ": not a regular file; want one",
	} {
		var log logtest.Journal
		if _, err := OpenTokens(path, log.Logger()); text(err) != path+want {
			t.Errorf("%v, want %s%s", err, path, want)
		}
		log.Wants(t) // who gets the error logs it
	}
}

func TestChangedTokensAreReadAgain(t *testing.T) {
	withTokens(t, entry("a", "token-a"), func(f *fileOfTokens) {
		f.becomes(entry("renamed", "token-a") + entry("b", "token-b"))
		f.knows(map[string]string{"token-a": "renamed", "token-b": "b"})
		f.log.Wants(f.t, `level=INFO msg="the tokens were read again"`)
		f.becomes(entry("b", "token-b"))
		f.knows(map[string]string{"token-a": "", "token-b": "b"})
		f.log.Wants(f.t, "the tokens were read again")
		time.Sleep(time.Hour)
		f.knows(map[string]string{"token-a": "", "token-b": "b"})
		f.log.Wants(f.t)
	})
}

func TestTokensAreLookedAtOnceASecond(t *testing.T) {
	withTokens(t, entry("a", "token-a"), func(f *fileOfTokens) {
		write(f.t, f.path, entry("b", "token-b"))
		time.Sleep(time.Second - 1)
		f.knows(map[string]string{"token-a": "a", "token-b": ""})
		time.Sleep(time.Nanosecond)
		f.knows(map[string]string{"token-a": "", "token-b": "b"})
		write(f.t, f.path, entry("c", "token-c"))
		time.Sleep(time.Second - 1)
		f.knows(map[string]string{"token-b": "b"})
		time.Sleep(time.Nanosecond)
		f.knows(map[string]string{"token-b": ""})
	})
}

// What went wrong with a file is logged once per change, and nobody is shut out.
func TestBadTokensDoNotTakeThePlaceOfGoodOnes(t *testing.T) {
	withTokens(t, entry("a", "token-a"), func(f *fileOfTokens) {
		a := map[string]string{"token-a": "a", "token-b": ""}
		secret := NewToken()
		for _, bad := range []struct{ content, logged string }{
			{"", "no tokens"},
			{"- name: b\n  sha256: " + secret, "a token, which must stay secret"},
			{secret + "\n" + entry("b", "token-b"), "not YAML"},
			{entry("b", "token-b", "rate: 0"), "rate: 0 is not a valid rate"},
			// another change, with the same mistake
			{entry("b", "token-b", "rate: 0", ""), "rate: 0 is not a valid rate"},
		} {
			f.becomes(bad.content)
			f.knows(a)
			lines := strings.Join(f.log.Take(), "\n")
			if !strings.Contains(lines, bad.logged) || !strings.Contains(lines, "level=ERROR") ||
				!strings.Contains(lines, f.path) ||
				strings.Count(lines, "\n") != 0 || strings.Contains(lines, secret[5:13]) {
				t.Errorf("%q is logged as\n%s\nwant one line with %q", bad.content, lines, bad.logged)
			}
			time.Sleep(time.Minute)
			f.knows(a)
			f.log.Wants(f.t)
		}
		if err := os.Remove(f.path); err != nil {
			t.Fatal(err)
		}
		for _, logged := range [][]string{{"no such file"}, nil, nil} {
			time.Sleep(time.Second)
			f.knows(a)
			f.log.Wants(f.t, logged...)
		}
		if err := os.Mkdir(f.path, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, logged := range [][]string{{"not a regular file"}, nil} {
			time.Sleep(time.Second)
			f.knows(a)
			f.log.Wants(f.t, logged...)
		}
		if err := os.Remove(f.path); err != nil {
			t.Fatal(err)
		}
		f.becomes(entry("a", "token-a")) // as it was in the beginning
		f.knows(a)
		f.log.Wants(f.t, "were read again")
		f.becomes(entry("b", "token-b"))
		f.knows(map[string]string{"token-a": "", "token-b": "b"})
	})
}

// Kubernetes keeps files behind two links, and switches the second one.
func TestTokensBehindLinksThatAreSwitched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fileOfTokens{t: t}
		directory, same := t.TempDir(), time.Now()
		in := func(name string) string { return filepath.Join(directory, name) }
		switchTo := func(version, content string) {
			t.Helper()
			err := errors.Join(
				os.Mkdir(in(version), 0o700),
				os.WriteFile(filepath.Join(in(version), "tokens.yaml"), []byte(content), 0o600),
				// nothing but the link tells them apart
				os.Chtimes(filepath.Join(in(version), "tokens.yaml"), same, same),
				os.Symlink(version, in("..part")),
				os.Rename(in("..part"), in("..data")))
			if err != nil {
				t.Fatal(err)
			}
		}
		switchTo("..1", entry("a", "token-a"))
		if err := os.Symlink(filepath.Join("..data", "tokens.yaml"), in("tokens.yaml")); err != nil {
			t.Fatal(err)
		}
		var err error
		if f.Tokens, err = OpenTokens(in("tokens.yaml"), f.log.Logger()); err != nil {
			t.Fatal(err)
		}
		switchTo("..2", entry("b", "token-b"))
		time.Sleep(time.Second)
		f.knows(map[string]string{"token-a": "", "token-b": "b"})
	})
}

func TestLimitersGoOnAcrossChanges(t *testing.T) {
	withTokens(t, entry("a", "token-a", "rate: 0.001")+entry("b", "token-b", "rate: 0.001"), func(f *fileOfTokens) {
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
		spend("token-b", true) // another rate begins again
		f.becomes("rubbish")
		spend("token-a", false)
		f.becomes(entry("renamed", "token-a", "rate: 0.001") + entry("b", "token-b"))
		spend("token-a", false)
		spend("token-b", true)
		spend("token-b", true) // no rate, no limit
		f.becomes(entry("other", "token-d", "rate: 0.001"))
		spend("token-d", true)
	})
}

// Who is in the file before and after is known all the time.
func TestMayIdentifyWhileTheFileChanges(t *testing.T) {
	withTokens(t, entry("a", "token-a", "rate: 1000")+entry("b0", "token-b"), func(f *fileOfTokens) {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 100 {
					if c, err := f.Identify("token-a"); c.Name() != "a" {
						t.Errorf("%v, %v", c, err)
						return
					}
					_, _ = f.Identify("token-b")
					time.Sleep(500 * time.Millisecond) // they wake together, as the file changes
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
		all.Wait()
		f.becomes(entry("b", "token-b"))
		f.knows(map[string]string{"token-a": "", "token-b": "b"})
	})
}
