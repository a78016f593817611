package port

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/firn-id/firn/internal/test/logtest"
	"github.com/firn-id/firn/store/quorum/internal/keyring"
)

const patience = 30 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newRing(t testing.TB) *keyring.Ring {
	t.Helper()
	r, err := keyring.FromKeys(keyring.Keys{keyring.NewKey(time.Unix(1_800_000_000, 0))})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func listen(t testing.TB, ring *keyring.Ring) *Port {
	t.Helper()
	p, err := Listen("127.0.0.1:0", ring, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// dial connects to a port with a protocol; empty: none.
func dial(t testing.TB, p *Port, ring *keyring.Ring, protocol string) *tls.Conn {
	t.Helper()
	config := ring.Client(p.Addr())
	if protocol != "" {
		config.NextProtos = []string{protocol}
	}
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", p.Addr(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c
}

// echo sends back what it gets.
func echo(c *tls.Conn) { _, _ = io.Copy(c, c) }

// echoes tells whether the other side sends back what it gets.
func echoes(c net.Conn) bool {
	if _, err := io.WriteString(c, "?"); err != nil {
		return false
	}
	got := make([]byte, 1)
	_, err := io.ReadFull(c, got)
	return err == nil && got[0] == '?'
}

// ended tells whether the other side closes the connection without a word.
func ended(c net.Conn) bool {
	n, err := c.Read(make([]byte, 1))
	return n == 0 && err != nil && !errors.Is(err, syscall.ETIMEDOUT) && !isTimeout(err)
}

func isTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

// A connection reaches the handler that its protocol has now.
func TestEveryProtocolHasItsHandler(t *testing.T) {
	ring := newRing(t)
	p := listen(t, ring)
	for _, protocol := range []string{Peers, Clients, Exchange} {
		p.Handle(protocol, func(c *tls.Conn) { _, _ = io.WriteString(c, "for "+protocol) })
	}
	says := func(offered, want string) {
		t.Helper()
		got, err := io.ReadAll(dial(t, p, ring, offered))
		if string(got) != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", offered, got, err, want)
		}
	}
	says("", "for ")
	says("http/1.1", "for ")
	says("h2", "for h2")
	says("firn-quorum/1", "for firn-quorum/1")
	p.Handle(Clients, func(c *tls.Conn) { _, _ = io.WriteString(c, "replaced") })
	says("h2", "replaced")
	open := make(chan struct{})
	p.Handle(Peers, func(c *tls.Conn) {
		close(open)
		echo(c)
	})
	served := dial(t, p, ring, "")
	<-open
	p.Handle(Peers, nil)
	if !ended(dial(t, p, ring, "")) {
		t.Error("there is no handler, and the connection stays")
	}
	if !echoes(served) {
		t.Error("a connection that was being served ended with its handler")
	}
	says("h2", "replaced")
}

// Close ends whatever is going on: connections that are served, those in their handshake, and the listener.
func TestClose(t *testing.T) {
	ring := newRing(t)
	p := listen(t, ring)
	begun, returned := make(chan struct{}, 2), make(chan struct{}, 2)
	p.Handle(Clients, func(c *tls.Conn) {
		begun <- struct{}{}
		echo(c)
		returned <- struct{}{}
	})
	one, other := dial(t, p, ring, "h2"), dial(t, p, ring, "h2")
	silent, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_ = silent.SetDeadline(time.Now().Add(patience))
	<-begun
	<-begun
	p.Close()
	if len(returned) != 2 {
		t.Errorf("%d of 2 handlers have returned", len(returned))
	}
	if !ended(one) || !ended(other) || !ended(silent) {
		t.Error("a connection is open")
	}
	if c, err := net.Dial("tcp", p.Addr()); err == nil {
		c.Close()
		t.Error("the port is open")
	}
	p.Close() // again
}

func TestListenErrors(t *testing.T) {
	p := listen(t, newRing(t))
	if other, err := Listen(p.Addr(), newRing(t), slog.New(slog.DiscardHandler)); err == nil {
		other.Close()
		t.Error("two listen at one address")
	}
}

// world is a port that is reached without a network, in a bubble of synctest.
type world struct {
	*Port
	t    *testing.T
	ring *keyring.Ring
	log  logtest.Journal
	come chan net.Conn
	fail chan error
	done chan struct{}
	once sync.Once
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, ring: newRing(t), come: make(chan net.Conn), fail: make(chan error), done: make(chan struct{})}
	w.Port = serve(w, w.ring, w.log.Logger())
	t.Cleanup(w.Port.Close)
	return w
}

// world is the listener of its port.
func (w *world) Accept() (net.Conn, error) {
	select {
	case c := <-w.come:
		return c, nil
	case err := <-w.fail:
		return nil, err
	case <-w.done:
		return nil, net.ErrClosed
	}
}

func (w *world) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 7420} }

