package browser_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// page is a tab with the dashboard.
type page struct {
	t   *testing.T
	ctx context.Context
}

// helpers are what the expressions of a test use.
const helpers = `const $ = s => document.querySelector(s), text = s => $(s)?.textContent.trim() ?? "";`

// visit opens the dashboard in a window of this width, and waits until it shows something.
func (p *page) visit(url string, width int64) {
	p.t.Helper()
	do(p.t, p.ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate(url+"/ui/"))
	p.waitFor(`$("#board:not([hidden]), #auth:not([hidden])")`)
}

func (p *page) js(expression string) string {
	p.t.Helper()
	return fmt.Sprint(run(p.t, p.ctx, chromedp.Evaluate[any]("(() => {"+helpers+"return "+expression+"})()")))
}

// wait waits until an expression has this value.
func (p *page) wait(expression, want string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience/4)
	defer cancel()
	is := fmt.Sprintf("(() => {%sreturn String(%s) === %q})()", helpers, expression, want)
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](is)); err != nil {
		p.t.Fatalf("%s is %q, want %q: %v; problems: %s", expression, p.js(expression), want, err,
			p.js(`text("#problems")`))
	}
}

// waitFor waits until an expression is true.
func (p *page) waitFor(expression string) {
	p.t.Helper()
	p.wait("Boolean("+expression+")", "true")
}

func (p *page) click(css string) {
	p.t.Helper()
	do(p.t, p.ctx, chromedp.Click(chromedp.CSS(css)))
}

func (p *page) press(keys string) {
	p.t.Helper()
	do(p.t, p.ctx, chromedp.KeyEvent(keys))
}

// enter has a box hold a text. Keys such as Enter come after.
func (p *page) enter(css, keys string) {
	p.t.Helper()
	p.js(fmt.Sprintf(`$(%q).value = ""`, css))
	do(p.t, p.ctx, chromedp.SendKeys(chromedp.CSS(css), keys))
}

// tabTo goes on with the tabulator until an element has the focus.
func (p *page) tabTo(id string) {
	p.t.Helper()
	for range 200 {
		p.press(kb.Tab)
		if p.js("document.activeElement.id") == id {
			return
		}
	}
	p.t.Fatalf("the tabulator does not come to %s", id)
}

// pointUntil points again and again until an expression is true: what is above may grow, and move the place away.
func (p *page) pointUntil(expression string, point func()) {
	p.t.Helper()
	for deadline := time.Now().Add(patience / 4); p.js("Boolean("+expression+")") != "true"; p.frames() {
		if time.Now().After(deadline) {
			p.t.Fatalf("wherever the pointer comes to, it is never true that %s; the cell: %s; the member: %s",
				expression, p.js(`text("#cell")`), p.js(`text("#member")`))
		}
		point()
	}
}

// pointAt points at a member in the ring, which is drawn as an element of its own, until an expression about it is
// true.
func (p *page) pointAt(id, expression string) {
	p.t.Helper()
	p.pointUntil(fmt.Sprintf(`text("#member code") === %q && %s`, id, expression), func() {
		do(p.t, p.ctx, chromedp.ScrollIntoView(chromedp.CSS("#ring")))
		p.settle()
		p.mouse(fmt.Sprintf(`$('#ring [data-id=%q] .dot').getBoundingClientRect()`, id), 0.5, 0.5)
	})
}

// cell points at a node ID of the grid, which has all, until the words about it begin so.
func (p *page) cell(node int64, words string) {
	p.t.Helper()
	p.pointUntil(fmt.Sprintf(`text("#cell").startsWith("Node ID %d: %s")`, node, words), func() {
		do(p.t, p.ctx, chromedp.ScrollIntoView(chromedp.CSS("#sheet-grid")))
		p.waitFor(`$("#sheet-grid").dataset.columns`)
		columns, err := strconv.ParseInt(p.js(`$("#sheet-grid").dataset.columns`), 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		p.mouse(`$("#sheet-grid").getBoundingClientRect()`, (float64(node%columns)+0.5)/float64(columns), 0.1)
	})
}

// frames waits for two frames.
func (p *page) frames() {
	p.t.Helper()
	run(p.t, p.ctx,
		chromedp.Evaluate[any](`new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))`,
			chromedp.EvalAwaitPromise))
}

// mouse moves the mouse to a place within a box.
func (p *page) mouse(box string, x, y float64) {
	p.t.Helper()
	at := run(p.t, p.ctx,
		chromedp.Evaluate[[]float64](
			fmt.Sprintf(`(() => {%s const b = %s; return [b.left + b.width * %v, b.top + b.height * %v]})()`,
				helpers, box, x, y)))
	do(p.t, p.ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1]))
}

