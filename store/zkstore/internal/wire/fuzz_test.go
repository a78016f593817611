package wire

import (
	"bytes"
	"strings"
	"testing"
)

// Whatever a server answers, it is taken apart or refused, and takes no more memory than it has bytes.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x01a"))
	f.Add(bytes.Repeat([]byte{0}, 100))
	f.Add([]byte{
		0, 0, 0, 13, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 255, 255, 255, 255, 255, 255, 255, 155, 255, 255,
		255, 255, 1, 255, 255, 255, 255,
	})
	f.Add([]byte{127, 255, 255, 255, 0, 0, 0, 1, 'a'})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, r := range []Request{
			Exists("/", false), Get("/"), Children("/", false), Sync("/"), Create("/", nil, Persistent, false),
			Set("/", nil, 0),
			Delete("/", 0), Multi(), Multi(Create("/a", nil, Persistent, false), Set("/a", nil, 0), Check("/a", 0)),
			{code: codeSASL},
		} {
			in := reader{buf: bytes.Clone(data)}
			var reply Reply
			r.decode(&in, &reply)
			size := len(reply.Data) + len(reply.Path) + len(reply.Parts) + len(strings.Join(reply.Children, ""))
			if in.err == nil && r.code == codeMulti && len(reply.Parts) != len(r.parts) {
				t.Errorf("%d parts; want %d", len(reply.Parts), len(r.parts))
			}
			if in.err == nil && size > len(data) {
				t.Errorf("%d bytes became %d", len(data), size)
			}
		}
	})
}

// What is quoted comes back from between other directives.
func FuzzDirectives(f *testing.F) {
	f.Add(`plain`)
	f.Add(`a "quoted\ word", and more=`)
	f.Fuzz(func(t *testing.T, s string) {
		_ = directives(s)
		s = strings.TrimSpace(s)
		if got := directives("first=1,second=" + quote(s) + ",third=3"); got["second"] != s || got["first"] != "1" ||
			got["third"] != "3" {
			t.Errorf("%q came back as %q", s, got)
		}
	})
}
