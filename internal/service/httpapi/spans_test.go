package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/test/servertest"
)

// A time is told the first and the last ID of its tick, with any token that allows anything; what is no time, or one
// without IDs, is refused, with the value and with what would be right.
func TestSpans(t *testing.T) {
	plain := newFormed(t, &servertest.Issuer{IDs: firn.Default}, "")
	coarse := newFormed(t, &servertest.Issuer{IDs: firn.Sonyflake}, "")
	scattered := newFormed(t, &servertest.Issuer{IDs: firn.Default, Scattered: true}, "")
	fine := firn.Layout{
		Epoch: firn.Default.Epoch, Tick: 100 * time.Microsecond, TimeBits: 50, NodeBits: 5,
		SequenceBits: 8,
	}
	endless := firn.Layout{Epoch: firn.Default.Epoch, Tick: time.Second, TimeBits: 62}
	span := func(l firn.Layout, at string) string {
		when, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		first, err1 := l.First(when)
		last, err2 := l.Last(when)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		return `{"first":` + first.String() + `,"first_str":"` + first.String() + `","last":` + last.String() +
			`,"last_str":"` + last.String() + `","time":"`
	}
	const when = "2026-11-21T03:25:36.425Z"
	for _, tt := range []struct {
		at         formed
		token      string
		time, says string
		status     int
	}{
		{plain, "issue", when, span(firn.Default, when) + when + `","unix_ms":1795231536425,"tick":28005936425}`, 200},
		{plain, "open", "1795231536425", span(firn.Default, when), 200},
		{plain, "admin", "2026-11-21T05:25:36.425999+02:00", span(firn.Default, when) + when, 200},
		{coarse, "issue", when, span(firn.Sonyflake, when) + "2026-11-21T03:25:36.420Z", 200},
		{
			newFormed(t, &servertest.Issuer{IDs: fine}, ""), "issue", "2026-11-21T03:25:36.42519Z",
			`"time":"2026-11-21T03:25:36.425100000Z"`, 200,
		},
		{plain, "", when, "unauthenticated", 401},
		{
			plain, "issue", "2026-11-21",
			`time is \"2026-11-21\"; want a time such as 2026-11-22T03:12:00Z, or Unix milliseconds`, 400,
		},
		{plain, "issue", "-1", `time is \"-1\"; want a time`, 400},
		{plain, "issue", when + "?form=hex", `unknown parameter \"form\"; want ids`, 400},
		{
			plain, "issue", "2025-12-31T23:59:59.999Z",
			"2025-12-31T23:59:59.999Z is outside the layout's lifetime; want a time from 2026-01-01T00:00:00Z on, " +
				"before 2095-09-07T15:47:35.552Z", 400,
		},
		{
			plain, "issue", "2095-09-07T15:47:35.552Z",
			"2095-09-07T15:47:35.552Z is outside the layout's lifetime; want",
			400,
		},
		{plain, "issue", "9223372036854775807", "is outside the layout's lifetime; want", 400},
		{
			newFormed(t, &servertest.Issuer{IDs: endless}, ""), "issue", "253402300800000",
			"10000-01-01T00:00:00Z is after the year 9999; want an earlier time", 400,
		},
		{
			scattered, "issue", when,
			`the sequencer \"default\" is scattered: its IDs do not lie in the order of their time`, 400,
		},
	} {
		status, body := tt.at.ask(tt.token, "GET /api/v1/times/"+tt.time)
		if status != tt.status || !strings.Contains(body, tt.says) ||
			status == 400 && !strings.Contains(body, `"bad_request"`) {
			t.Errorf("%s with %q: %d %s; want %d with %s", tt.time, tt.token, status, body, tt.status, tt.says)
		}
	}
	if _, err := calls.SpanOf(firn.Layout{}, time.Now()); err == nil {
		t.Error("a layout that is not valid has a span")
	}
}
