package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"net"
	"slices"
	"sync"
	"time"
)

// load is what came of asking over some connections at once.
type load struct {
	answers int
	took    time.Duration // until the last of them
	each    histogram     // how long each took
}

func (l *load) perSecond() float64 { return float64(l.answers) / l.took.Seconds() }

// asker asks for an ID over HTTP on one connection, again and again. It does as little as it can, since it shares the
// CPUs with the server: it writes the same request each time, and looks in the answer for what it must know.
type asker struct {
	conn    net.Conn
	request []byte
	buffer  [4 << 10]byte
	answers int       // of askUntil
	each    histogram // how long each took
}

// dial connects to a server that gives IDs. Whatever is not over within the given time fails.
func dial(ctx context.Context, address string, within time.Duration) (*asker, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	a := &asker{conn: conn, request: fmt.Appendf(nil, "POST /api/v1/id HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\n\r\n", address)}
	return a, conn.SetDeadline(time.Now().Add(within))
}

// ask asks for one ID, and returns the body of the answer, which is valid until the next call.
func (a *asker) ask() (body []byte, err error) {
	if _, err := a.conn.Write(a.request); err != nil {
		return nil, err
	}
	for n := 0; n < len(a.buffer); {
		more, err := a.conn.Read(a.buffer[n:])
		if err != nil {
			return nil, err
		}
		n += more
		if body, whole, err := parseAnswer(a.buffer[:n]); whole || err != nil {
			return body, err
		}
	}
	return nil, errors.New("the answer is too long")
}

// askUntil asks one ID after the other.
func (a *asker) askUntil(end time.Time) error {
	for asked := time.Now(); asked.Before(end); {
		if _, err := a.ask(); err != nil {
			return err
		}
		answered := time.Now()
		a.answers++
		a.each.add(answered.Sub(asked))
		asked = answered
	}
	return nil
}

var (
	endOfHead  = []byte("\r\n\r\n")
	statusOK   = []byte("HTTP/1.1 200 ")
	lengthOf   = []byte("\r\nContent-Length: ")
	beginOfIDs = []byte(`{"id":`)
)

// parseAnswer finds the body of an answer that has a Content-Length, written so, and an ID. Not whole: there is more to
// be read.
func parseAnswer(answer []byte) (body []byte, whole bool, err error) {
	head, body, whole := bytes.Cut(answer, endOfHead)
	if !whole {
		return nil, false, nil
	}
	if !bytes.HasPrefix(head, statusOK) {
		return nil, true, fmt.Errorf("the answer is %.200q", answer)
	}
	_, after, found := bytes.Cut(head, lengthOf)
	if !found {
		return nil, true, fmt.Errorf("no Content-Length in %q", head)
	}
	digits, _, _ := bytes.Cut(after, endOfHead[:2])
	length, ok := parseLength(digits)
	switch {
	case !ok:
		return nil, true, fmt.Errorf("the Content-Length is %q", digits)
	case len(body) < length:
		return nil, false, nil
	case len(body) > length:
		return nil, true, fmt.Errorf("%q is more than was asked for", answer)
	case !bytes.HasPrefix(body, beginOfIDs):
		return nil, true, fmt.Errorf("no ID in %q", body)
	}
	return body, true, nil
}

// parseLength reads a number of four digits at most, without an allocation.
func parseLength(digits []byte) (n int, ok bool) {
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, len(digits) > 0 && len(digits) <= 4
}

// askOnce asks for an ID over a connection of its own.
func askOnce(ctx context.Context, address string) (body string, err error) {
	a, err := dial(ctx, address, 5*time.Second)
	if err != nil {
		return "", err
	}
	defer func() { _ = a.conn.Close() }() // what it gave is known by then
	answer, err := a.ask()
	return string(answer), err
}

// ask asks for IDs over so many connections at once. All of them have had an ID when it calls begin; the given time is
// from then on.
func ask(ctx context.Context, address string, connections int, d time.Duration, begin func()) (l load, err error) {
	askers := make([]*asker, connections)
	for i := range askers {
		a, err := dial(ctx, address, d+10*time.Second)
		if err != nil {
			return l, err
		}
		defer func() { _ = a.conn.Close() }() // what it gave is known by then
		if _, err := a.ask(); err != nil {
			return l, err
		}
		askers[i] = a
	}
	begin()
	began := time.Now()
	var all sync.WaitGroup
	errs := make([]error, connections)
	for i, a := range askers {
		all.Go(func() { errs[i] = a.askUntil(began.Add(d)) })
	}
	all.Wait()
	l.took = time.Since(began)
	for _, a := range askers {
		l.answers += a.answers
		l.each.merge(&a.each)
	}
	return l, errors.Join(errs...)
}

// histogram counts times, each to within one part in 64.
type histogram [34 * slots]int

// slots are what each doubling of the time is divided into.
const slots = 64

func (h *histogram) add(d time.Duration) {
	h[min(slot(uint64(max(0, d))), len(h)-1)]++
}

// slot numbers the times below 64 ns one by one, those below 128 ns too, those below 256 ns by two and so on.
func slot(ns uint64) int {
	coarser := max(0, bits.Len64(ns)-bits.Len64(slots))
	return coarser*slots + int(ns>>coarser)
}

// middle is the middle of what is counted in a slot.
func middle(slot int) time.Duration {
	coarser := max(0, slot/slots-1)
	return time.Duration(uint64(slot-coarser*slots)<<coarser + 1<<coarser/2)
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other {
		h[i] += n
	}
}

// quantile is the time that a part of all did not take longer than; zero, if there are none.
func (h *histogram) quantile(part float64) time.Duration {
	all := 0
	for _, n := range h {
		all += n
	}
	below := 0
	slot := slices.IndexFunc(h[:], func(n int) bool {
		below += n
		return n > 0 && float64(below) >= part*float64(all)
	})
	return middle(max(0, slot))
}
