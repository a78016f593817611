//go:build unix

package etcdtest_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/proxytest"
)

// answers asks the server for its version.
func answers(t *testing.T, url string, patience time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK
}

const soon, long = 200 * time.Millisecond, 30 * time.Second

func TestLifeOfAServer(t *testing.T) {
	s := etcdtest.Start(t, etcdtest.Options{})
	endpoint := s.Endpoint()
	proxy := proxytest.New(t, s.Address())
	steps := []struct {
		name string
		do   func()
		want bool
	}{
		{"Start", func() {}, true},
		{"Pause", func() { s.Pause(t) }, false},
		{"Resume", func() { s.Resume(t) }, true},
		{"Stop", func() { s.Stop(t) }, false},
		{"Start again", func() { s.Start(t) }, true},
		{"Kill", func() { s.Kill(t) }, false},
		{"Start once more", func() { s.Start(t) }, true},
		{"Restart", func() { s.Restart(t) }, true},
	}
	for _, step := range steps {
		step.do()
		patience := soon
		if step.want {
			patience = long
		}
		if s.Endpoint() != endpoint {
			t.Fatalf("%s: moved from %s to %s", step.name, endpoint, s.Endpoint())
		}
		for _, url := range []string{endpoint, "http://" + proxy.Address()} {
			if got := answers(t, url, patience); got != step.want {
				t.Errorf("%s: %s answers: %v, want %v", step.name, url, got, step.want)
			}
		}
	}
	proxy.Cut(true)
	if answers(t, "http://"+proxy.Address(), soon) {
		t.Error("the proxy forwards while it is cut")
	}
	proxy.Cut(false)
	if !answers(t, "http://"+proxy.Address(), long) {
		t.Error("the proxy does not forward after the cut")
	}
}
