package browser_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/test/testenv"
)

// Behind a proxy that takes a prefix off paths, all of the page works: the log, the past, the last hour, horizons, IDs,
// verbs, and the page that tries the calls.
func TestBehindAPrefix(t *testing.T) {
	testenv.Slow(t)
	secret := auth.NewSecret()
	secret.Kept("/var/lib/firn/admin.token", nil)
	l := live(t, &auth.Policy{Trusted: true, Secret: secret}, "host-a", "host-b")
	proxy := httptest.NewServer(http.StripPrefix("/ops/firn", l.handler)) // and elsewhere there is nothing
	t.Cleanup(func() {
		l.service.Drain()
		proxy.CloseClientConnections()
		proxy.Close()
	})
	url := proxy.URL + "/ops/firn"
	p := &page{t, open(t)}
	w := watch(t, p.ctx)
	do(t, p.ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(url+"/ui/#login="+secret.NewLogin()))
	p.wait(`$("#forget").hidden`, "false")
	p.wait(kept, "2")
	p.waitFor(`document.querySelectorAll("#entries li").length > 3`)
	do(t, p.ctx, chromedp.ScrollIntoView(chromedp.CSS("#sheet-grid")))
	p.wait(`text("[data-kind=full] b")`, "2")
	p.click("#id-new")
	p.waitFor(`text("#parts").includes("Sequence")`)
	p.click("#step-back")
	p.waitFor(`text("#past-text").startsWith("At ")`)
	p.click("#past-back")
	p.verb(".sequencers", "create", "Create a sequencer")
	p.enter("#sure-name", "orders"+kb.Enter)
	p.wait(`text("[data-name=orders] .soft")`, "0 of 1\u202f024 held")

	const call = "#operations-IDs-takeID "
	do(
		t, p.ctx,
		chromedp.Click(chromedp.CSS("#calls")),
		chromedp.WaitVisible(chromedp.CSS(call)),
		chromedp.Click(chromedp.CSS(call+".opblock-summary-control")),
		chromedp.Click(chromedp.CSS(call+".try-out__btn")),
		chromedp.Click(chromedp.CSS(call+".execute")),
		chromedp.WaitVisible(chromedp.CSS(call+".live-responses-table code")),
	)
	p.waitFor(`text("` + call + `.live-responses-table").includes("id_str")`)
	w.quiet(t, url)
	do(t, p.ctx, chromedp.Navigate(url+"/docs"), chromedp.WaitVisible(chromedp.CSS(call)))
	p.wait(`location.pathname`, "/ops/firn/docs/")
}
