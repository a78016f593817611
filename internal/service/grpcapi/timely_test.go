package grpcapi_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/firn-id/firn/api/firnv1"
)

// Headers that do not end within 5 s end their connection, wherever they stop; what is no part of headers may take
// longer.
func TestHalfHeaders(t *testing.T) {
	const preface, settings = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	for name, tt := range map[string]struct {
		sent string
		ends bool
	}{
		"no call":                   {"", false},
		"a part of a frame's head":  {"\x00\x00", true},
		"a part of headers":         {"\x00\x00\x05\x01\x00\x00\x00\x00\x01\x83", true},
		"headers without their end": {"\x00\x00\x01\x01\x00\x00\x00\x00\x01\x83", true},
		"a part of their continuation": {"\x00\x00\x01\x01\x00\x00\x00\x00\x01\x83" +
			"\x00\x00\x05\x09\x04\x00\x00\x00\x01\x86", true},
		"a part of a ping": {"\x00\x00\x08\x06\x00\x00\x00\x00\x00abc", false},
		"a continuation without its end": {"\x00\x00\x01\x01\x00\x00\x00\x00\x01\x83" +
			"\x00\x00\x01\x09\x00\x00\x00\x00\x01\x86", true},
	} {
		besieged(t, func(t *testing.T, h *homes) {
			h.next <- "10.0.0.9:1"
			c, err := h.Dial()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			ended := make(chan error, 1)
			go func() {
				_, err := io.Copy(io.Discard, c)
				ended <- err
			}()
			if _, err := io.WriteString(c, preface+settings+tt.sent[:len(tt.sent)/2]); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if _, err := io.WriteString(c, tt.sent[len(tt.sent)/2:]); err != nil {
				t.Fatal(err)
			}
			time.Sleep(6 * time.Second)
			synctest.Wait()
			select {
			case err := <-ended:
				if !tt.ends {
					t.Errorf("%s: the connection ends: %v", name, err)
				}
			default:
				if tt.ends {
					t.Errorf("%s: the connection goes on", name)
				}
			}
		})
	}
}

// Calls one after the other are no headers that do not end.
func TestTimelyCalls(t *testing.T) {
	besieged(t, func(t *testing.T, h *homes) {
		ids := h.dial(t, "10.0.0.2:1")
		for range 20 {
			if _, err := ids.Next(t.Context(), new(firnv1.NextRequest), grpc.WaitForReady(false)); err != nil &&
				!errors.Is(err, net.ErrClosed) {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
	})
}
