package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/firn-id/firn/internal/test/testenv"
)

// The page shows every call, and tries one: the ID is shown exactly, as text, and for those who choose numbers as a
// number. Nothing is asked of others meanwhile, and the browser complains of nothing.
func TestTryPage(t *testing.T) {
	testenv.Slow(t)
	server, ctx := serve(t), open(t)
	w := watch(t, ctx)
	const call = "#operations-IDs-takeID "
	do(
		t, ctx,
		chromedp.Navigate(server.URL+"/docs"),
		chromedp.WaitVisible(chromedp.CSS(call)),
	)
	if got := run(t, ctx, chromedp.Evaluate[int](`document.querySelectorAll(".opblock").length`)); got < 25 {
		t.Errorf("it shows %d calls", got)
	}
	picture(t, ctx, "docs-1440.png")
	do(
		t, ctx,
		chromedp.Click(chromedp.CSS(call+".opblock-summary-control")),
		chromedp.Click(chromedp.CSS(call+".try-out__btn")),
		chromedp.Click(chromedp.CSS(call+".execute")),
		chromedp.WaitVisible(chromedp.CSS(call+".live-responses-table code")),
	)
	shows := func(quote string) {
		t.Helper()
		shown := run(t, ctx, chromedp.TextContent(chromedp.CSS(call+".live-responses-table code")))
		var id struct {
			ID  json.RawMessage `json:"id"`
			Str string          `json:"id_str"`
		}
		if err := json.Unmarshal([]byte(shown), &id); err != nil || string(id.ID) != quote+id.Str+quote ||
			len(id.Str) < 18 || !strings.Contains(shown, "\n  ") {
			t.Errorf("it shows %q, %v", shown, err)
		}
	}
	shows(`"`)
	do(
		t, ctx,
		chromedp.Click(chromedp.CSS(call+".btn-clear")),
		chromedp.SetValue(chromedp.CSS(call+"[data-param-name=ids] select"), "number"),
		chromedp.Click(chromedp.CSS(call+".execute")),
		chromedp.WaitVisible(chromedp.CSS(call+".live-responses-table code")),
	)
	shows("")
	picture(t, ctx, "docs-tried-1440.png")
	w.quiet(t, server.URL)
}

// On a phone the page is as wide as the screen, and everything can be read.
func TestTryPageOnAPhone(t *testing.T) {
	testenv.Slow(t)
	server, ctx := serve(t), open(t)
	w := watch(t, ctx)
	const call = "#operations-Sequencers-createSequencer "
	do(
		t, ctx,
		chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch),
		chromedp.Navigate(server.URL+"/docs/"),
		chromedp.WaitVisible(chromedp.CSS(call)),
		chromedp.Click(chromedp.CSS(".info summary")), // the codes of errors
	)
	picture(t, ctx, "docs-390.png")
	do(
		t, ctx,
		chromedp.Click(chromedp.CSS(call+".opblock-summary-control")),
		chromedp.WaitVisible(chromedp.CSS(call+".try-out__btn")),
	)
	picture(t, ctx, "docs-create-390.png")
	if got := run(t, ctx, chromedp.Evaluate[int](`document.documentElement.scrollWidth`)); got > 390 {
		t.Errorf("the page is %d wide", got)
	}
	w.quiet(t, server.URL)
}

// In the dark the page is dark, as the system or the dashboard is, and its text can be read.
func TestTryPageInTheDark(t *testing.T) {
	testenv.Slow(t)
	server, ctx := serve(t), open(t)
	p := &page{t, ctx}
	dark := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: dark}); err != nil {
		t.Fatal(err)
	}
	const call = "#operations-IDs-takeID "
	for _, width := range []int64{1280, 768, 390} {
		do(t, ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate(server.URL+"/docs/"),
			chromedp.WaitVisible(chromedp.CSS(call)),
			chromedp.Click(chromedp.CSS(call+".opblock-summary-control")),
			chromedp.WaitVisible(chromedp.CSS(call+".try-out__btn")))
		p.wait(`getComputedStyle(document.body).backgroundColor + (getComputedStyle($("#page")).filter !== "none")`,
			"rgb(15, 21, 28)true")
		p.wait(`document.documentElement.scrollWidth`, fmt.Sprint(width))
		picture(t, ctx, fmt.Sprintf("docs-%d-dark.png", width))
	}
	p.js(`localStorage.setItem("firn.theme", "light")`)
	do(t, ctx, chromedp.Reload(), chromedp.WaitVisible(chromedp.CSS(call)))
	p.wait(`getComputedStyle($("#page")).filter`, "none")
	p.js(`localStorage.removeItem("firn.theme")`)
}

// The policy of the page keeps it from asking others, and a complaint of the browser is seen.
func TestPolicy(t *testing.T) {
	testenv.Slow(t)
	server, other, ctx := serve(t), elsewhere(t), open(t)
	w := watch(t, ctx)
	do(t, ctx, chromedp.Navigate(server.URL+"/docs/"), chromedp.WaitVisible(chromedp.CSS("#operations-IDs-takeID")))
	w.quiet(t, server.URL)
	got := run(t, ctx, chromedp.Evaluate[string](`fetch("`+other.URL+`").then(() => "fetched", e => "refused")`,
		chromedp.EvalAwaitPromise))
	if _, said := w.take(); got != "refused" || !strings.Contains(strings.Join(said, "\n"), "Content Security Policy") {
		t.Errorf("asking another site was %s, and it was said: %q", got, said)
	}
}

// picture keeps a picture of a page in the folder FIRN_SCREENSHOTS, if there is one, for people to look at.
func picture(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	folder := os.Getenv("FIRN_SCREENSHOTS")
	if folder == "" {
		folder = t.TempDir()
	}
	if err := os.WriteFile(filepath.Join(folder, name), run(t, ctx, chromedp.FullScreenshot(100)), 0o600); err != nil {
		t.Fatal(err)
	}
}
