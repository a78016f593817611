package browser_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store/memstore"
)

var local = &auth.Policy{Trusted: true}

// kept are the members that the ring shows and that are not about to disappear.
const kept = `document.querySelectorAll("#ring .peer:not(.gone)").length`

// What happens in a cluster is seen on the page: a member dies, another joins, somebody is about to. Then the page goes
// back in the log, and returns. Nothing is asked of others meanwhile, and the browser complains of nothing.
func TestDashboard(t *testing.T) {
	testenv.Slow(t)
	l := live(t, local, "host-a", "host-b", "host-c", "host-d")
	for i := range l.members {
		l.attach(i, "orders", nodes(16))
		l.attach(i, "visits", nodes(2))
	}
	l.give("default", 300, 20*time.Millisecond)
	l.give("orders", 40, 20*time.Millisecond)
	p := &page{t, open(t)}
	w := watch(t, p.ctx)
	p.visit(l.url, 1440)

	p.wait(`text("#ready")`, "Ready")
	p.wait(`text("#store")`, "Reachable")
	p.wait(`text("#members-count")`, "4")
	p.wait(kept, "4")
	p.wait(`document.querySelectorAll("#ring .edge").length`, "4")
	p.wait(`text("#member code")`, l.members[0].ID())
	p.waitFor(`text("#member").includes("this node") && text("#member").includes("host-a")`)
	p.wait(`text("[data-name=orders] .soft")`, "4 of 16 held")
	p.wait(`text("[data-name=visits] .soft")`, "2 of 2 held, 2 waiting")
	p.wait(`text("#rate-now") + " " + text("#rate-note")`, "4\u202f500 of the whole cluster")
	p.click("#rates-recent")
	p.waitFor(`text("#series").includes("default") && text("#series").includes("orders")`)
	p.click("#rates-hour")

	// Whom one points at in the ring is told.
	b := l.members[1].ID()
	p.pointAt(b, `text("#member").includes("host-b") && text("#member").includes("default · ")`)

	// Node IDs, with their horizons.
	p.click("[data-name=orders]")
	p.wait(`text("[data-kind=full] b")`, "4")
	p.wait(`text("[data-kind=never] b")`, "12")
	node := find(t, l.members[1], "orders").State().Node
	p.cell(node, "held by "+b+" (host-b), horizon ")

	// Somebody begins to join.
	before := l.members[0].Value().Position()
	l.prepare("newcomer00001")
	p.wait(`document.querySelectorAll("#ring .joiner.prepared").length`, "1")
	p.wait(`text("#members-note")`, "1 joining")
	p.pictures("dashboard")

	// A member is cut off: its session ends, the others take it out, and its node IDs are free.
	l.members[1].client.CutOff(true)
	p.wait(`text("#members-count")`, "3")
	p.wait(kept, "3")
	p.wait(`document.querySelectorAll('#nodes [data-id="`+b+`"]').length`, "0")
	p.wait(`text("[data-name=orders] .soft")`, "3 of 16 held")
	p.wait(`text("[data-kind=used] b, [data-kind=closing] b")`, "1")
	p.waitFor(`text("#entries .goes .words").startsWith("host-b (` + b[:6] + `) is removed")`)

	// It was there, though.
	p.slideTo(before)
	p.waitFor(`text("#past-text").startsWith("At ") && text("#past-note").includes("(position ` + number(int(before)) +
		`)")`)
	p.wait(kept, "4")
	p.waitFor(`text(".card.ring .when").startsWith("at ")`)
	p.wait(`text("[data-name=orders] .soft")`, "4 of 16 held")
	p.wait(`document.querySelectorAll("#ring .joiner:not(.gone)").length`, "0")
	p.wait(`text("#members-count")`, "3") // health is of now
	p.wait(`$("#slider").dataset.position`, fmt.Sprint(before))
	p.pictures("dashboard-past")
	p.click("#past-back")
	p.wait(kept, "3")
	p.wait(`$("#past").hidden`, "true")

	// A member joins.
	l.join("host-e")
	p.wait(`text("#members-count")`, "4")
	p.wait(kept, "4")
	p.find("host-e")
	p.wait(`document.querySelectorAll("#nodes-body tr").length`, "1")
	p.wait(`text("#nodes-body code")`, l.members[4].ID()[:6])
	w.quiet(t, l.url)
}

