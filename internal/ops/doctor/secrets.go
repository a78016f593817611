package doctor

import (
	stdbytes "bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Secrets are texts that must not be in what is shown to others. The zero value has none.
type Secrets struct {
	forms map[string]bool
}

const (
	shortest = 6           // bytes; shorter ones are in ordinary words, too
	removed  = "(removed)" // stands for a secret
)

// Add adds a secret of at least 6 bytes, as it is and in the forms in which programs write it: as part of a URL, of
// JSON, of a quoted text, in hexadecimal digits, and in base64, alone or within more.
func (s *Secrets) Add(secret string) {
	if len(secret) < shortest {
		return
	}
	if s.forms == nil {
		s.forms = map[string]bool{}
	}
	quoted, _ := json.Marshal(secret) // a string has no error
	for _, form := range []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), strings.Trim(string(quoted), `"`),
		strings.Trim(strconv.Quote(secret), `"`),
		hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))),
	} {
		s.forms[form] = true
	}
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 { // bytes before it in what is encoded
			all := alphabet.EncodeToString(append(make([]byte, before), secret...))
			if own := all[(8*before+5)/6 : 8*(before+len(secret))/6]; len(own) >= shortest {
				s.forms[own] = true
			}
		}
	}
}

// AddPassword adds the first line of a file; a file that can't be read, or an empty path, adds none.
func (s *Secrets) AddPassword(path string) {
	line, _, _ := strings.Cut(string(contents(path)), "\n")
	s.Add(strings.TrimSpace(line))
}

// word matches what may be a key or a token.
var word = regexp.MustCompile(`[A-Za-z0-9+/=_-]{16,}`)

// AddKeys adds the keys and tokens in a file, in PEM or as words, with what those in base64 stand for; a file that
// can't be read, or an empty path, adds none.
func (s *Secrets) AddKeys(path string) {
	data := contents(path)
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		s.Add(string(block.Bytes))
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "-----") || strings.HasPrefix(line, "#") {
			continue
		}
		for _, key := range word.FindAllString(line, -1) {
			s.Add(key)
			if raw, err := base64.StdEncoding.DecodeString(key); err == nil {
				s.Add(string(raw))
			}
		}
	}
}

// password matches a password in a URL.
var password = regexp.MustCompile(`://[^/?#\s]*?:([^\s]+)@|[?&][^=&]*(?i:password)[^=&]*=([^&\s]+)`)

// AddURL adds the passwords in a text with URLs, as they are written there and as they are meant.
func (s *Secrets) AddURL(text string) {
	for _, found := range password.FindAllStringSubmatch(text, -1) {
		secret := cmp.Or(found[1], found[2])
		s.Add(secret)
		if meant, err := url.PathUnescape(secret); err == nil {
			s.Add(meant)
		}
	}
}

// Remove returns data with something else in the place of each secret.
func (s *Secrets) Remove(data []byte) []byte {
	longest := slices.SortedFunc(maps.Keys(s.forms), func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	for _, form := range longest {
		data = stdbytes.ReplaceAll(data, []byte(form), []byte(removed))
	}
	return data
}

func contents(path string) []byte {
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return data
}