func (w *world) Close() error {
	w.once.Do(func() { close(w.done) })
	return nil
}

// from is a connection from an address.
type from struct {
	net.Conn
	host byte
}

func (f from) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(10, 0, 0, f.host), Port: 40000}
}

// connect has a connection come from the host 10.0.0.n.
func (w *world) connect(n byte) net.Conn {
	here, there := net.Pipe()
	w.t.Cleanup(func() { here.Close() })
	w.come <- from{there, n}
	return here
}

// shake has a client connect and shake hands.
func (w *world) shake(n byte, change func(*tls.Config)) (*tls.Conn, error) {
	config := w.ring.Client("10.0.0.1:7420")
	config.NextProtos = []string{"h2"}
	if change != nil {
		change(config)
	}
	c := tls.Client(w.connect(n), config)
	return c, c.Handshake()
}

// Strangers are refused, and the log says who, and why.
func TestStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Handle(Clients, echo)
		honest, err := w.shake(2, nil)
		if err != nil || !echoes(honest) {
			t.Fatal("who has the key is not admitted:", err)
		}
		other := newRing(t)
		for n, c := range []struct {
			says string
			come func(n byte)
		}{
			{"it showed no certificate", func(n byte) {
				c, _ := w.shake(n, func(c *tls.Config) { c.GetClientCertificate = nil })
				if !ended(c) {
					t.Error("a connection without a certificate stays")
				}
			}},
			{"it has another key", func(n byte) {
				c, _ := w.shake(n, func(c *tls.Config) {
					c.GetClientCertificate = other.Client("").GetClientCertificate
				})
				if !ended(c) {
					t.Error("a connection with another key stays")
				}
			}},
			{"it speaks no TLS", func(n byte) {
				c := w.connect(n)
				go func() { _, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: ids-1\r\n\r\n") }()
				_, _ = io.Copy(io.Discard, c)
			}},
			{"it did not finish the handshake in time", func(n byte) {
				began := time.Now()
				if c := w.connect(n); !ended(c) || time.Since(began) != handshakeLimit {
					t.Errorf("a silent connection stays for %v; want %v", time.Since(began), handshakeLimit)
				}
			}},
			{"it did not finish the handshake in time", func(n byte) { // it sends a byte each second
				c := w.connect(n)
				for _, b := range []byte{22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3} {
					time.Sleep(time.Second - 1)
					if _, err := c.Write([]byte{b}); err != nil {
						return
					}
				}
				t.Error("a slow connection stays")
			}},
			{"it closed the connection before it was established", func(n byte) { w.connect(n).Close() }},
			{"it speaks an older version of TLS than 1.3", func(n byte) {
				_, _ = w.shake(n, func(c *tls.Config) {
					c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
				})
			}},
			{"it wants a protocol that is not spoken here", func(n byte) {
				_, _ = w.shake(n, func(c *tls.Config) { c.NextProtos = []string{"smtp"} })
			}},
		} {
			w.log.Take()
			time.Sleep(time.Minute)
			n := byte(n + 10)
			c.come(n)
			synctest.Wait()
			w.log.Wants(t,
				fmt.Sprintf("level=WARN msg=\"refused a connection to the quorum\" remote=10.0.0.%d:40000 why=%q",
					n, c.says))
		}
		if !echoes(honest) {
			t.Error("who had the key lost the connection")
		}
	})
}

