package grpcapi_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/grpcapi"
)

// asks begins a connection of HTTP/2 with so many calls for an ID, none of whose answers may be sent: their windows are
// empty.
func asks(t *testing.T, c net.Conn, calls int) {
	t.Helper()
	frame := func(kind, flags byte, stream int, payload string) string {
		return fmt.Sprintf("%s%c%c%s", []byte{0, byte(len(payload) >> 8), byte(len(payload))}, kind, flags,
			[]byte{0, 0, byte(stream >> 8), byte(stream)}) + payload
	}
	text := func(s string) string { return string(rune(len(s))) + s }
	headers := "\x83\x86\x04" + text(firnv1.Firn_Next_FullMethodName) + "\x01" + text("firn") +
		"\x00" + text("content-type") + text("application/grpc") + "\x00" + text("te") + text("trailers")
	var b strings.Builder
	b.WriteString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, "\x00\x04\x00\x00\x00\x00"))
	for i := range calls {
		b.WriteString(frame(1, 4, 2*i+1, headers) + frame(0, 1, 2*i+1, "\x00\x00\x00\x00\x00"))
	}
	go func() {
		_, _ = io.Copy(io.Discard, c) // what is sent all the same
	}()
	if _, err := io.WriteString(c, b.String()); err != nil {
		t.Error(err)
	}
}

// A call counts until its answer is taken, so that there are only so many answers that nobody takes; and the connection
// loses them after a minute.
func TestUntakenIDs(t *testing.T) {
	besieged(t, func(t *testing.T, h *homes) {
		const untaken = calls.DefaultMaxCalls / 8 * 7 // as many as an address may have
		for i := range untaken/100 + 1 {
			h.next <- fmt.Sprintf("10.0.0.9:%d", i+1)
			c, err := h.Dial()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			asks(t, c, 100)
		}
		time.Sleep(time.Second)
		ask := func(from string) codes.Code {
			_, err := h.dial(t, from).Next(t.Context(), &firnv1.NextRequest{})
			return status.Code(err)
		}
		if got := ask("10.0.0.2:1"); got != codes.OK {
			t.Errorf("another caller gets %v, want OK", got)
		}
		if got := ask("10.0.0.9:8"); got != codes.ResourceExhausted {
			t.Errorf("beside %d answers that nobody takes, the next gets %v; want ResourceExhausted", untaken, got)
		}
		time.Sleep(grpcapi.TakeWithin)
		if got := ask("10.0.0.9:9"); got != codes.OK {
			t.Errorf("after the connections were closed, a caller gets %v, want OK", got)
		}
	})
}
