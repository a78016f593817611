package browser_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/test/testenv"
)

// verb opens the question before a verb.
func (p *page) verb(within, name, title string) {
	p.t.Helper()
	p.click(within + " [data-verb=" + name + "]")
	p.wait(`$("#sure").open + text("#sure-title")`, "true"+title)
}

// Who is logged in changes the cluster, each time after a question; others see no verbs.
func TestVerbs(t *testing.T) {
	testenv.Slow(t)
	secret := auth.NewSecret()
	secret.Kept("/var/lib/firn/admin.token", nil)
	l := live(t, &auth.Policy{Trusted: true, Secret: secret}, "host-a", "host-b", "host-c")
	p := &page{t, open(t)}
	w := watch(t, p.ctx)
	p.visit(l.url, 1440)
	p.wait(kept, "3")
	p.waitFor(`text(".may-not").includes("log in") && [...document.querySelectorAll(".verbs")].every(v => ` +
		`v.clientWidth === 0)`)

	do(t, p.ctx, chromedp.Navigate(l.url+"/ui/#login="+secret.NewLogin()))
	p.wait(`$("#forget").hidden`, "false")
	p.wait(kept, "3")
	p.verb(".sequencers", "create", "Create a sequencer")
	p.enter("#sure-name", "no name!"+kb.Enter)
	p.waitFor(`text("#sure-why").includes("no name!")`)
	p.wait(`$("#sure").open`, "true")
	w.take() // the browser tells of the refusal
	p.waitFor(`$("#sure-layout").selectedOptions[0].text === "default; rounded: 63 bits, kept are 53"`)
	p.waitFor(`[...$("#sure-layout").options].some(o => o.text === "javascript; exact")`)
	p.enter("#sure-name", "orders")
	p.enter("#sure-reserve", "3")
	p.enter("#sure-nodes", "24"+kb.Enter)
	p.wait(`$("#sure").open`, "false")
	p.wait(`text("[data-name=orders] .soft")`, "0 of 32 held")
	p.click("[data-name=orders]")
	p.waitFor(`text("#sheet .facts").includes("node IDs32, as 24 are rounded up")`)
	p.waitFor(`text("#sheet .facts").includes("for later since 20")`)
	p.waitFor(`[...document.querySelectorAll("#entries .words")].some(e => ` +
		`e.textContent.includes("orders is created") && e.textContent.includes("; 3 node IDs for later"))`)
	p.verb("#sheet", "release", "Release node IDs")
	p.enter("#sure-confirm", "orders"+kb.Enter)
	p.wait(`$("#sure").open`, "false")
	p.waitFor(`text("#sheet .facts").includes("in JavaScriptrounded: 63 bits, kept are 53")`)

	p.verb(".sequencers", "create", "Create a sequencer")
	p.wait(`$("#sure-max").disabled`, "true")
	p.js(`($("#sure-ids").value = "strict", $("#sure form").dispatchEvent(new Event("input")))`)
	p.wait(`$("#sure-layout").getClientRects().length`, "0")
	p.enter("#sure-max", "many")
	p.enter("#sure-name", "invoices"+kb.Enter)
	p.waitFor(`text("#sure-why").includes("many")`)
	w.take() // the browser tells of the refusal
	p.enter("#sure-max", "999"+kb.Enter)
	p.wait(`$("#sure").open`, "false")
	p.click("[data-name=invoices]")
	p.waitFor(`["kindcounter", "max999", "strict"].every(fact => text("#sheet .facts").includes(fact))`)
	p.verb("#sheet", "destroy", "Destroy")
	p.enter("#sure-confirm", "invoices"+kb.Enter)
	p.wait(`$("[data-name=invoices]")`, "null")
	for _, name := range []string{"receipts", "events"} {
		ids := map[string]string{"receipts": "counter", "events": "events"}[name]
		p.verb(".sequencers", "create", "Create a sequencer")
		p.js(`($("#sure-ids").value = "` + ids + `", $("#sure form").dispatchEvent(new Event("input")))`)
		if name == "receipts" {
			p.wait(`$("#sure-zone").getClientRects().length`, "0")
			p.js(`($("#sure-dated").value = "day", $("#sure form").dispatchEvent(new Event("input")))`)
			p.wait(`$("#sure-max").getClientRects().length`, "0")
			p.enter("#sure-zone", "Europe/Berlin")
		}
		p.enter("#sure-name", name+kb.Enter)
		p.wait(`$("#sure").open`, "false")
		p.click("[data-name=" + name + "]")
	}
	p.waitFor(`text("#sheet .facts").includes("orderstrict: each is above all that were given")`)
	p.waitFor(`text("#sheet .facts").includes("layout41 / 0 / 22 bits")`)
	p.click("[data-name=receipts]")
	p.waitFor(`text("#sheet .facts").includes("datedday in Europe/Berlin, then 6 digits")`)
	p.click("[data-name=orders]")

	p.verb("#sheet", "attach", "Attach this node")
	p.press(kb.Escape)
	p.wait(`$("#sure").open`, "false")
	p.verb("#sheet", "attach", "Attach this node")
	p.click("#sure-go")
	p.wait(`text("[data-name=orders] .here")`, "attached, node ID 0")

	// A member is drained, and no longer; then expelled.
	b := l.members[1].ID()
	p.click(`#nodes-body [data-id="` + b + `"] .state`)
	p.waitFor(`text("#member").includes("pinned")`)
	p.verb("#member", "drain", "Drain")
	p.click("#sure-go")
	p.waitFor(`$("#member [data-verb=undrain]")`)
	p.verb("#member", "undrain", "Undo a drain")
	p.click("#sure-go")
	p.wait(`$("#member [data-verb=undrain]")`, "null")
	p.verb("#member", "expel", "Expel")
	p.waitFor(`text("#sure").includes(" holds ") && text("#sure").includes("It leaves the cluster")`)
	p.pictures("dashboard-expel")
	p.enter("#sure-confirm", b[:6]+kb.Enter)
	p.wait(`document.querySelectorAll('#nodes-body [data-id="`+b+`"]').length`, "0")

	p.verb("#sheet", "destroy", "Destroy")
	p.wait(`$("#sure-go").disabled`, "true")
	p.enter("#sure-confirm", "order")
	p.wait(`$("#sure-go").disabled`, "true")
	p.pictures("dashboard-destroy")
	p.enter("#sure-confirm", "orders"+kb.Enter)
	p.wait(`$("#sure").open`, "false")
	p.wait(`$("[data-name=orders]")`, "null")
	w.quiet(t, l.url)
}

