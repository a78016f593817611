package etcdserver

import (
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"
)

// TestCallsOfAConnectionAreBounded: the server tells its clients, in the first frame that it sends, to have fewer calls at a
// time than those at which gRPC stops reading.
func TestCallsOfAConnectionAreBounded(t *testing.T) {
	dir, err := OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	s, err := dir.Start(Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	conn, err := net.Dial("unix", s.Socket())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	const settings, maxConcurrentStreams = 4, 3 // RFC 9113, 6.5
	if _, err := conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		t.Fatal(err)
	}
	var header [9]byte
	if _, err := io.ReadFull(conn, header[:]); err != nil || header[3] != settings {
		t.Fatalf("the frame % x, %v; want settings", header, err)
	}
	frame := make([]byte, int(header[0])<<16|int(header[1])<<8|int(header[2]))
	if _, err := io.ReadFull(conn, frame); err != nil {
		t.Fatal(err)
	}
	calls := uint32(0)
	for ; len(frame) >= 6; frame = frame[6:] {
		if binary.BigEndian.Uint16(frame) == maxConcurrentStreams {
			calls = binary.BigEndian.Uint32(frame[2:])
		}
	}
	if calls < 1 || calls >= 100 {
		t.Errorf("a connection carries %d calls at a time, where 0 is any number; want 1 to 99", calls)
	}
}
