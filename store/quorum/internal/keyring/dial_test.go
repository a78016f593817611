package keyring

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
)

// answer listens, and has each connection answered. It returns the address.
func answer(t *testing.T, do func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				do(c)
			}()
		}
	}()
	return l.Addr().String()
}

func serveTLS(config *tls.Config, protocols ...string) func(net.Conn) {
	config.NextProtos = protocols
	return func(c net.Conn) {
		s := tls.Server(c, config)
		_, _ = io.Copy(s, s)
	}
}

// says refuses connections in these words.
func says(config *tls.Config, words string) func(net.Conn) {
	config.NextProtos = []string{Refused}
	return func(c net.Conn) {
		s := tls.Server(c, config)
		_, _ = io.WriteString(s, words)
		_ = s.Close()
	}
}

func TestDial(t *testing.T) {
	ring := ringOf(t, "a")
	address := answer(t, serveTLS(ring.Server(), "h2", "firn-quorum/1"))
	c, err := ring.Dial(t.Context(), address, "firn-quorum/1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.ConnectionState().NegotiatedProtocol; got != "firn-quorum/1" {
		t.Errorf("the protocol is %q", got)
	}
	got := make([]byte, 5)
	if _, err := io.WriteString(c, "hello"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v; want it back", got, err)
	}
}

// Whatever listens at an address, the error says in words what is wrong with it, and its cause can be found.
func TestDialExplains(t *testing.T) {
	ring := ringOf(t, "a")
	hangs := make(chan struct{})
	defer close(hangs)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	for _, c := range []struct {
		name, address, want string
	}{
		{"plain HTTP", answer(t, func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
			_, _ = io.Copy(io.Discard, c)
		}), "ADDRESS speaks no TLS; want the address of a machine of the quorum: is it that of another program?"},
		{"another key", answer(t, serveTLS(ringOf(t, "b").Server(), "firn-quorum/1")), "ADDRESS has another key (" +
			keysOf("b").Fingerprints() + ") than this machine (" + keysOf("a").Fingerprints() + ")"},
		{
			"no such protocol", answer(t, serveTLS(ring.Server(), "h2")),
			"ADDRESS speaks TLS, but not as a machine of a quorum does",
		},
		{
			"no protocols", answer(t, serveTLS(ring.Server())),
			`ADDRESS speaks ""; want "firn-quorum/1": is it the address of another program?`,
		},
		{"it refuses", answer(t, says(ring.Server(), "it is full")), "ADDRESS refuses the connection: it is full"},
		{
			"it refuses without a word", answer(t, says(ring.Server(), "")),
			"ADDRESS closed the connection before it was established",
		},
		{"it closes", answer(t, func(net.Conn) {}), "ADDRESS closed the connection before it was established"},
		{"nobody", free.Addr().String(), "dial tcp ADDRESS: connect: connection refused"},
	} {
		conn, err := ring.Dial(t.Context(), c.address, "firn-quorum/1")
		if err == nil {
			conn.Close()
			t.Errorf("%s: there is no error", c.name)
			continue
		}
		if got := strings.ReplaceAll(err.Error(), c.address, "ADDRESS"); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s; want %s", c.name, got, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = ring.Dial(ctx, answer(t, func(net.Conn) {
		cancel()
		<-hangs
	}), "firn-quorum/1")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v; want the context to end it", err)
	}
	if ring.Explain(nil, "ids-1:7420") != nil {
		t.Error("no error is explained")
	}
	for text, err := range map[string]error{
		"ids-1:7420 did not answer in time":                          context.DeadlineExceeded,
		"ids-1:7420: lookup ids-1: no such host":                     &net.DNSError{Err: "no such host", Name: "ids-1"},
		"ids-1:7420 closed the connection before it was established": syscall.ECONNRESET,

		"ids-1:7420 has another key than this machine (" + keysOf("a").Fingerprints() +
			"); give all machines the same --quorum-key-file": &net.OpError{
			Op: "remote error", Err: errors.New("tls: bad certificate"),
		},
	} {
		if got := ring.Explain(err, "ids-1:7420"); got.Error() != text || !errors.Is(got, err) {
			t.Errorf("%q of %v; want %q", got, err, text)
		}
	}
}