// slideTo moves the slider to a position of the log.
func (p *page) slideTo(position int64) {
	p.t.Helper()
	do(p.t, p.ctx, chromedp.Focus(chromedp.CSS("#slider")))
	for range 500 {
		before := p.js(`$("#slider").dataset.position`)
		p.press(kb.ArrowLeft)
		p.waitFor(fmt.Sprintf(`$("#slider").dataset.position !== %q`, before))
		at, _ := strconv.ParseInt(p.js(`$("#slider").dataset.position`), 10, 64)
		if at == position {
			return
		}
	}
	p.t.Fatalf("the slider does not come to %d", position)
}

// find types into the box that finds members.
func (p *page) find(words string) {
	p.t.Helper()
	do(p.t, p.ctx, chromedp.SendKeys(chromedp.CSS("#find"), words))
}

// settle waits until nothing moves any more.
func (p *page) settle() {
	p.t.Helper()
	p.waitFor(`document.getAnimations().every(a => a.playState !== "running")`)
}

// pictures keeps pictures of the page, from a screen to a phone, light and dark.
func (p *page) pictures(name string) {
	p.t.Helper()
	// also what is not in the window
	p.js(`(window.whole = new CSSStyleSheet(), whole.replaceSync(".card { content-visibility: visible }"), ` +
		`document.adoptedStyleSheets = [whole])`)
	for _, width := range []int64{1280, 768, 390} {
		for _, theme := range []string{"light", "dark"} {
			features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}
			if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia,
				emulation.SetEmulatedMediaParams{Features: features}); err != nil {
				p.t.Fatal(err)
			}
			do(p.t, p.ctx, chromedp.EmulateViewport(width, 900))
			// what sticks to an edge is at that of the page, whose parts get their sizes once they are seen
			for height := int64(900); ; {
				p.settle()
				whole := run(p.t, p.ctx, chromedp.Evaluate[int64](`document.documentElement.scrollHeight`))
				if whole == height {
					break
				}
				height = whole
				do(p.t, p.ctx, chromedp.EmulateViewport(width, height))
				p.frames()
			}
			p.waitFor(`[...document.querySelectorAll("#chart")].every(c => c.clientWidth === 0 || ` +
				`Math.abs(c.clientWidth - c.parentElement.clientWidth) < 1)`)
			p.waitFor(`[...document.querySelectorAll("#sheet-grid")].every(c => c.clientWidth === 0 || c.clientWidth ` +
				`> c.parentElement.clientWidth / 3)`)
			if wide := run(p.t, p.ctx, chromedp.Evaluate[int64](`document.documentElement.scrollWidth`)); wide > width {
				p.t.Errorf("%s at %d is %d wide", name, width, wide)
			}
			if p.js(`$(".brand h1").getBoundingClientRect().right > $(".controls").getBoundingClientRect().left && `+
				`$(".brand h1").getBoundingClientRect().bottom > `+
				`$(".controls").getBoundingClientRect().top`) == "true" {
				p.t.Errorf("%s at %d: the head of the page overlaps", name, width)
			}
			if cut := p.js(`[...document.querySelectorAll("#nodes-body td:not(.node)")].filter(c => c.scrollWidth > ` +
				`c.clientWidth).map(c => c.textContent).join()`); cut != "" {
				p.t.Errorf("%s at %d: the table of nodes cuts off %s", name, width, cut)
			}
			picture(p.t, p.ctx, fmt.Sprintf("%s-%d-%s.png", name, width, theme))
		}
	}
	p.js(`(document.adoptedStyleSheets = [])`)
	do(p.t, p.ctx, chromedp.EmulateViewport(1440, 900))
}

// number is a number as the page writes it.
func number(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}