// Who is logged in moves a node ID, changes an allocation and shares the cluster out. What is refused says why, and the
// question stays; who may not change things sees none of these.
func TestVerbsOfSequencers(t *testing.T) {
	testenv.Slow(t)
	secret := auth.NewSecret()
	secret.Kept("/var/lib/firn/admin.token", nil)
	l := live(t, &auth.Policy{Trusted: true, Secret: secret}, "host-a", "host-b", "host-c")
	l.attach(0, "orders", nodes(16))
	a := l.members[0].ID()
	moved := find(t, l.members[1], "default").State().Node
	p := &page{t, open(t)}
	w := watch(t, p.ctx)
	p.visit(l.url, 1440)
	p.wait(kept, "3")
	p.waitFor(`["move", "allocate", "policy"].every(verb => $("[data-verb=" + verb + ` +
		`"]").getClientRects().length === 0)`)

	do(t, p.ctx, chromedp.Navigate(l.url+"/ui/#login="+secret.NewLogin()))
	p.wait(`$("#forget").hidden`, "false")
	p.wait(kept, "3")
	p.click("[data-name=default]")
	p.wait(`$("#sheet [data-verb=destroy]").getClientRects().length`, "0") // which no server destroys
	refused := func(why string) {
		t.Helper()
		p.waitFor(`text("#sure-why") !== ""`)
		if have := p.js(`text("#sure-why")`); !strings.Contains(have, why) {
			t.Errorf("it is refused: %s; want %s", have, why)
		}
		p.wait(`$("#sure").open`, "true")
		w.take() // the browser tells of the refusal
	}

	p.verb("#sheet", "move", "Move a node ID")
	p.js(`($("#sure-to").value = "` + a + `")`)
	p.enter("#sure-node", "9999"+kb.Enter)
	refused("there is no node ID 9999")
	p.pictures("dashboard-refused")
	p.enter("#sure-node", fmt.Sprint(moved)+kb.Enter)
	p.wait(`$("#sure").open`, "false")
	p.waitFor(`[...document.querySelectorAll("#entries .words")].some(e => e.textContent.startsWith("node ID ` +
		fmt.Sprint(moved) + ` of default is to move to host-a (` + a[:6] + `)"))`)
	p.waitFor(`text("#member .chips").includes("default · ` + fmt.Sprint(moved) + `")`)
	p.cell(moved, "held by "+a)

	p.verb("#sheet", "reserve", "Reserve node IDs")
	p.enter("#sure-count", "5000"+kb.Enter)
	p.wait(`$("#sure").open`, "true") // without a purpose
	p.enter("#sure-for", "warehouse"+kb.Enter)
	refused("5000")
	p.enter("#sure-count", "2"+kb.Enter)
	p.waitFor(`text("#sure-told").startsWith("The node IDs ")`)
	const reserved = `/^The node IDs \d.*\d are reserved for warehouse\. ` +
		`Their IDs may begin at 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? UTC: smaller ones may exist\.$/`
	if have := p.js(`text("#sure-told")`); p.js(reserved+`.test(text("#sure-told"))`) != "true" {
		t.Errorf("what is reserved: %s", have)
	}
	p.press(kb.Enter)
	p.wait(`$("#sure").open`, "false")
	p.waitFor(`text("#sheet .facts").includes("for warehouse since 20")`)
	p.waitFor(`text("#sheet .facts").includes("free1\u202f019")`)
	p.verb("#sheet", "release", "Release node IDs")
	p.enter("#sure-confirm", "default"+kb.Enter)
	p.wait(`$("#sure").open`, "false")
	p.waitFor(`text("#sheet .facts").includes("free1\u202f021")`)
	p.waitFor(`[...document.querySelectorAll("#entries .words")].some(e => e.textContent.startsWith(` +
		`"default gets back what was reserved for warehouse"))`)

	p.verb("#sheet", "allocate", "Change the allocation")
	p.js(`($("#sure-kind").value = "percent")`)
	p.enter("#sure-much", "500"+kb.Enter)
	refused("500")
	p.js(`($("#sure-kind").value = "count")`)
	p.enter("#sure-much", "2"+kb.Enter)
	p.wait(`$("#sure").open`, "false")
	p.waitFor(`text("#sheet .facts").includes("allocated to2 members")`)
	p.wait(`text("[data-name=default] .soft")`, "2 of 1\u202f024 held, 1 waiting")

	p.verb(".sequencers", "policy", "Share the cluster out")
	p.enter("#sure-default", "150"+kb.Enter)
	refused("150")
	p.enter("#sure-default", "60")
	p.enter("#sure-orders", "rest"+kb.Enter)
	p.wait(`$("#sure").open`, "false")
	p.waitFor(`text("#sheet .facts").includes("policy60 % of the members")`)
	p.click("[data-name=orders]")
	p.waitFor(`text("#sheet .facts").includes("policythe rest of the members")`)
	p.verb(".sequencers", "policy", "Share the cluster out")
	p.wait(`$("#sure-default").value + $("#sure-orders").value`, "60rest")
	p.enter("#sure-default", "")
	p.enter("#sure-orders", ""+kb.Enter)
	p.wait(`$("#sure").open`, "false")
	p.waitFor(`!text("#sheet .facts").includes("policy")`)
	w.quiet(t, l.url)
}