// A node without sequencers and without other members says so, and goes on when there is one.
func TestNothingYet(t *testing.T) {
	testenv.Slow(t)
	l := &living{t: t, store: memstore.NewService()}
	l.join("host-a")
	l.serve(local)
	p := &page{t, open(t)}
	w := watch(t, p.ctx)
	p.visit(l.url, 1440)
	p.wait(kept, "1")
	p.wait(`text("#no-sequencers")`, "There is no sequencer yet.")
	p.wait(`$("#sheet").hidden + text("#members-note")`, "truealone, ready")
	p.wait(`text("#ready-why")`, "it is not attached to this sequencer")
	p.pictures("dashboard-empty")
	l.attach(0, "orders", nodes(16))
	p.wait(`$("#sheet").hidden + text("#no-sequencers")`, "false")
	p.wait(`text("[data-name=orders] .soft")`, "1 of 16 held")
	w.quiet(t, l.url)
}

// An ID is decoded to the last digit, and anything else is refused.
func TestTakingApart(t *testing.T) {
	testenv.Slow(t)
	l := live(t, local, "host-a")
	l.attach(0, "orders", nodes(16))
	p := &page{t, open(t)}
	w := watch(t, p.ctx)
	p.visit(l.url, 1440)
	p.wait(`document.querySelectorAll("#id-of option").length`, "9")
	p.wait(`document.querySelectorAll("#parts rect.off").length`, "63")

	const id = firn.ID(117465411174400005)
	p.enter("#id", id.String()+kb.Enter)
	p.waitFor(`text("#parts dl div.time dd").startsWith("2026-11-21 03:25:36.425 UTC")`)
	p.wait(`text("#parts dl div.node strong")`, "800")
	p.wait(`text("#parts dl div.node dd").includes("held by nobody, and never was")`, "true")
	p.wait(`text("#parts dl div.sequence strong")`, "5")
	p.wait(`[...document.querySelectorAll("#parts .bit")].map(b => b.textContent).join("")`,
		fmt.Sprintf("%063b", int64(id)))

	p.click("#id-new")
	p.wait(`text("#parts dl div.node button")`, l.members[0].ID())
	given := p.js(`$("#id").value`)
	if parsed, err := firn.Parse(given); err != nil || parsed <= 1<<53 {
		t.Errorf("it took %s", given)
	}
	p.wait(`[...document.querySelectorAll("#parts .bit")].reduce((n, b) => n * 2n + BigInt(b.textContent), 0n)`, given)
	p.pictures("dashboard-id")

	// The node reads other forms. Spaces and commas do not count.
	p.enter("#id", "01a1fc23-5529-7000-81a1-522b4a720005"+kb.Enter)
	p.waitFor(`text("#parts dl div.time dd").startsWith("2026-11-21 03:25:36.425 UTC")`)
	p.wait(`$("#id").value`, id.String())
	p.enter("#id", "117465411174400007-26"+kb.Enter)
	p.wait(`text("#parts dl div.sequence strong")`, "7")
	p.enter("#id", " 117,465_411174 400006"+kb.Enter)
	p.wait(`text("#parts dl div.sequence strong")`, "6")
	w.quiet(t, l.url)
	p.enter("#id", "ord_038aj5d574005"+kb.Enter) // the browser says that it was refused
	p.wait(`text("#inspect-why")`, `"ord_038aj5d574005" is not a prefixed ID: the sequencer "default" has no prefix`)
	p.enter("#id", "as=prefixed-decimal ORD5"+kb.Enter)
	p.wait(`text("#inspect-why")`, `"ORD5" is not a prefixed-decimal ID: the sequencer "default" has no prefix`)
	p.enter("#id", "1000000000000000"+kb.Enter)
	p.waitFor(`text("#inspect-why").endsWith("say which form it has: as=decimal or as=hex")`)
	w.take()
	p.enter("#id", "as=hex 1000000000000000"+kb.Enter)
	p.wait(`$("#id").value + text("#inspect-why")`, "1152921504606846976")
	p.enter("#id", "as=decimal 1000000000000000"+kb.Enter)
	p.waitFor(`text("#parts dl div.time dd").startsWith("2026-01-03 18:13:38.579 UTC")`)
	p.enter("#id", "9223372036854775808"+kb.Enter)
	p.waitFor(`text("#inspect-why").includes("9223372036854775808")`)
	p.enter("#id", ""+kb.Enter)
	p.wait(`text("#inspect-why")`, "Enter an ID.")

	// IDs of others, by an address that can be shared.
	p.visit(l.url, 1440)
	p.js(`location.hash = "#inspect=1212092628029698048&layout=twitter"`)
	p.waitFor(`text("#parts dl div.time dd").startsWith("2019-12-31 19:26:16.771 UTC")`)
	p.wait(`$("#id-of").value`, "layout=twitter")
	p.wait(`text("#parts dl div.node dd")`, "327 datacenter 10, node 7")
	p.js(`($("#id-of").value = "layout=discord", $("#id-of").dispatchEvent(new Event("change")))`)
	p.waitFor(`text("#parts dl div.time dd").startsWith("2024-02-27 17:43:22.114 UTC")`)
	p.wait(`location.hash`, "#inspect=1212092628029698048&layout=discord")
	do(t, p.ctx, chromedp.Reload())
	p.wait(`$("#id").value + $("#id-of").value`, "1212092628029698048layout=discord")
	p.waitFor(`text("#parts dl div.time dd").startsWith("2024-02-27 17:43:22.114 UTC")`)
	p.enter("#id", "12x"+kb.Enter)
	p.wait(`text("#inspect-why")`,
		"“12x” is not an ID; want a decimal number from 0 to 9223372036854775807, or a sequencer for other forms.")
	p.js(`location.hash = "#inspect=1&sequencer=nobody"`)
	p.wait(`text("#inspect-why")`, "There is no sequencer nobody here.")

	// Also before the page has heard of the cluster.
	early := run(t, p.ctx, chromedp.Evaluate[any](`import("/ui/inspect.js").then(async ({ Inspect }) => {
		const early = new Inspect({});
		early.visit();
		await early.inspect();
	}).then(() => "quiet", String)`, chromedp.EvalAwaitPromise))
	if early != "quiet" {
		t.Error(early)
	}
	p.wait(`text("#inspect-why")`, "Choose a sequencer or a layout.")
	w.quiet(t, l.url)
}

