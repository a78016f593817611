package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/responsive"
	"github.com/firn-id/firn/internal/test/testenv"
)

// wired are keepers on machines of a network of their own.
type wired struct {
	*keepers
	lan     *lan
	program string
	at      map[*keeper]*machine
}

// newWired makes three machines on a network of their own, and starts none.
func newWired(t *testing.T, args ...string) *wired {
	t.Helper()
	path, err := firn()
	if err != nil {
		t.Fatal(err)
	}
	w := &wired{keepers: noKeepers(t, args...), lan: newLAN(t), program: path, at: map[*keeper]*machine{}}
	for i := range 3 {
		m := w.lan.plug(fmt.Sprint("ids", i+1), fmt.Sprint("10.78.0.", 11+i))
		k := w.machine(m.address+":7420", m.address+":8080", "127.0.0.1:9080", m.dial)
		k.launch = func(args ...string) (process, *lines) {
			p := m.run(path, append([]string{"serve", "--no-forward", journaled(t, args)}, args...)...)
			return p, p.log
		}
		w.list, w.at[k] = append(w.list, k), m
	}
	return w
}

// callers take IDs at each node, from the machine on which it is, and ask the next node once more if that fails.
func (w *wired) callers() *audience {
	var urls []string
	w.asked = w.list
	for _, k := range w.list {
		urls = append(urls, k.url)
	}
	return newAudience(w.t, w.ledger, w.dial, urls...)
}

// dial opens a connection to a node from the machine on which it is.
func (w *wired) dial(ctx context.Context, network, address string) (net.Conn, error) {
	for k, m := range w.at {
		if strings.TrimPrefix(k.url, "http://") == address {
			return m.dial(ctx, network, address)
		}
	}
	return nil, fmt.Errorf("no node is at %s", address)
}

// mute has what the machine sends to another one get lost; hear ends that.
func (m *machine) mute(other *machine) {
	m.t.Helper()
	m.lan.ip("-n", m.namespace, "neighbor", "replace", other.address, "lladdr", "02:00:00:00:00:00", "dev", "eth0",
		"nud", "permanent")
}

func (m *machine) hear(other *machine) {
	m.t.Helper()
	m.lan.ip("-n", m.namespace, "neighbor", "delete", other.address, "dev", "eth0")
}

// Each link between two machines is cut, in one direction and in both. No caller notices: a majority reaches every
// node.
func TestEachLinkOfAQuorumIsCut(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	w := newWired(t, soonWindow)
	w.start()
	c := w.callers()
	cut := func(what string, links ...[2]*keeper) {
		c.served(10)
		for _, l := range links {
			w.at[l[0]].mute(w.at[l[1]])
		}
		begun := time.Now()
		for range 2 { // the first may be on its way
			w.extendAgain(w.list...)
		}
		t.Logf("%s: two horizons of each node were written in %v", what, time.Since(begun).Round(time.Millisecond))
		for _, l := range links {
			w.at[l[0]].hear(w.at[l[1]])
		}
		w.whole()
	}
	for i, a := range w.list {
		for _, b := range w.list[i+1:] {
			cut(fmt.Sprintf("what %s sends to %s is lost", a.address, b.address), [2]*keeper{a, b})
			cut(fmt.Sprintf("what %s sends to %s is lost", b.address, a.address), [2]*keeper{b, a})
			cut(fmt.Sprintf("all between %s and %s is lost", a.address, b.address), [2]*keeper{a, b}, [2]*keeper{b, a})
		}
	}
	w.unnoticed(c)
	w.ledger.unique(t, 100)
}

// Each machine is cut off from the others. Its node gives IDs up to its horizon, and then refuses, until the machine is
// back: then it gives IDs again by itself. At the other nodes no call fails.
func TestEachMachineOfAQuorumIsCutOff(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	w := newWired(t, soonWindow)
	w.start()
	c := w.callers()
	for i, k := range w.list {
		c.served(10)
		cut := time.Now()
		k.goesDown()
		w.at[k].cut()
		eventually(t, func() error {
			if c.refusedAt(i, cut).IsZero() {
				return fmt.Errorf("%s still gives IDs", k.name)
			}
			return nil
		})
		w.extendAgain(w.others(k)...)
		if took := c.refusedAt(i, cut).Sub(cut); took < soon/2 {
			t.Errorf("%s refuses %v after it was cut off; its horizon was further ahead", k.name, took)
		} else if took > soon+2*time.Second {
			responsive.Errorf(t, cut, "%s refuses %v after it was cut off; its horizon was %v ahead at most",
				k.name, took, soon)
		}
		w.at[k].mend()
		begun := time.Now()
		eventually(t, k.isReady)
		w.lasted("a machine that was cut off is ready again", begun, 5*time.Second)
		w.extendAgain(k) // what it had sent before may arrive first, with a horizon that is soon reached
		k.up()
		w.whole()
		for j, other := range w.list {
			if at := c.refusedAt(j, cut); j != i && !at.IsZero() {
				t.Logf("%s refuses %v after %s was cut off, which is back after %v", other.name, at.Sub(cut), k.name,
					begun.Sub(cut))
			}
		}
	}
	for _, made := range c.all503() {
		t.Errorf("a call failed in another way than with 503: %v", made)
	}
	w.unnoticed(c)
	w.ledger.unique(t, 100)
}

