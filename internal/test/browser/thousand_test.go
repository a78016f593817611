package browser_test

import (
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/ui"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/internal/test/testenv"
)

var (
	load     = flag.Duration("dashboard-load", 0, "for how long TestDashboardLoad measures; 0: it does not")
	loadSize = flag.Int("dashboard-members", 10_000, "how many members it has: at least 200, which are dots")
)

// crowded serves the dashboard of a crowd that is gathered.
func crowded(t *testing.T, members, sequencers int) (*crowd, string) {
	t.Helper()
	c := gather(t, members, sequencers, time.Now)
	return c, c.serve(t)
}

// serve serves the dashboard of a crowd.
func (c *crowd) serve(t *testing.T) string {
	t.Helper()
	began := time.Now()
	s := calls.New(c.Member, calls.Options{Default: new(servertest.Issuer)})
	served := httptest.NewServer(administer(s, &auth.Policy{Trusted: true}, ui.Options{Given: func() []ui.NodeGiven {
		given := map[string]uint64{}
		for i, name := range c.names {
			given[name] = uint64(time.Since(began).Milliseconds()) * uint64(100/(i+1))
		}
		return []ui.NodeGiven{{Given: given}}
	}}))
	t.Cleanup(func() {
		s.Drain()
		served.CloseClientConnections()
		served.Close()
	})
	return served.URL
}

// A thousand members and ten sequencers can be read, and somebody who comes is seen among them.
func TestDashboardOfAThousand(t *testing.T) {
	testenv.Slow(t)
	c, url := crowded(t, 1024, 10)
	ctx := open(t)
	w := watch(t, ctx)
	p := &page{t, ctx}
	p.visit(url, 1440)
	p.wait(`text("#members-count")`, number(1024))
	p.wait(`$("#ring").getAttribute("aria-label")`, "Ring of 1\u202f024 members")
	p.wait(`document.querySelectorAll("[role=tab]").length`, "10")
	p.wait(`$("#dots").dataset.dots`, "1024")
	p.wait(`text("[data-name=orders] .soft")`, "1\u202f024 of 1\u202f024 held")
	do(t, ctx, chromedp.ScrollIntoView(chromedp.CSS("#sheet canvas")))
	p.wait(`text("[data-kind=over] b")`, "28")
	p.wait(`text("#rate-now").length > 1`, "true")
	p.pictures("dashboard-1024")

	c.join(t)
	p.wait(`text("#members-count")`, number(1025))
	p.wait(`text("[data-name=orders] .soft")`, "1\u202f024 of 1\u202f024 held, 1 waiting")
	p.find("3kq7wm5xh2rvc")
	p.wait(`text("#nodes-body tr .who")`, "rack-kq7.example.org3kq7wm · this node")
	w.quiet(t, url)
}

// Rings of any size can be read.
func TestRingsOfAnySize(t *testing.T) {
	testenv.Slow(t)
	for _, size := range []int{1, 2, 3, 16, 200} {
		_, url := crowded(t, size, 2)
		p := &page{t, open(t)}
		p.visit(url, 1440)
		p.wait(`text("#ring .count")`, fmt.Sprint(size))
		edges := map[int]int{1: 0, 200: 0}
		want, ok := edges[size]
		if !ok {
			want = size
		}
		p.wait(`document.querySelectorAll("#ring .edge").length`, fmt.Sprint(want))
		p.settle()
		picture(t, p.ctx, fmt.Sprintf("ring-%d-1440.png", size))
	}
}

// A window that is made narrower never has the page stick out of it, not even until the page has drawn for it.
func TestNarrowedWindow(t *testing.T) {
	testenv.Slow(t)
	_, url := crowded(t, 16, 2)
	p := &page{t, open(t)}
	p.visit(url, 1440)
	p.wait(`text("#ring .count")`, "16")
	p.waitFor(`["#marks", "#chart", "#sheet-grid"].every(c => $(c).clientWidth > 390)`)
	p.js(`window.requestAnimationFrame = () => 0`)
	do(t, p.ctx, chromedp.EmulateViewport(390, 900))
	if wide := p.js(`document.documentElement.scrollWidth`); wide != "390" {
		t.Errorf("the page is %s wide in a window of 390", wide)
	}
}

// What the dashboard of many members costs: until it shows them, at rest, and while a few entries come each second.
func TestDashboardLoad(t *testing.T) {
	if *load == 0 {
		t.Skip("-dashboard-load is not given")
	}
	c, url := crowded(t, *loadSize, 1)
	p := &page{t, openFor(t, *load*2+5*time.Minute)}
	p.visit(url, 1440) // a warm browser, and a server that has looked at all once
	p.wait(`text("#members-count")`, number(*loadSize))
	do(t, p.ctx, chromedp.Navigate("about:blank"))
	began := time.Now()
	p.visit(url, 1440)
	p.wait(`text("#members-count")`, number(*loadSize))
	p.wait(`$("#dots").dataset.dots`, fmt.Sprint(*loadSize))
	t.Logf("%d members: shown after %v", *loadSize, time.Since(began).Round(10*time.Millisecond))
	measure(t, p.ctx, "at rest")
	churning, end := context.WithCancel(p.ctx)
	var churn sync.WaitGroup
	churn.Go(func() { c.churn(churning, t, 250*time.Millisecond) })
	defer churn.Wait()
	defer end()
	measure(t, p.ctx, "with 4 entries a second")
}

// measure prints what the server and the browser use meanwhile, as parts of one core.
func measure(t *testing.T, ctx context.Context, meanwhile string) {
	do(t, ctx, chromedp.Sleep(5*time.Second))
	began, server, chromium := time.Now(), cpu(t, os.Getpid()), cpu(t, browsers(t)...)
	do(t, ctx, chromedp.Sleep(*load))
	took := time.Since(began)
	share := func(used time.Duration) float64 { return 100 * used.Seconds() / took.Seconds() }
	server, chromium = cpu(t, os.Getpid())-server, cpu(t, browsers(t)...)-chromium
	t.Logf("%s, for %v: the server with this test uses %.1f %% of a core, the browser %.1f %%",
		meanwhile, took.Round(time.Second), share(server), share(chromium))
}

// cpu is the time that processes have used of all cores.
func cpu(t *testing.T, processes ...int) (all time.Duration) {
	t.Helper()
	for _, p := range processes {
		fields := stat(p)
		if fields == nil {
			continue // it has ended
		}
		for _, ticks := range fields[11:13] { // utime and stime, of which there are 100 a second
			n, err := strconv.ParseInt(ticks, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			all += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return all
}

// stat are the fields of /proc/PID/stat after the name, the parent being the second.
func stat(process int) []string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return nil
	}
	return strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
}

// browsers are the processes below this one.
func browsers(t *testing.T) (all []int) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(names) == 0 {
		t.Skip("there is no /proc to measure with")
	}
	parents := map[int]int{}
	for _, name := range names {
		process, _ := strconv.Atoi(filepath.Base(name))
		if fields := stat(process); len(fields) > 2 {
			parents[process], _ = strconv.Atoi(fields[1])
		}
	}
	for process := range parents {
		for above := parents[process]; above > 1; above = parents[above] {
			if above == os.Getpid() {
				all = append(all, process)
				break
			}
		}
	}
	return all
}
