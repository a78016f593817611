package browser_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/ui"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/internal/test/testenv"
)

// told is a cluster of three of which a test says what is known.
func told(t *testing.T) (*servertest.Told, map[string]peer.Pulse, string) {
	t.Helper()
	return toldTo(t, local, calls.Options{})
}

// toldTo is told for callers under a policy.
func toldTo(t *testing.T, policy *auth.Policy, o calls.Options) (*servertest.Told, map[string]peer.Pulse, string) {
	t.Helper()
	f := servertest.Tell(t, "a1")
	commands := []cluster.Command{cluster.CreateSequencer{Sequencer: "default", Definition: nodes(24)}}
	pulses, now := map[string]peer.Pulse{}, time.Now()
	for i, id := range []string{"a1", "b2", "c3"} {
		commands = append(commands, cluster.PrepareJoin{Joiner: id}, cluster.NotifyWatchers{Joiner: id},
			cluster.AcceptJoin{Joiner: id}, cluster.Attach{Sequencer: "default", Member: id})
		pulses[id] = peer.Pulse{
			Mark: id, Owner: "host-" + id, Since: now, Clock: now, Every: 10 * time.Minute,
			Vitals: peer.Vitals{
				Version:   "v1.4.0",
				Addresses: map[string]string{"admin": fmt.Sprintf("http://node-%d.example.org:9080", i)},
				Since:     now.Add(-time.Hour),
				Ready:     true, Given: 1234567, Rate: 1000, Verdict: "agreed",
				Offset: time.Duration(i) * 20 * time.Millisecond, Judged: now, Left: 20 * time.Minute,
				RoundTrip: 2 * time.Millisecond,
			},
		}
		f.Put(fmt.Sprint("sequencers/default/workers/live/", i), fmt.Sprintf("x %d host-%s", now.UnixMilli(), id))
		f.Put(fmt.Sprint("sequencers/default/workers/last_reported_time/", i),
			fmt.Sprintf("%d x x", now.Add(time.Hour).UnixMilli()))
	}
	for i, c := range commands {
		f.ApplyAt(now.Add(time.Duration(i-len(commands))*time.Second), c)
	}
	f.SetPulses(pulses)
	o.Default = new(servertest.Issuer)
	s := calls.New(f.Member, o)
	served := httptest.NewServer(administer(s, policy, ui.Options{}))
	t.Cleanup(func() {
		s.Drain()
		served.CloseClientConnections()
		served.Close()
	})
	return f, pulses, served.URL
}

// state is the state of a member in the table.
func state(id string) string { return fmt.Sprintf(`text('#nodes-body [data-id=%q] .state')`, id) }

// Nothing that is not confirmed now looks as if it were: a member without a pulse, one whose pulse is overdue, and
// everything while the store is out of reach.
func TestNothingStaleLooksFresh(t *testing.T) {
	testenv.Slow(t)
	f, pulses, url := told(t)
	p := &page{t, openFor(t, 2*patience)} // four states in six pictures each
	p.visit(url, 1440)
	p.wait(state("b2"), "ready")
	p.wait(`document.querySelectorAll("#ring .peer.alive").length`, "3")
	do(t, p.ctx, chromedp.ScrollIntoView(chromedp.CSS("#sheet-grid")))
	p.wait(`text("[data-kind=full] b")`, "3")
	p.wait(`$("#problems").dataset.state`, "good")
	p.wait(`text("#problems")`, "Nothing is wrong.")
	p.pictures("dashboard-well")

	// One is killed: its pulse is gone.
	gone := map[string]peer.Pulse{"a1": pulses["a1"], "c3": pulses["c3"]}
	f.SetPulses(gone)
	p.waitFor(state("b2") + `.startsWith("gone since ")`)
	p.wait(`$("#ring [data-id=b2]").classList.contains("dead")`, "true")
	p.wait(`text("[data-kind=full] b") + text("[data-kind=doubt] b")`, "21")
	p.waitFor(`text("#problems").includes("host-b2")`)
	p.wait(`text("#members-note")`, "1 not ready")
	p.wait(`text("#nodes-body [data-id=b2] .rate")`, "–") // what it gave once
	p.pictures("dashboard-gone")

	// One does not write its pulse again, which is still there.
	late := pulses["b2"]
	late.Clock, late.Every = time.Now().Add(-time.Minute), 100*time.Millisecond
	gone["b2"] = late
	f.SetPulses(gone)
	p.waitFor(state("b2") + `.startsWith("late since ")`)
	p.wait(`$("#ring [data-id=b2]").classList.contains("doubt")`, "true")

	// The store is out of reach: nothing is confirmed.
	f.SetPulses(pulses)
	p.wait(state("b2"), "ready")
	f.Fail(errors.New("no answer from etcd"))
	p.wait(`text("#store")`, "Out of reach")
	p.waitFor(state("b2") + `.startsWith("not confirmed since ")`)
	p.wait(state("a1"), "ready") // which the node knows of itself
	p.wait(`document.querySelectorAll("#ring .peer.alive").length`, "1")
	p.wait(`document.querySelectorAll("#ring .peer.doubt").length`, "2")
	p.waitFor(`text("#ring .ring-middle").includes("not confirmed since ")`)
	p.waitFor(`text("[data-kind=doubt] b") >= 2`) // its own horizon is confirmed until the last reading is old
	own := pulses["a1"]
	own.Vitals.Ready, own.Vitals.Code, own.Vitals.Why = false, "not_ready", "the horizon is reached"
	f.SetPulses(map[string]peer.Pulse{"a1": own, "b2": pulses["b2"], "c3": pulses["c3"]})
	p.wait(state("a1"), "not ready")
	p.waitFor(`text("#member").includes("the horizon is reached")`)
	p.waitFor(`text("#problems").includes("store")`)
	p.wait(`$("#problems").dataset.state`, "bad")
	p.pictures("dashboard-outage")
	f.SetPulses(pulses)
	f.Fail(nil)
	p.wait(state("a1"), "ready")
	do(t, p.ctx, chromedp.ScrollIntoView(chromedp.CSS("#sheet-grid"))) // horizons are read while they are seen
	p.wait(`text("[data-kind=full] b")`, "3")
}

