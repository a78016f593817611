package respapi

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/firn-id/firn"
)

// repeating is a connection of a client that says the same again and again, and hears nothing.
type repeating struct {
	script
	line  []byte
	times int
}

func (r *repeating) Read(b []byte) (int, error) {
	if r.times == 0 {
		return 0, io.EOF
	}
	r.times--
	return copy(b, r.line), nil
}

func (r *repeating) Write(b []byte) (int, error) { return len(b), nil }

// What a command costs but for the network.
func BenchmarkCommand(b *testing.B) {
	s := newServer(b, newGenerated(b, firn.Default))
	for _, command := range []string{"INCR", "FIRN.ID"} {
		for _, pipeline := range []int{1, 16, 128} {
			b.Run(fmt.Sprintf("%s/%d", command, pipeline), func(b *testing.B) {
				b.ReportAllocs()
				line := bytes.Repeat([]byte(array(command, "default")), pipeline)
				newConn(s, &repeating{line: line, times: b.N/pipeline + 1}, 1).serve()
			})
		}
	}
	b.Run("another", func(b *testing.B) {
		b.ReportAllocs()
		line := []byte(strings.Repeat(array("PING"), 16))
		newConn(s, &repeating{line: line, times: b.N/16 + 1}, 1).serve()
	})
}
