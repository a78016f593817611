package grpcapi

import (
	"net"
	"time"

	"google.golang.org/grpc/credentials"
)

// Timely returns credentials after whose handshake a connection ends if its client needs more than 5 s for the headers
// of a call: gRPC sets no limit to that.
func Timely(c credentials.TransportCredentials) credentials.TransportCredentials { return timely{c} }

type timely struct {
	credentials.TransportCredentials
}

func (t timely) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, info, err := t.TransportCredentials.ServerHandshake(c)
	if err != nil {
		return c, info, err
	}
	return &timelyConn{Conn: c, headers: headers{preface: len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")}}, info, nil
}

func (t timely) Clone() credentials.TransportCredentials {
	return timely{t.TransportCredentials.Clone()}
}

// timelyConn is a connection of HTTP/2. One goroutine reads it.
type timelyConn struct {
	net.Conn
	headers headers
	late    *time.Timer // closes the connection; nil: no headers are on their way
}

func (c *timelyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	begun := c.headers.read(b[:n]) && err == nil
	if c.late != nil && (!begun || c.headers.ended) {
		c.late.Stop()
		c.late = nil
	}
	if c.late == nil && begun {
		c.late = time.AfterFunc(shakeWithin, func() { _ = c.Close() })
	}
	return n, err
}

// headers follows the frames of a client of HTTP/2 (RFC 9113).
type headers struct {
	preface int     // bytes that are still to come before the first frame
	head    [9]byte // of a frame
	has     int     // bytes of head
	left    int     // bytes of the frame behind its head
	open    bool    // the headers go on in another frame
	ended   bool    // some ended in the bytes that were read last
}

const (
	frameHeaders, frameContinuation = 1, 9
	flagEndHeaders                  = 4
)

// read reads what comes next, and reports whether headers, or the head of any frame, have begun and not ended.
func (h *headers) read(b []byte) (begun bool) {
	h.ended = false
	n := min(h.preface, len(b))
	h.preface -= n
	for b = b[n:]; len(b) > 0; {
		if h.left > 0 {
			n := min(h.left, len(b))
			h.left -= n
			b = b[n:]
		} else {
			n := copy(h.head[h.has:], b)
			h.has += n
			b = b[n:]
			if h.has < len(h.head) {
				break
			}
			h.left = int(h.head[0])<<16 | int(h.head[1])<<8 | int(h.head[2])
		}
		if h.has == len(h.head) && h.left == 0 {
			h.endFrame()
		}
	}
	kind := h.head[3]
	return h.open || h.has > 0 && (h.has < len(h.head) || kind == frameHeaders || kind == frameContinuation)
}

func (h *headers) endFrame() {
	if kind := h.head[3]; kind == frameHeaders || kind == frameContinuation {
		h.open = h.head[4]&flagEndHeaders == 0
	}
	h.has, h.ended = 0, h.ended || !h.open
}
