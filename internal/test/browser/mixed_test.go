package browser_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/base/clusterid"
	"github.com/firn-id/firn/internal/test/testenv"
)

// The address of the page leads to nodes of two clusters, one after the other.
func TestSeveralClustersBehindOneAddress(t *testing.T) {
	testenv.Slow(t)
	l := live(t, local, "host-a")
	to, err := url.Parse(l.url)
	if err != nil {
		t.Fatal(err)
	}
	var cluster atomic.Value
	cluster.Store("aaaaaaaa")
	answers := make(chan string, 1000)
	s := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = to.Host },
		ModifyResponse: func(r *http.Response) error {
			id := cluster.Load().(string)
			r.Header.Set(clusterid.Header, id)
			if strings.HasSuffix(r.Request.URL.Path, "/stream") {
				answers <- id
			}
			return nil
		},
	})
	p := &page{t, open(t)}
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	p.visit(s.URL, 1440)
	for _, id := range []string{"aaaaaaaa", "bbbbbbbb", "aaaaaaaa"} {
		cluster.Store(id)
		s.CloseClientConnections() // the page connects again
		for late := time.After(time.Minute); ; {
			select {
			case by := <-answers:
				if by != id {
					continue
				}
			case <-late:
				t.Fatalf("the page does not connect to %s", id)
			}
			break
		}
		p.wait(`text("#link-text")`, "Connected")
		if id == "bbbbbbbb" { // which may be the same, founded again
			p.wait(`text("#problems")`, "Nothing is wrong.")
		}
	}
	p.waitFor(`text("#problems").includes("everal clusters answer at this address") && ` +
		`text("#problems").includes("bbbbbbbb")`)
}