// The log names the key that a stranger seems to have, and does not repeat all that it says.
func TestTheLogNamesTheOtherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		key := keyring.NewKey(time.Unix(1_800_000_000, 0))
		other, err := keyring.FromKeys(keyring.Keys{key})
		if err != nil {
			t.Fatal(err)
		}
		c, _ := w.shake(9, func(c *tls.Config) { c.GetClientCertificate = other.Client("").GetClientCertificate })
		_ = ended(c)
		synctest.Wait()
		lines := w.log.Take()
		if len(lines) != 1 || !strings.HasSuffix(lines[0], " key="+key.Fingerprint()) || len(lines[0]) > 500 {
			t.Errorf("the log says %q; want the key %s at the end", lines, key.Fingerprint())
		}
	})
}

// Random bytes end with an error, and with nothing else.
func TestRandomBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for i := range 200 {
			c := w.connect(9)
			text := bytes.Repeat([]byte{22, 3, byte(i), 0, byte(i * 7)}, i%50+1)
			go func() { _, _ = c.Write(text) }()
			_, _ = io.Copy(io.Discard, c)
		}
		synctest.Wait()
		if len(w.handshakes)+len(w.established) != 0 {
			t.Errorf("%d handshakes and %d connections are left", len(w.handshakes), len(w.established))
		}
	})
}

// Thousands of refusals are one line a minute for each reason, and one that counts the others.
func TestRefusalsAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 100 {
			w.connect(9).Close()
		}
		synctest.Wait()
		c := w.connect(9)
		go func() { _, _ = io.WriteString(c, "HELO example.com\r\n") }()
		_, _ = io.Copy(io.Discard, c)
		synctest.Wait()
		w.log.Wants(t, "it closed the connection", "it speaks no TLS")
		time.Sleep(time.Minute)
		synctest.Wait()
		w.log.Wants(t, "left_out=99")
	})
}

// Ten thousand that say nothing do not keep those out who have the key: the oldest handshake of theirs makes room for a
// new one, and never that of a host with fewer, however long it takes.
func TestTenThousandSilentStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Handle(Clients, echo)
		honest, err := w.shake(2, nil)
		if err != nil {
			t.Fatal(err)
		}
		slow := w.connect(4)
		const strangers = 10_000
		var all []net.Conn
		for i := range strangers {
			all = append(all, w.connect(9))
			if i%1000 == 500 {
				if c, err := w.shake(3, nil); err != nil || !echoes(c) {
					t.Fatalf("after %d strangers, who has the key is not admitted: %v", i, err)
				}
			}
		}
		synctest.Wait()
		w.mu.Lock()
		if n := len(w.handshakes); n != maxHandshakes {
			t.Errorf("there are %d handshakes at a time; want %d", n, maxHandshakes)
		}
		w.mu.Unlock()
		now := time.Now()
		const left = maxHandshakes - 1 // the other one is slow
		for _, c := range all[:strangers-left] {
			if !ended(c) || !time.Now().Equal(now) {
				t.Fatal("an old one stays until it is too late")
			}
		}
		if c := tls.Client(slow, w.ring.Client("10.0.0.1:7420")); c.Handshake() != nil {
			t.Error("who was slow, and has the key, is not admitted")
		}
		for _, c := range all[strangers-left:] {
			if !ended(c) || !time.Now().Equal(now.Add(handshakeLimit)) {
				t.Fatalf("a new one is closed after %v; want %v", time.Since(now), handshakeLimit)
			}
		}
		if !echoes(honest) {
			t.Error("who had the key lost the connection")
		}
	})
}

