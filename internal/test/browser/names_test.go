package browser_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store/quorum"
)

// Who reads the log or is asked before a change sees names: also of those who are gone. A question says what ends with
// the node or the sequencer, by what the cluster knows: node IDs, traffic, and the voter of the quorum on the node's
// host.
func TestNamesAndQuestions(t *testing.T) {
	testenv.Slow(t)
	secret := auth.NewSecret()
	secret.Kept("/var/lib/firn/admin.token", nil)
	q := servertest.ThreeMachines()
	q.State.Machines[1].Role = quorum.Voter
	f, pulses, url := toldTo(t, &auth.Policy{Trusted: true, Secret: secret}, calls.Options{Quorum: q})
	now := time.Now()
	for i, id := range []string{"a1", "b2", "c3"} {
		p := pulses[id]
		p.Owner, p.Vitals.Rates = fmt.Sprintf("blue-%d", i), map[string]float64{"default": 400}
		pulses[id] = p
	}
	f.SetPulses(pulses)
	p := &page{t, open(t)}
	w := watch(t, p.ctx)
	do(t, p.ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(url+"/ui/#login="+secret.NewLogin()))
	p.wait(`$("#forget").hidden`, "false")
	p.waitFor(`[...document.querySelectorAll("#entries .words")].some(e => e.textContent.startsWith("b2 asks to ` +
		`join"))`)
	f.SetNodes(
		peer.NodeRecord{Name: "blue-0", Host: "ids-9", Members: []string{"a1"}, Since: now, Seen: now},
		peer.NodeRecord{Name: "blue-1", Host: "ids-2", Members: []string{"b0", "b2"}, Since: now, Seen: now},
		peer.NodeRecord{Name: "blue-2", Host: "ids-8", Members: []string{"c3"}, Since: now, Seen: now},
	)
	p.waitFor(`[...document.querySelectorAll("#entries .words")].some(e => e.textContent.startsWith("blue-1 ` +
		`(b2) asks ` +
		`to join"))`)

	p.click(`#nodes-body [data-id="b2"] .state`)
	p.waitFor(`text("#member").includes("pinned") && text("#member").includes("Watchesblue-")`)
	p.verb("#member", "expel", "Expel")
	p.wait(`text("#sure > form > p")`,
		"blue-1 (b2) holds 1 node ID. Callers get 1\u202f000 IDs a second from it. The machine ids-2:7420, a voter of "+
			"the quorum, ends "+
			"with it. No majority of the voters is left then: nothing can be written, and no node can reserve "+
			"more time. "+
			"It leaves the cluster: it gives no IDs, gives its node IDs back and "+
			"ends. It can come back only when it is started again.")
	p.click("#sure button")
	p.click(`#nodes-body [data-id="c3"] .state`)
	p.waitFor(`text("#member code") === "c3" && text("#member").includes("pinned")`)
	p.verb("#member", "expel", "Expel")
	p.waitFor(`text("#sure").startsWith("Expelblue-2 (c3) holds 1 node ID. ") && !text("#sure").includes("voter")`)
	p.click("#sure button")

	f.Apply(cluster.CreateSequencer{Sequencer: "orders", Definition: nodes(24)},
		cluster.Attach{Sequencer: "orders", Member: "b2"})
	p.waitFor(`$("[data-name=orders]")`)
	p.click("[data-name=orders]")
	p.verb("#sheet", "destroy", "Destroy")
	p.waitFor(`text("#sure").startsWith("Destroy1 member holds 1 node ID of orders: blue-1 (b2). Callers get no IDs ` +
		`from orders now. All nodes stop")`)
	p.click("#sure button")
	busy := pulses["b2"]
	busy.Vitals.Rates = map[string]float64{"default": 400, "orders": 60}
	pulses["b2"] = busy
	f.SetPulses(pulses)
	p.wait(`text("[data-name=orders] .speed") + ", " + text("[data-name=default] .speed")`,
		"60 IDs/s, 1\u202f200 IDs/s")
	p.verb("#sheet", "destroy", "Destroy")
	p.waitFor(`text("#sure").includes("Callers get 60 IDs a second from orders.")`)
	p.click("#sure button")
	busy.Vitals.Rates = nil
	pulses["b2"] = busy
	f.SetPulses(pulses)
	p.wait(`text("[data-name=orders] .speed")`, "0 IDs/s")
	p.verb("#sheet", "destroy", "Destroy")
	p.waitFor(`text("#sure").includes("Callers got IDs from orders within the last minute.")`)
	w.quiet(t, url)
}

// Of many sequencers one is found by a part of its name.
func TestFindASequencer(t *testing.T) {
	testenv.Slow(t)
	f, _, url := told(t)
	p := &page{t, open(t)}
	p.visit(url, 1440)
	p.wait(`$("#search-sequencer").hidden`, "true")
	for i := range 62 {
		f.Apply(cluster.CreateSequencer{Sequencer: fmt.Sprintf("team-%02d.orders", i), Definition: nodes(24)})
	}
	p.wait(`document.querySelectorAll("#tabs button").length`, "63")
	do(t, p.ctx, chromedp.SendKeys(chromedp.CSS("#find-sequencer"), "m-4"))
	p.wait(`[...document.querySelectorAll("#tabs button")].filter(b => b.getClientRects().length).length + `+
		`text("#found-sequencers")`, "1010 matches")
	do(t, p.ctx, chromedp.SendKeys(chromedp.CSS("#find-sequencer"), "2"))
	p.wait(`[...document.querySelectorAll("#tabs button")].filter(b => b.getClientRects().length).map(b => `+
		`b.dataset.name) + text("#found-sequencers")`, "team-42.orders1 match")
	p.click("[data-name='team-42.orders']")
	p.wait(`text("#sheet h3")`, "team-42.orders")
	p.pictures("dashboard-sequencers")
}

// Members that are seen together look different: twelve have a colour each, and all pages give them the same.
func TestColoursDiffer(t *testing.T) {
	testenv.Slow(t)
	_, url := crowded(t, 12, 1)
	p := &page{t, open(t)}
	p.visit(url, 1440)
	p.wait(`text("#members-count")`, "12")
	const colours = `[...document.querySelectorAll("#nodes-body tr")].map(r => r.dataset.id + ` +
		`r.querySelector(".swatch").style.getPropertyValue("--hue")).sort()`
	p.wait(`new Set(`+colours+`.map(c => /light-dark.*/.exec(c)[0])).size`, "12")
	const nearest = `(() => {
		const all = ` + colours + `
			.map(c => /(?<=THEME)oklch\(([\d.]+) ([\d.]+) ([\d.]+)\)/.exec(c).slice(1).map(Number))
			.map(([l, c, h]) => [l, c * Math.cos(h * Math.PI / 180), c * Math.sin(h * Math.PI / 180)]);
		return Math.min(...all.flatMap((a, i) => all.slice(0, i).map(b => Math.hypot(...a.map((v, k) => v - b[k])))));
	})() > 0.1`
	p.wait(strings.Replace(nearest, "THEME", `light-dark\(`, 1), "true")
	p.wait(strings.Replace(nearest, "THEME", `\), `, 1), "true")
	first := p.js(colours + `.join()`)
	p.visit(url, 390)
	p.wait(colours+`.join()`, first)
}
