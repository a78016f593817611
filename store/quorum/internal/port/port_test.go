package port

import (
	"crypto/tls"
	"io"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/firn-id/firn/store/quorum/internal/keyring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newRing(t testing.TB) *keyring.Ring {
	t.Helper()
	r, err := keyring.FromKeys(keyring.Keys{keyring.NewKey(time.Unix(1_800_000_000, 0))})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func listen(t testing.TB, ring *keyring.Ring, log *slog.Logger) *Port {
	t.Helper()
	p, err := Listen("127.0.0.1:0", ring, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// A connection reaches the handler of its protocol.
func TestEveryProtocolHasItsHandler(t *testing.T) {
	ring := newRing(t)
	p := listen(t, ring, slog.New(slog.DiscardHandler))
	for _, protocol := range []string{Peers, Clients, Exchange} {
		p.Handle(protocol, func(c *tls.Conn) { _, _ = io.WriteString(c, "for "+protocol) })
	}
	for offered, want := range map[string]string{"": "for ", "http/1.1": "for ", "h2": "for h2", Exchange: "for firn-quorum/1"} {
		config := ring.Client(p.Addr())
		if offered != "" {
			config.NextProtos = []string{offered}
		}
		c, err := tls.Dial("tcp", p.Addr(), config)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(c)
		c.Close()
		if string(got) != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", offered, got, err, want)
		}
	}
}