// Everything can be done with the keyboard.
func TestKeyboard(t *testing.T) {
	testenv.Slow(t)
	l := live(t, local, "host-a", "host-b", "host-c")
	p := &page{t, open(t)}
	p.visit(l.url, 1440)
	p.wait(kept, "3")
	p.press(kb.Tab)
	p.wait(`document.activeElement.className`, "skip")
	p.press(kb.Enter)
	p.wait(`document.activeElement.id`, "main")
	p.tabTo("find")
	p.tabTo("nodes")
	p.press(kb.ArrowDown)
	p.waitFor(`$("#nodes-body tr.pointed")`)
	first := p.js(`$("#nodes-body tr.pointed").dataset.id`)
	p.wait(`text("#member code")`, first)
	p.press(kb.Enter)
	p.wait(`$("#nodes-body tr[aria-selected]")?.dataset.id`, first)
	p.press(kb.Escape)
	p.wait(`$("#nodes-body tr[aria-selected]")`, "null")
	p.tabTo("ring")
	p.press(kb.ArrowRight)
	next, _ := l.members[0].Value().Watched(l.members[0].ID())
	p.wait(`text("#member code")`, next)
	p.press(kb.Enter)
	p.waitFor(`text("#member").includes("pinned")`)
	p.tabTo("entries")
	const position, live = `$("#slider").dataset.position`, `$("#live").getAttribute("aria-pressed")`
	p.waitFor(`$("#entries li")`)
	p.press(kb.ArrowDown)
	p.wait(`$("#past").hidden`, "false")
	at := p.js(position)
	p.press(kb.ArrowDown)
	p.waitFor(position + ` !== "` + at + `"`)
	p.press(kb.ArrowUp)
	p.wait(position, at)
	p.press(kb.End) // there may be entries by now that were not there before
	p.wait(`$("#past").hidden`, "true")
	p.wait(live, "true")
	p.press(kb.Home)
	p.waitFor(`text("#past-note").includes("(position 0)")`)
	p.wait(kept, "0")
	p.press(kb.Escape)
	p.wait(kept, "3")

	p.tabTo("id")
	do(t, p.ctx, chromedp.KeyEvent("117465411174400005"+kb.Enter))
	p.wait(`text("#parts dl div.node strong")`, "800")

	p.tabTo("sheet-grid")
	p.waitFor(`$("#sheet-grid").dataset.columns`)
	for range 4 {
		p.press(kb.ArrowRight)
	}
	p.waitFor(`text("#cell").startsWith("Node ID 3:")`)
	p.press(kb.ArrowDown)
	p.waitFor(`text("#cell").startsWith("Node IDs 64 to 1\u202f023: free, never used")`)
	p.press(kb.ArrowUp)
	p.waitFor(`text("#cell").startsWith("Node ID 0:")`)
	p.press(kb.End)
	p.waitFor(`text("#cell").startsWith("Node IDs 64 to 1\u202f023")`)

	p.tabTo("slider")
	p.press(kb.ArrowLeft)
	p.wait(`$("#past").hidden`, "false")
	p.waitFor(`!$("#slider").getAttribute("aria-valuetext").startsWith("Now")`)
	p.press(kb.Home)
	p.waitFor(`text("#past-note").includes("(position 0)")`)
	p.press(kb.End)
	p.wait(`$("#past").hidden`, "true")
	p.wait(live, "true")
}

