package keyring

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// keysOf returns keys that are the same for the same letters.
func keysOf(letters string) (keys Keys) {
	for _, l := range letters {
		k := Key{since: 1_800_000_000 + int64(l)}
		copy(k.secret[:], strings.Repeat(string(l), secretSize))
		keys = append(keys, k)
	}
	return keys
}

// A key is read as it was written, and has the time at which it was made.
func TestKeysAreReadAsWritten(t *testing.T) {
	for _, at := range []time.Time{time.Unix(0, 0), time.Unix(1_800_000_000, 999_999_999), time.Unix(lastSecond, 0)} {
		k := NewKey(at)
		got, err := Parse(k.String())
		if err != nil || got != k {
			t.Errorf("%s: %v; want it as it was", k, err)
		}
		c := k.ForClients()
		if got, err := Parse(c.String()); err != nil || got != c || !c.IsClient() || k.IsClient() ||
			c.Fingerprint() != k.Fingerprint() || c.ForClients() != c {
			t.Errorf("%s for clients is %s, and is read as %s, %v", k, c, got, err)
		}
		if since := (Keys{got}).Since(); !since.Equal(at.Truncate(time.Second)) {
			t.Errorf("made at %v, and says %v", at, since)
		}
	}
	one, other := NewKey(time.Unix(1, 0)), NewKey(time.Unix(1, 0))
	if one == other || one.Fingerprint() == other.Fingerprint() {
		t.Errorf("two keys are the same: %s, %s", one, other)
	}
	if k := NewKey(time.Time{}); k.since != 0 {
		t.Errorf("a key from before 1970 has the time %d; want 0", k.since)
	}
}

// The text of a key never changes its meaning: machines of two versions would refuse each other.
func TestAKeyMeansTheSameForEver(t *testing.T) {
	const text = "firn1-6b49d261-mfqwcylbmfqwcylbmfqwcylbmfqwcylbmfqwcylbmfqwcylbmfq7m2bj"
	const forClients = "firn1-client-6b49d261-ad7lekpcevjzt646a36bwcibbg766axpzjp6xfzoxjj2zudzv4v77oad7w5pv3sjp2axtn4tbmr33ytdzvlpdevzkaoui4qbcz5acerpfwqq"
	k := keysOf("a")[0]
	if got := k.String(); got != text {
		t.Errorf("it is written %s; want %s", got, text)
	}
	if got := k.ForClients().String(); got != forClients {
		t.Errorf("that for clients is written %s; want %s", got, forClients)
	}
	if got, want := k.Fingerprint(), "f15e7433"; got != want {
		t.Errorf("its fingerprint is %s; want %s", got, want)
	}
}

// A key that was cut, or mistyped in any place, is refused, and the error does not show it.
func TestMistypedKeysAreRefused(t *testing.T) {
	refuseMistyped(t, keysOf("k")[0].String())
	refuseMistyped(t, keysOf("k")[0].ForClients().String())
}

func refuseMistyped(t *testing.T, text string) {
	refused := func(wrong string) {
		t.Helper()
		_, err := Parse(wrong)
		if err == nil {
			t.Errorf("%s is taken for %s", wrong, text)
			return
		}
		for i := range len(text) - 20 {
			if strings.Contains(err.Error(), text[i:i+20]) {
				t.Fatalf("the error shows the key: %v", err)
			}
		}
	}
	for i := range len(text) {
		refused(text[:i])
		refused(text[i+1:])
		refused(text[:i] + text[i+1:])
		for _, c := range []byte("0a7zA-= \x00\xff") {
			if text[i] != c {
				refused(text[:i] + string(c) + text[i+1:])
			}
		}
		if i+1 < len(text) && text[i] != text[i+1] {
			refused(text[:i] + string([]byte{text[i+1], text[i]}) + text[i+2:])
		}
	}
	refused(text + "a")
	refused(strings.ToUpper(text))
	refused(strings.Replace(text, "firn1-", "firn1-0", 1))
	refused(strings.Repeat(text, 1000))
}

func TestParseFile(t *testing.T) {
	all := keysOf("abcde")
	line := func(i int) string { return all[i].String() + "\n" }
	for _, c := range []struct {
		name, text string
		want       Keys
		err        string
	}{
		{"one", line(0), all[:1], ""},
		{"no end of line", all[0].String(), all[:1], ""},
		{"comments", "# the first\r\n\r\n  " + all[0].String() + " \r\n\n#\n" + line(1), all[:2], ""},
		{"four", line(0) + line(1) + line(2) + line(3), all[:4], ""},
		{
			"five", line(0) + line(1) + line(2) + line(3) + line(4), nil,
			"5 keys; want 1 to 4, one in each line, as firn quorum key prints them",
		},
		{"none", "# nothing\n", nil, "0 keys; want 1 to 4"},
		{
			"twice", line(0) + line(1) + line(0), nil,
			"line 3: key " + all[0].Fingerprint() + " is there twice; want it once",
		},
		{
			"cut", "#\n" + line(0) + line(1)[:60] + "\n", nil,
			"line 3: the key has 45 characters after its last hyphen; want 56: is it complete?",
		},
		{"other", "secret\n", nil, "line 1: not a key; want firn1-"},
		{"of clients", all[0].ForClients().String(), all[:1].ForClients(), ""},
		{
			"of both", line(0) + all[1].ForClients().String(), nil,
			"line 2: one key is for machines and another for clients; want one kind",
		},
		{"token", "firn_abc-def\n", nil, "line 1: not a key; want firn1-"},
	} {
		got, err := ParseFile([]byte(c.text))
		if !slices.Equal(got, c.want) || (err == nil) != (c.err == "") ||
			err != nil && !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%s: %d keys, %v; want %d, %q", c.name, len(got), err, len(c.want), c.err)
		}
	}
}

// The key that is added for a change of keys has the time of the oldest: without the oldest, the cluster is as old as
// before.
func TestAnotherKeyIsAsOldAsTheOldest(t *testing.T) {
	keys := keysOf("cab")
	another := keys.Another()
	if got, want := (Keys{another}).Since(), keysOf("a").Since(); !got.Equal(want) {
		t.Errorf("it is of %v; want %v", got, want)
	}
	if slices.Contains(keys, another) {
		t.Error("it is one of those before")
	}
	if !(Keys{}).Since().IsZero() {
		t.Error("there is a time without keys")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(keysOf("a")[0].String()))
	f.Add([]byte("# two\n" + keysOf("b")[0].String() + "\n" + keysOf("c")[0].String()))
	f.Add([]byte(keysOf("a")[0].ForClients().String()))
	f.Add([]byte("firn1--\nfirn1-0-"))
	f.Add([]byte("firn1-6b49d261-" + strings.Repeat("a", 56)))
	f.Add([]byte("firn1-6b49d261-" + strings.Repeat("\r", 8) + strings.Repeat("a", 48)))
	f.Fuzz(func(t *testing.T, text []byte) {
		if k, err := Parse(string(text)); err == nil && k.String() != string(text) {
			t.Errorf("%q is taken for %s", text, k)
		}
		keys, err := ParseFile(text)
		if err != nil {
			return
		}
		var again bytes.Buffer
		for _, k := range keys {
			again.WriteString(k.String() + "\n")
		}
		if got, err := ParseFile(again.Bytes()); err != nil || !slices.Equal(got, keys) || len(keys) < 1 ||
			len(keys) > MaxKeys {
			t.Errorf("%q: %d keys become %d, %v", text, len(keys), len(got), err)
		}
	})
}