// offers has a client offer these protocols; Peers: none.
func offers(protocols ...string) func(*tls.Config) {
	return func(c *tls.Config) {
		c.NextProtos = slices.DeleteFunc(protocols, func(p string) bool { return p == Peers })
	}
}

// Clients get a bounded number of connections, and are told so. Machines have places of their own, however many clients
// there are.
func TestEstablishedConnectionsAreLimited(t *testing.T) {
	for _, protocol := range []string{Clients, Exchange} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.Handle(Peers, echo)
			w.Handle(protocol, echo)
			all := make([]*tls.Conn, MaxClients)
			for i := range all {
				var err error
				if all[i], err = w.shake(2, offers(protocol)); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			one, _ := w.shake(3, offers(protocol)) // it can't be told
			if !ended(one) {
				t.Errorf("there are more than %d", MaxClients)
			}
			synctest.Wait()
			w.log.Wants(t,
				`remote=10.0.0.3:40000 why="it has the connections of 1024 clients, which is the limit: want fewer `+
					`nodes on this quorum"`)
			told, err := w.shake(3, offers(protocol, keyring.Refused))
			if err != nil {
				t.Fatal(err)
			}
			if said, err := io.ReadAll(told); string(said) != crowded(Clients) || err != nil {
				t.Errorf("it was told %q, %v; want %q", said, err, crowded(Clients))
			}
			for _, places := range []string{"", ByMachine(protocol)} {
				machine, err := w.shake(4, offers(places))
				if err != nil || !echoes(machine) {
					t.Errorf("a machine is not admitted for %q: %v", places, err)
				}
			}
			all[0].Close()
			synctest.Wait()
			next, err := w.shake(3, offers(protocol, keyring.Refused))
			if err != nil || !echoes(next) {
				t.Errorf("one is free, and the next does not get it: %v", err)
			}
			for _, c := range all[1:] {
				if !echoes(c) {
					t.Fatal("one of them lost its connection")
				}
			}
		})
	}
}

// Machines, too, get a bounded number of connections.
func TestConnectionsOfMachinesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, protocol := range []string{Peers, Clients, Exchange} {
			w.Handle(protocol, echo)
		}
		for i := range maxMachines {
			if _, err := w.shake(2, offers([]string{Peers, ByMachine(Clients), ByMachine(Exchange)}[i%3])); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if one, _ := w.shake(3, offers(Peers)); !ended(one) {
			t.Errorf("there are more than %d", maxMachines)
		}
		synctest.Wait()
		w.log.Wants(t, `why="it has 256 connections of machines, which is the limit"`)
		if c, err := w.shake(3, offers(Clients)); err != nil || !echoes(c) {
			t.Errorf("a client is not admitted: %v", err)
		}
	})
}

// When nothing can be accepted, as without file descriptors, it is tried again, not too often, for as long as it takes.
func TestAcceptGoesOnAfterErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Handle(Clients, echo)
		began, tries := time.Now(), 0
		for time.Since(began) < 10*time.Minute {
			w.fail <- &net.OpError{Op: "accept", Err: syscall.EMFILE}
			tries++
		}
		if tries > 10*60+20 {
			t.Errorf("it was tried %d times in ten minutes; want about once a second", tries)
		}
		if c, err := w.shake(2, nil); err != nil || !echoes(c) {
			t.Errorf("after it, who has the key is not admitted: %v", err)
		}
		lines := w.log.Take()
		if len(lines) == 0 || len(lines) > 21 ||
			!strings.Contains(lines[0],
				`level=ERROR msg="can't accept connections of the quorum; trying again" err="accept: too many `+
					`open files"`) {
			t.Errorf("the log has %d lines:\n%s", len(lines), strings.Join(lines, "\n"))
		}
	})
}

// Close does not wait for the pause after an error.
func TestCloseAfterAnAcceptError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 20 {
			w.fail <- syscall.EMFILE
		}
		now := time.Now()
		w.Port.Close()
		if !time.Now().Equal(now) {
			t.Errorf("it took %v", time.Since(now))
		}
	})
}
