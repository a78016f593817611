package auth

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

func TestMay(t *testing.T) {
	some := []string{"orders", "invoices-*", "log?"}
	for _, tt := range []struct {
		caller    *Caller
		right     Right
		sequencer string
		want      string // the error; empty: none
	}{
		{trusted, Issue, "orders", ""},
		{trusted, Admin, "", ""},
		{trusted, All, "", ""},
		{anyone, Issue, "orders", ""},
		{anyone, Issue, "", ""},
		{anyone, Admin, "orders", "administration needs the admin listener, or a token that allows admin"},
		{anyone, All, "orders", ""},

		{&Caller{name: "a", rights: Issue}, Issue, "any", ""},
		{&Caller{name: "a", rights: Issue}, Admin, "any", `the token "a" allows issue, not admin`},
		{&Caller{name: "a", rights: Admin}, Issue, "any", `the token "a" allows admin, not issue`},
		{&Caller{name: "a", rights: Admin}, All, "any", ""},
		{&Caller{name: "a", rights: All}, All, "", ""},

		{&Caller{name: "a", rights: All, sequencers: some}, Issue, "orders", ""},
		{&Caller{name: "a", rights: All, sequencers: some}, Issue, "invoices-", ""},
		{&Caller{name: "a", rights: All, sequencers: some}, Admin, "invoices-eu", ""},
		{&Caller{name: "a", rights: All, sequencers: some}, Issue, "log1", ""},
		{
			&Caller{name: "a", rights: All, sequencers: some}, Issue, "log",
			`the token "a" allows the sequencers orders, invoices-*, log?, not "log"`,
		},
		{
			&Caller{name: "a", rights: All, sequencers: some}, Issue, "orders2",
			`the token "a" allows the sequencers orders, invoices-*, log?, not "orders2"`,
		},
		{
			&Caller{name: "a", rights: All, sequencers: some}, Admin, "",
			`the token "a" allows the sequencers orders, invoices-*, log? only, and this call concerns all`,
		},
		{&Caller{name: "a", rights: Issue, sequencers: some}, Admin, "orders", `the token "a" allows issue, not admin`},
	} {
		err := tt.caller.May(tt.right, tt.sequencer)
		if text(err) != tt.want || err != nil && !errors.Is(err, ErrForbidden) {
			t.Errorf("%+v: %v of %q: %v; want %q", tt.caller, tt.right, tt.sequencer, err, tt.want)
		}
	}
}

// An ID takes a node ID only for who may attach, where there are tokens.
func TestWhoMayAttach(t *testing.T) {
	some := []string{"orders"}
	for _, tt := range []struct {
		caller *Caller
		want   string
	}{
		{anyone, ""},
		{trusted, ""},
		{nil, "missing token: send `Authorization: Bearer ...`"},
		{&Caller{name: "a", rights: Issue}, `the token "a" allows issue, not attach or admin`},
		{&Caller{name: "a", rights: Issue | Attach}, ""},
		{&Caller{name: "a", rights: Admin}, ""},
		{&Caller{name: "a", rights: Issue | Attach, sequencers: some}, ""},
		{
			&Caller{name: "a", rights: Issue | Attach, sequencers: []string{"other"}},
			`the token "a" allows the sequencers other, not "orders"`,
		},
	} {
		if err := tt.caller.MayAttachOnDemand("orders"); text(err) != tt.want {
			t.Errorf("%+v: %v; want %q", tt.caller, err, tt.want)
		}
	}
	if anyone.May(Attach, "orders") == nil {
		t.Error("a caller without a token can call to attach")
	}
}

