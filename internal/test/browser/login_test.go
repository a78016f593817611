package browser_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/test/testenv"
)

// A login address logs one browser in: what others may only look at can then be changed in that tab, on the page that
// tries the calls too. The address is good once: a later visitor is told so, and can look.
func TestLogin(t *testing.T) {
	testenv.Slow(t)
	secret := auth.NewSecret()
	secret.Kept("/var/lib/firn/admin.token", nil)
	l := live(t, &auth.Policy{Trusted: true, Secret: secret}, "host-a")
	l.attach(0, "orders", nodes(16))
	login := l.url + "/ui/#login=" + secret.NewLogin()
	p := &page{t, open(t)}
	w := watch(t, p.ctx)
	do(t, p.ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(login))
	p.wait(`text("#members-count")`, "1")
	p.wait(`$("#forget").hidden + " " + $("#login").hidden + " " + $("#auth").hidden`, "false true true")
	p.wait(`location.pathname + location.hash`, "/ui/")
	p.wait(`sessionStorage.getItem("firn.token")`, secret.Token())
	if all := p.js(`document.documentElement.outerHTML + localStorage.length + document.cookie + ` +
		`location`); strings.Contains(all, secret.Token()) {
		t.Error("the page holds the secret")
	}
	p.pictures("dashboard-login")
	do(t, p.ctx, chromedp.Reload())
	p.wait(`text("#members-count") + $("#forget").hidden`, "1false")

	// The page that tries the calls knows of it.
	const call = "#operations-Sequencers-destroySequencer "
	do(
		t, p.ctx,
		chromedp.Click(chromedp.CSS("#calls")),
		chromedp.WaitVisible(chromedp.CSS(call)),
		chromedp.Click(chromedp.CSS(call+".opblock-summary-control")),
		chromedp.Click(chromedp.CSS(call+".try-out__btn")),
		chromedp.SendKeys(chromedp.CSS(call+"input"), kb.End+strings.Repeat(kb.Backspace, len("default"))+"orders"),
		chromedp.Click(chromedp.CSS(call+".execute")),
		chromedp.WaitVisible(chromedp.CSS(call+".live-responses-table code")),
	)
	p.waitFor(`text("` + call + `.live-responses-table").includes('"destroyed": true')`)
	picture(t, p.ctx, "docs-login-1440.png")
	w.quiet(t, l.url)

	// The address was used. Opening it again, in another tab, changes nothing.
	other := &page{t, open(t)}
	do(t, other.ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(login))
	other.wait(`text("#members-count") + $("#forget").hidden`, "1true")
	other.waitFor(`text("#login-why").startsWith("This login address was used already") && ` +
		`text("#login-why").includes("firn cluster dashboard")`)
	other.wait(`location.hash + sessionStorage.length`, "0")
	other.pictures("dashboard-login-used")
	other.click("#login-close")
	other.wait(`$("#login").hidden`, "true")

	// A secret that died with its node, or was taken back, is forgotten, and looking goes on.
	other.js(`sessionStorage.setItem("firn.token", "of a former start")`)
	do(t, other.ctx, chromedp.Reload())
	other.wait(`text("#members-count") + $("#forget").hidden + sessionStorage.length`, "1true0")
	other.waitFor(`text("#login-why").includes("new at each start")`)

	// Logging out, too.
	do(t, p.ctx, chromedp.Navigate(l.url+"/ui/"))
	p.wait(`text("#members-count") + $("#forget").hidden`, "1false")
	p.click("#forget")
	p.wait(`text("#members-count") + $("#forget").hidden + sessionStorage.length`, "1true0")
}

// What logs in can't be had by another site's page, nor by who does not show the secret.
func TestLoginIsNotForOthers(t *testing.T) {
	testenv.Slow(t)
	secret := auth.NewSecret()
	secret.Kept("/var/lib/firn/admin.token", nil)
	l := live(t, &auth.Policy{Trusted: true, Secret: secret}, "host-a")
	for _, tt := range []struct {
		path, body, header, value string
		want                      int
	}{
		{"/ui/logins", "", "", "", http.StatusUnauthorized},
		{"/ui/logins", "", "Authorization", "Bearer wrong", http.StatusUnauthorized},
		{"/ui/logins", "", "Authorization", "Bearer " + secret.Token(), http.StatusOK},
		{"/ui/login", `{"code":"wrong"}`, "", "", http.StatusUnauthorized},
		{"/ui/login", `{"code":"` + secret.NewLogin() + `"}`, "Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		{"/ui/login", `{"code":"` + secret.NewLogin() + `"}`, "Host", "evil.example", http.StatusForbidden},
		{"/ui/login", "no JSON", "", "", http.StatusBadRequest},
		{"/ui/login", strings.Repeat(" ", 1<<20), "", "", http.StatusBadRequest},
		{"/ui/login", `{"code":"` + secret.NewLogin() + `"}`, "", "", http.StatusOK},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.url+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		if tt.header != "" {
			r.Header.Set(tt.header, tt.value)
		}
		r.Host = r.Header.Get("Host")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != tt.want {
			t.Errorf("POST %s %.80s (%s %.20s) is answered %d; want %d", tt.path, tt.body, tt.header, tt.value,
				response.StatusCode, tt.want)
		}
	}
}