// refusedAt is when the first call began that failed at a node, of those after a moment; zero: none did.
func (c *audience) refusedAt(node int, after time.Time) (at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, made := range c.calls {
		if made.node == node && made.first != nil && made.began.After(after) && (at.IsZero() || made.began.Before(at)) {
			at = made.began
		}
	}
	return at
}

// all503 are the first tries that failed otherwise.
func (c *audience) all503() (otherwise []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, made := range c.calls {
		if made.first != nil && !strings.HasPrefix(made.first.Error(), "status 503: ") {
			otherwise = append(otherwise, made.first)
		}
	}
	return otherwise
}

// refusal finds why a connection was refused, in a log.
var refusal = regexp.MustCompile(`msg="refused a connection to the quorum" .*why="([^"]*)"`)

// Strangers come to the ports of a quorum: without a certificate, with the key of another cluster, with what is no TLS,
// with TLS that is broken, and with 10 000 connections at once. They are refused, the log has a line for each reason,
// callers notice nothing, horizons are written on, and a machine that starts meanwhile gets through.
func TestStrangersAtTheQuorum(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	w := newWired(t, soonWindow)
	begun := time.Now()
	w.start()
	stranger := w.lan.plug("stranger", "10.78.0.66")
	c := w.callers()
	c.served(10)
	refused := func(what, send string, config *tls.Config) {
		t.Helper()
		for _, k := range w.list {
			conn, err := stranger.dial(t.Context(), "tcp", k.address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if config != nil {
				conn = tls.Client(conn, config)
			}
			_ = conn.SetDeadline(time.Now().Add(patience))
			_, _ = io.WriteString(conn, send)
			answer, err := io.ReadAll(conn)
			if errors.Is(err, os.ErrDeadlineExceeded) || bytes.Contains(answer, []byte("HTTP")) {
				t.Errorf("%s at %s: %q, %v; want a refusal", what, k.name, answer, err)
			}
		}
	}
	const request = "GET /machine HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, protocol := range []string{"h2", "http/1.1", "firn-quorum/1"} {
		refused("no certificate, "+protocol, request,
			&tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
	}
	refused("plain HTTP", request, nil)
	noise := make([]byte, 1<<16)
	_, _ = rand.Read(noise)
	refused("random bytes", string(noise), nil)
	refused("a TLS record of random bytes", "\x16\x03\x01\x40\x00"+string(noise[:1<<14]), nil)

	another := noKeepers(t).key
	other := stranger.run(w.program, "serve", "--quorum="+addresses(w.list), "--quorum-addr=none",
		"--quorum-key-file="+another, "--http-addr=127.0.0.1:8080")
	eventually(t, func() error {
		_, body, err := stranger.get("http://127.0.0.1:8080/readyz")
		for _, k := range w.list {
			if err == nil && !strings.Contains(body, k.address+" (has another key") {
				err = fmt.Errorf("whoever has another key does not say so of %s: %s", k.address, body)
			}
		}
		return err
	})

	crowded, crowd := time.Now(), 0
	var conns []net.Conn
	defer func() {
		for _, conn := range conns {
			conn.Close()
		}
	}()
	for crowd < 10_000 {
		for _, k := range w.list {
			conn, err := stranger.dial(t.Context(), "tcp", k.address)
			switch {
			case err == nil:
				conns = append(conns, conn)
				crowd++
			case k != w.list[0]: // it starts again
				t.Fatal(err)
			}
		}
		if crowd == 6000 {
			w.list[0].stop()
			w.list[0].start()
		}
	}
	t.Logf("%d connections in %v", crowd, time.Since(crowded).Round(time.Millisecond))
	w.extendAgain(w.others(w.list[0])...)
	w.list[0].ready()
	w.extendAgain(w.list...)
	w.whole()
	c.served(10)
	other.kill()
	w.unnoticed(c)
	for _, k := range w.list {
		times := map[string]int{}
		for _, found := range refusal.FindAllStringSubmatch(k.log.String(), -1) {
			times[found[1]]++
		}
		t.Logf("%s logs why it refused connections: %v", k.name, times)
		if k == w.list[0] { // it was started again since
			continue
		}
		for _, why := range []string{"it showed no certificate", "it has another key", "it speaks no TLS"} {
			if times[why] == 0 {
				t.Errorf("%s does not log that it refused a connection because %s", k.name, why)
			}
		}
		for why, n := range times {
			if most := 1 + int(time.Since(begun)/time.Minute); n > most {
				t.Errorf("%s logs %d times in %v that it refused a connection because %s; want %d at most", k.name, n,
					time.Since(begun), why, most)
			}
		}
	}
	w.ledger.unique(t, 100)
}