// Whom a token limits to some sequencers may give them only the prefixes, and have only as many, as it says or by
// default.
func TestWhatCallersMayCreate(t *testing.T) {
	some := []string{"inv-*"}
	for _, tt := range []struct {
		caller *Caller
		prefix string // that it may have; * stands for any
		quota  string // in a cluster with at most 1000
	}{
		{trusted, "*", "[] 0"},
		{&Caller{name: "a", rights: All}, "*", "[] 0"},
		{&Caller{name: "a", rights: All, prefixes: []string{"inv"}, quota: 5}, "inv", "[] 5"},
		{&Caller{name: "a", rights: All, sequencers: some}, "", "[inv-*] 100"},
		{
			&Caller{name: "a", rights: All, sequencers: some, prefixes: []string{"bill", "in*"}, quota: 2000}, "inv",
			"[inv-*] 2000",
		},
		{&Caller{name: "a", rights: All, sequencers: some, prefixes: []string{"*"}}, "*", "[inv-*] 100"},
		{nil, "", "[] 0"},
	} {
		for _, prefix := range []string{"", "inv", "ord"} {
			err := tt.caller.MayPrefix("inv-1", prefix)
			if may := prefix == "" || tt.prefix == "*" || prefix == tt.prefix; (err == nil) != may {
				t.Errorf("%+v: the prefix %q: %v", tt.caller, prefix, err)
			}
			var denied *DeniedError
			if err != nil && (!errors.As(err, &denied) || denied.Sequencer != "inv-1" ||
				denied.Caller != tt.caller.Name() || !isRefusal(err)) {
				t.Errorf("%+v: %+v", tt.caller, err)
			}
		}
		names, most := tt.caller.Quota(1000)
		if got := fmt.Sprint(names, " ", most); got != tt.quota {
			t.Errorf("%+v: %s, want %s", tt.caller, got, tt.quota)
		}
	}
	if _, most := (&Caller{sequencers: some}).Quota(5); most != 1 {
		t.Errorf("%d of 5, want 1", most)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestNilMayDoNothing(t *testing.T) {
	var nobody *Caller
	if nobody.Name() != "" || !errors.Is(nobody.May(Issue, "orders"), ErrUnauthenticated) ||
		!errors.Is(nobody.Spend(1), ErrUnauthenticated) {
		t.Errorf("nil is %q, may %v and spends %v", nobody.Name(), nobody.May(Issue, "orders"), nobody.Spend(1))
	}
}

func TestRightsHaveNames(t *testing.T) {
	for r, want := range map[Right]string{
		Issue: "issue", Admin: "admin", All: "issue, open, import, order, attach and admin",
		Issue | Admin: "issue and admin", 0: "Right(0)", 64: "Right(64)",
	} {
		if r.String() != want {
			t.Errorf("%d is %v, want %s", uint8(r), r, want)
		}
	}
}

func TestSpend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Caller{name: "a", rights: Issue, limit: rate.NewLimiter(1000, 1000)}
		spend := func(n int, retryAfter time.Duration, text string) {
			t.Helper()
			err := c.Spend(n)
			var limit *LimitError
			if text == "" && err == nil {
				return
			}
			if !errors.As(err, &limit) || limit.RetryAfter != retryAfter || limit.Rate != 1000 || limit.Caller != "a" ||
				err.Error() != text {
				t.Errorf("Spend(%d) = %+v, %[2]v; want %v, %q", n, err, retryAfter, text)
			}
		}
		spend(600, 0, "")
		spend(600, 200*time.Millisecond, `the token "a" allows 1000 IDs per second; try again in 200ms`)
		spend(400, 0, "") // what was refused did not count
		spend(1, time.Millisecond, `the token "a" allows 1000 IDs per second; try again in 1ms`)
		spend(1001, 0, `the token "a" allows 1000 IDs per second, and at most as many in one call; ask for fewer`)
		time.Sleep(200 * time.Millisecond)
		spend(201, time.Millisecond, `the token "a" allows 1000 IDs per second; try again in 1ms`)
		spend(200, 0, "")
		time.Sleep(time.Hour)
		spend(1000, 0, "") // and no more was saved up
		spend(1, time.Millisecond, `the token "a" allows 1000 IDs per second; try again in 1ms`)
	})
}

// Whoever waits as long as the error says gets what it asked for.
func TestWaitingIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, r := range []float64{0.3, 1, 3, 7000, 999_999_937, 1e-9} {
			c := &Caller{name: "a", limit: rate.NewLimiter(rate.Limit(r), max(1, int(r)))}
			if err := c.Spend(c.limit.Burst()); err != nil {
				t.Fatal(err)
			}
			var limit *LimitError
			if err := c.Spend(1); !errors.As(err, &limit) || limit.RetryAfter%time.Millisecond != 0 ||
				limit.RetryAfter > 24*time.Hour {
				t.Fatalf("%v: %+v", r, err)
			}
			time.Sleep(limit.RetryAfter)
			if err := c.Spend(1); err != nil && r > 1e-9 {
				t.Errorf("%v: %v after %v", r, err, limit.RetryAfter)
			}
		}
	})
}

func TestWaitsAreAMillisecondToADay(t *testing.T) {
	for seconds, want := range map[float64]time.Duration{
		-1: time.Millisecond, 0: time.Millisecond, 1e-9: time.Millisecond, 0.0011: 2 * time.Millisecond, 1: time.Second,
		1e300: 24 * time.Hour, math.Inf(1): 24 * time.Hour,
	} {
		if got := wait(seconds); got != want {
			t.Errorf("%v s: %v, want %v", seconds, got, want)
		}
	}
}

func TestWithoutALimitAnyNumberCanBeSpent(t *testing.T) {
	for _, c := range []*Caller{anyone, trusted, {name: "a"}} {
		if err := c.Spend(1 << 30); err != nil {
			t.Error(err)
		}
	}
}

func TestLargeRatesAreWrittenOut(t *testing.T) {
	err := &LimitError{Caller: "a", Rate: 25_000_000}
	if want := `the token "a" allows 25000000 IDs per second, and at most as many in one call; ask ` +
		`for fewer`; err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
