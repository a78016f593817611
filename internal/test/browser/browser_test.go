package browser_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/store/memstore"
)

// patience is how long a test waits for a browser on a busy machine before it gives up.
const patience = 2 * time.Minute

// serve serves a member that is ready, and whose IDs are above 2^53.
func serve(t *testing.T) *httptest.Server {
	t.Helper()
	client := memstore.NewService().Client("a")
	m, err := peer.Join(t.Context(), client, peer.Options{Owner: "a", Start: lowest})
	if err != nil {
		t.Fatal(err)
	}
	layout := firn.Default
	layout.Epoch = time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, err := m.EnsureSequencer(t.Context(), peer.DefaultSequencer, cluster.Define(layout)); err != nil {
		t.Fatal(err)
	}
	service := calls.New(m, calls.Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	served := httptest.NewServer(httpapi.New(service, new(auth.Policy)))
	t.Cleanup(func() {
		served.Close()
		m.Leave()
		client.Close()
	})
	return served
}

// elsewhere serves an empty page from another origin.
func elsewhere(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>elsewhere</title><link rel=icon href=data:,>"))
	}))
	t.Cleanup(server.Close)
	return server
}

// browser starts one browser for all tests. Its error is errNoChromium where there is none to start.
var (
	browser    = sync.OnceValues(start)
	endBrowser = func() {}
)

func TestMain(m *testing.M) {
	code := m.Run()
	endBrowser()
	os.Exit(code)
}

var errNoChromium = errors.New("there is no Chromium here: apt-get install --no-install-recommends chromium")

func start() (context.Context, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		ctx, end := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path),
			chromedp.NoSandbox, // it can't have one as root
			chromedp.WindowSize(1440, 900))...)
		endBrowser = end
		ctx, _ = chromedp.NewContext(ctx)
		return ctx, chromedp.Do(ctx)
	}
	return nil, errNoChromium
}

// open opens an empty tab. The test is skipped where there is no Chromium.
func open(t *testing.T) context.Context {
	t.Helper()
	return openFor(t, patience)
}

// openFor opens an empty tab that a test uses for so long.
func openFor(t *testing.T, long time.Duration) context.Context {
	t.Helper()
	parent, err := browser()
	if errors.Is(err, errNoChromium) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(parent)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(ctx, long)
	t.Cleanup(cancel)
	return ctx
}

// do runs actions, and run one that returns something.
func do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

func run[T any](t *testing.T, ctx context.Context, a chromedp.Action[T]) T {
	t.Helper()
	got, err := chromedp.Run(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
