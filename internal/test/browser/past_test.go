package browser_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/test/testenv"
)

// The log and the slider tell why each member left, and by whom.
func TestCauses(t *testing.T) {
	testenv.Slow(t)
	c, url := crowded(t, 6, 1)
	all := c.Value().Members()
	by, short := all[0], func(id string) string { return id[:6] }
	p := &page{t, open(t)}
	p.visit(url, 1440)
	p.wait(kept, "6")
	for i, tt := range []struct {
		leave cluster.Command
		says  string
	}{
		{cluster.Leave{Member: all[1], Why: cluster.CauseLeft, By: all[1]}, " left"},
		{
			cluster.Leave{Member: all[2], Why: cluster.CauseSessionEnded, By: by},
			" is removed by " + short(by) + ": its session ended",
		},
		{
			cluster.Leave{Member: all[3], Why: cluster.CauseFoundDead, By: by},
			" is removed by " + short(by) + ", which found it dead",
		},
		{cluster.Expel{Member: all[4], By: by}, " is expelled by way of " + short(by)},
		{cluster.Leave{Member: all[5]}, " is removed: it left or died"},
	} {
		c.add(t, tt.leave)
		says := short(all[i+1]) + tt.says
		p.waitFor(`text("#entries li:first-child .words").startsWith(` + fmt.Sprintf("%q", says) + `)`)
		p.waitFor(`text("#timeline-text").includes(` + fmt.Sprintf("%q", says) + `)`)
		p.waitFor(`$("#slider").getAttribute("aria-valuetext").endsWith(` + fmt.Sprintf("%q", says) + `)`)
		p.wait(`$("#entries li:first-child").className`, "goes")
		p.wait(kept, fmt.Sprint(5-i))
	}
	do(t, p.ctx, chromedp.Focus(chromedp.CSS("#slider")))
	p.press(kb.ArrowLeft)
	p.waitFor(`$("#slider").getAttribute("aria-valuetext").endsWith("is expelled by way of ` + short(by) + `")`)
	p.wait(kept, "2")
	p.pictures("dashboard-causes")

	// One whose clock is late is told apart.
	c.now = func() time.Time { return time.Now().Add(-time.Hour) }
	c.join(t)
	p.waitFor(`text("#entries li:first-child .at").endsWith("late clock")`)
}

// One whose clock is hours ahead spoils the times of its own entries alone: no change is of the future, and what comes
// after it has its time.
func TestAClockAheadInTheLog(t *testing.T) {
	testenv.Slow(t)
	c, url := crowded(t, 3, 1)
	p := &page{t, open(t)}
	p.visit(url, 1440)
	p.wait(kept, "3")
	marks := `[...document.querySelectorAll("#entries li")].filter(e => e.dataset.at > ` +
		fmt.Sprint(c.Value().Position()) + `).map(e => e.dataset.wrong).join()`
	c.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	c.join(t)
	c.now = time.Now
	p.wait(kept, "4")
	p.waitFor(marks + `.replaceAll("clock ahead", "").replaceAll(",", "") === "" && ` + marks +
		`.includes("clock ahead")`)
	p.waitFor(`text("#position").startsWith("by ")`) // when it was read
	ahead := p.js(marks)
	c.add(t, cluster.PeerGC{By: c.Value().Members()[0]})
	p.wait(marks, ","+ahead)
	for range 2 { // and once it is loaded again
		p.waitFor(`/^\d\d:\d\d:\d\d$/.test(text("#position"))`)
		p.waitFor(`Number($("#slider").max) - Date.now() < 60e3`)
		p.wait(marks, ","+ahead)
		p.visit(url, 1440)
		p.wait(kept, "4")
	}
}

// The slider goes over days as over seconds, and says which day it is at.
func TestDays(t *testing.T) {
	testenv.Slow(t)
	const day = 24 * time.Hour
	now := time.Now().Add(-5 * day)
	c := gather(t, 3, 1, func() time.Time { return now })
	for range 4 { // a member each day
		now = now.Add(day)
		c.join(t)
	}
	url := c.serve(t)
	p := &page{t, open(t)}
	p.visit(url, 1440)
	p.wait(kept, "7")
	date := func(ago time.Duration) string {
		return p.js(
			fmt.Sprintf(`new Date(%d).toLocaleDateString("en-GB", {day: "numeric", month: "short", year: "numeric"})`,
				time.Now().Add(-ago).UnixMilli()))
	}
	p.waitFor(`text("#log-note").includes("since ` + date(5*day) + `")`)
	for ago, members := range map[time.Duration]int{
		12 * time.Hour: 7, 36 * time.Hour: 6, 84 * time.Hour: 4,
		108 * time.Hour: 3,
	} {
		p.js(fmt.Sprintf(`($("#slider").value = %d, $("#slider").dispatchEvent(new Event("input")))`,
			time.Now().Add(-ago).UnixMilli()))
		if members == 7 { // nothing has happened since
			p.wait(`$("#live").getAttribute("aria-pressed")`, "true")
			continue
		}
		p.wait(kept, fmt.Sprint(members))
		for _, css := range []string{"#past-text", ".card.ring .when", "#timeline-text"} {
			p.waitFor(`text("` + css + `").includes("` + date(ago) + `")`)
		}
		p.waitFor(`$("#slider").getAttribute("aria-valuetext").startsWith("` + date(ago) + `")`)
		p.waitFor(`text("#entries .here .at small") !== ""`)
	}
	p.pictures("dashboard-days")
	p.press(kb.Escape)
}