// Keys go on from where one is, also before that is drawn.
func TestKeysBeforeAFrame(t *testing.T) {
	testenv.Slow(t)
	_, _, url := told(t)
	p := &page{t, open(t)}
	p.visit(url, 1440)
	p.wait(kept, "3")
	p.wait(`text("#member code")`, "a1")
	do(t, p.ctx, chromedp.Focus(chromedp.CSS("#ring")))
	p.js(`(window.held = [], window.later = requestAnimationFrame, window.requestAnimationFrame = draw => ` +
		`held.push(draw))`)
	p.press(kb.ArrowRight)
	p.press(kb.ArrowRight)
	p.press(kb.Enter)
	p.js(`(window.requestAnimationFrame = window.later, held.forEach(draw => draw()))`)
	ring := p.js(`[...document.querySelectorAll("#ring .peer")].map(g => g.dataset.id).join()`)
	p.wait(`text("#member code")`, strings.Split(ring, ",")[2])
	p.waitFor(`text("#member").includes("pinned")`)
}

// With tokens the page asks for one, says why one does not do, and keeps the right one as long as the tab is open.
func TestTokenOfADashboard(t *testing.T) {
	testenv.Slow(t)
	const admin, app = "the token of an administrator", "the token of an application"
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	entries := fmt.Sprintf("- {name: admin, sha256: %s, allow: [admin]}\n- {name: app, sha256: %s, allow: [issue]}\n",
		auth.Hash(admin), auth.Hash(app))
	if err := os.WriteFile(file, []byte(entries), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.OpenTokens(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l := live(t, &auth.Policy{Tokens: tokens, Trusted: true}, "host-a")
	p := &page{t, open(t)}
	p.visit(l.url, 1440)
	p.wait(`$("#auth").hidden + " " + $("#board").hidden + " " + document.activeElement.id`, "false true token")
	p.wait(`text("#auth-why")`, "")
	p.pictures("dashboard-auth")
	p.enter("#token", "wrong"+kb.Enter)
	p.waitFor(`text("#auth-why").startsWith("The token was refused: unknown token")`)
	p.pictures("dashboard-auth-refused")
	p.enter("#token", app+kb.Enter)
	p.waitFor(`text("#auth-why").includes('the token "app" allows issue, not admin')`)
	p.enter("#token", admin+kb.Enter)
	p.wait(`text("#members-count")`, "1")
	p.wait(`$("#auth").hidden`, "true")
	do(t, p.ctx, chromedp.Reload())
	p.wait(`text("#members-count")`, "1")
	if all := p.js(`document.documentElement.outerHTML + localStorage.length + document.cookie + ` +
		`location`); strings.Contains(all, admin) {
		t.Error("the page holds the token")
	}

	// It is taken back.
	if err := os.WriteFile(file, []byte(entries[strings.Index(entries, "\n")+1:]), 0o600); err != nil {
		t.Fatal(err)
	}
	p.wait(`$("#auth").hidden`, "false")
	p.waitFor(`text("#auth-why").startsWith("The token was refused")`)
}

// A page that loses its server says so, and goes on when there is one again.
func TestLostConnection(t *testing.T) {
	testenv.Slow(t)
	l := live(t, local, "host-a", "host-b")
	p := &page{t, open(t)}
	p.visit(l.url, 1440)
	p.wait(kept, "2")
	address := l.served.Listener.Addr().String()
	l.served.Listener.Close()
	l.served.CloseClientConnections()
	p.wait(`text("#link-text")`, "Connection lost")
	p.waitFor(`!$("#lost").hidden && text("#lost").includes("This page shows the state at ")`)
	p.wait(kept, "2")
	p.pictures("dashboard-lost")
	l.serveAgain(address)
	p.wait(`text("#link-text")`, "Connected")
	p.wait(`$("#lost").hidden`, "true")
	l.join("host-c")
	p.wait(kept, "3")
}

// What others wrote into the store is shown as text, whatever it is.
func TestHostileNames(t *testing.T) {
	testenv.Slow(t)
	const script = `<img src=x onerror=alert(1)><script>alert(2)</script>`
	l := live(t, local, "host-a", script)
	p := &page{t, open(t)}
	w := watch(t, p.ctx)
	p.visit(l.url, 1440)
	p.wait(kept, "2")
	p.click(fmt.Sprintf(`#nodes-body [data-id=%q] .state`, l.members[1].ID()))
	p.waitFor(`text("#member").includes("<script>alert(2)</script>")`)
	p.find("onerror")
	p.wait(`document.querySelectorAll("#nodes-body tr").length`, "1")
	p.wait(`document.querySelectorAll("img, #board script").length`, "0")
	w.quiet(t, l.url)
}

func find(t *testing.T, b *being, name string) *peer.Sequencer {
	t.Helper()
	q, ok := b.Sequencer(name)
	if !ok {
		t.Fatalf("it is not attached to %s", name)
	}
	return q
}
