package calls

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/service/admit/auth"
)

// grab takes claims of one byte over a connection until one would have to wait, and returns how many it got.
func grab(s *shares, caller party, connection string, most int) (n int) {
	for ; n < most; n++ {
		c := &claim{caller: caller, connection: connection, size: 1}
		if !s.fits(c) {
			break
		}
		s.take(c)
	}
	return n
}

// However many connections a caller has that take all they can, one more connection of it gets about as much as
// each of them at once, and so does another caller.
func TestShares(t *testing.T) {
	greedy, other := party{token: "greedy"}, party{token: "other"}
	for _, connections := range []int{1, 2, 10, 70, 1000} {
		const size = 1 << 16
		s := newShares(size)
		total := 0
		for again := true; again; { // they take turns, one claim each
			again = false
			for i := range connections {
				n := grab(s, greedy, fmt.Sprint(i), 1)
				again = again || n > 0
				total += n
			}
		}
		each := total / connections
		if total > size/2 || connections == 1 && total > size/10+1 {
			t.Errorf("%d connections of one caller hold %d of %d", connections, total, size)
		}
		if got := grab(s, greedy, "new", each); got < each*3/4 {
			t.Errorf("beside %d connections with %d each, another of the same caller gets %d", connections, each, got)
		}
		if got := grab(s, other, "other", size); got < each*3/4 || got < size/20 {
			t.Errorf("beside %d connections with %d each, another caller gets %d", connections, each, got)
		}
	}
}

// A waiting claim is granted as soon as it fits, even before older ones; one that gives up leaves nothing behind.
func TestSharesAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShares(1000)
		a, b := party{token: "a"}, party{token: "b"}
		releaseA, err := s.hold(t.Context(), a, "a", 500)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.hold(ctx, a, "a", 100); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("more for a: %v", err)
		}
		got := make(chan func())
		go func() {
			release, err := s.hold(t.Context(), a, "a", 100)
			if err != nil {
				t.Error(err)
			}
			got <- release
		}()
		synctest.Wait()
		releaseB, err := s.hold(t.Context(), b, "b", 100) // it does not wait behind a
		if err != nil {
			t.Fatal(err)
		}
		releaseA()
		releaseA()
		(<-got)()
		releaseB()
		if s.free != 1000 || len(s.callers) != 0 || len(s.connections) != 0 || len(s.waiting) != 0 {
			t.Errorf("when all is released: %+v", s)
		}
	})
}

// At most maxWaiting claims wait; more are refused at once.
func TestTooManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShares(1000)
		ctx, cancel := context.WithCancel(t.Context())
		release, err := s.hold(ctx, party{}, "", 500)
		if err != nil {
			t.Fatal(err)
		}
		refused := make(chan error, maxWaiting)
		for range maxWaiting {
			go func() {
				_, err := s.hold(ctx, party{}, "", 500)
				refused <- err
			}()
		}
		synctest.Wait()
		if _, err := s.hold(ctx, party{}, "", 500); !errors.Is(err, ErrCrowded) {
			t.Errorf("one more: %v", err)
		}
		cancel()
		for range maxWaiting {
			if err := <-refused; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		if release(); s.free != 1000 || len(s.waiting) != 0 {
			t.Errorf("when all is released: %+v", s)
		}
	})
}

// A caller is its token, or without one its network: a /64 of IPv6 is one.
func TestPartyOf(t *testing.T) {
	anyone, err := new(auth.Policy).Admit("")
	if err != nil {
		t.Fatal(err)
	}
	for _, same := range [][2]string{
		{"10.0.0.1:1", "10.0.0.1:2"},
		{"10.0.0.1:1", "[::ffff:10.0.0.1]:2"},
		{"[2001:db8::1]:1", "[2001:db8::ffff:1]:1"},
		{"[fe80::1%eth0]:1", "[fe80::2%eth1]:1"},
		{"", "no address"},
	} {
		if a, b := partyOf(anyone, same[0]), partyOf(anyone, same[1]); a != b {
			t.Errorf("%s is %v, %s is %v", same[0], a, same[1], b)
		}
	}
	for _, other := range [][2]string{
		{"10.0.0.1:1", "10.0.0.2:1"},
		{"[2001:db8::1]:1", "[2001:db8:0:1::1]:1"},
		{"10.0.0.1:1", ""},
	} {
		if a, b := partyOf(anyone, other[0]), partyOf(anyone, other[1]); a == b {
			t.Errorf("%s and %s are both %v", other[0], other[1], a)
		}
	}
}