// A clock that the majority contradicts is told first, in words with numbers, and by whom.
func TestClockProblem(t *testing.T) {
	testenv.Slow(t)
	f, pulses, url := told(t)
	wrong := pulses["b2"]
	wrong.Clock = wrong.Clock.Add(2 * time.Hour)
	wrong.Vitals.Ready, wrong.Vitals.Code, wrong.Vitals.Why = false, "clock",
		"this clock is 2h0m ahead of 2 of 2 others"
	wrong.Vitals.Verdict, wrong.Vitals.Against, wrong.Vitals.Others, wrong.Vitals.Offset, wrong.Vitals.Rate = "ahead",
		2, 2, 2*time.Hour, 0
	f.SetPulses(map[string]peer.Pulse{"a1": pulses["a1"], "b2": wrong, "c3": pulses["c3"]})
	p := &page{t, open(t)}
	p.visit(url, 1440)
	p.waitFor(`text("#problems li").includes("ahead of 2 of 2 others") && text("#problems li").includes("b2")`)
	p.wait(`$("#problems").dataset.state`, "bad")
	p.wait(state("b2"), "not ready: clock")
	p.wait(`text("#nodes-body tr:first-child code")`, "b2") // the worst first
	p.wait(`text('#nodes-body [data-id="b2"] .clock')`, "+2 h")
	p.click("#problems button")
	p.waitFor(`text("#member").includes("this clock is 2h0m ahead of 2 of 2 others") && ` +
		`text("#member").includes("pinned")`)
	p.pictures("dashboard-clock")

	// Sorted by another column, and each with a link to its own page.
	p.click("[data-column=clock] button")
	p.wait(`[...document.querySelectorAll("#nodes-body code")].map(c => c.textContent.slice(0, 2)).join()`, "b2,c3,a1")
	p.click("[data-column=clock] button")
	p.wait(`[...document.querySelectorAll("#nodes-body code")].map(c => c.textContent.slice(0, 2)).join()`, "a1,c3,b2")
	p.wait(`$('#nodes-body [data-id=c3] a').href`, "http://node-2.example.org:9080/ui/")
}

// The last hour is there again after the page is loaded again.
func TestLastHour(t *testing.T) {
	testenv.Slow(t)
	f, _, url := told(t)
	now := time.Now().Truncate(time.Minute)
	var hour []peer.Minute
	for i := range 60 {
		ready := 3
		if i > 30 && i < 36 {
			ready = 2
		}
		m := peer.Minute{At: now.Add(time.Duration(i-59) * time.Minute), Members: 3, Ready: ready}
		for n := range 3 {
			rate := float64(400 + 300*n + (i*(n+3)*37)%200)
			m.Rate += rate
			m.Nodes = append(m.Nodes, peer.NodeMinute{
				Owner: "host-" + []string{"a1", "b2", "c3"}[n],
				Ready: n != 1 || ready == 3, Rate: rate, Offset: time.Duration(n*i) * time.Millisecond,
			})
		}
		hour = append(hour, m)
	}
	f.SetHistory(hour)
	p := &page{t, open(t)}
	for range 2 { // at first, and again
		p.visit(url, 1440)
		p.waitFor(`$("#chart").getAttribute("aria-label").includes("in the last hour")`)
		p.wait(`document.querySelectorAll("#series tr").length`, "3")
		p.wait(`text("#series tr th")`, "host-c3")
		p.waitFor(`Number(text("#series td:nth-child(3)").replace("\u202f", "")) > 1000`)
		p.waitFor(`$("#nodes-body [data-id=b2] svg .line")?.getAttribute("d").split("L").length === 60`)
		p.waitFor(`$("#nodes-body [data-id=b2] .clock .line").getAttribute("d").endsWith("71.0 2.0")`) // the farthest
	}
	p.pictures("dashboard-hour")
}

// A member has the same colour wherever and whenever it is shown.
func TestColours(t *testing.T) {
	testenv.Slow(t)
	_, _, url := told(t)
	_, _, other := told(t)
	p := &page{t, open(t)}
	colours := `[...document.querySelectorAll("#nodes-body tr")].map(r => r.dataset.id + ` +
		`r.querySelector(".swatch").style.getPropertyValue("--hue")).sort().join()`
	p.visit(url, 1440)
	p.wait(state("b2"), "ready")
	first := p.js(colours)
	p.visit(other, 390)
	p.wait(state("b2"), "ready")
	p.wait(colours, first)
	p.wait(`$("#ring [data-id=b2]").style.getPropertyValue("--hue") === $("#nodes-body [data-id=b2] `+
		`.swatch").style.getPropertyValue("--hue")`, "true")
	p.wait(`new Set(`+colours+`.match(/oklch.*?\)\)/g)).size`, "3")
}
