package browser_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/test/testenv"
)

// fetchID takes an ID as a page's script does.
const fetchID = `(async () => {
	const answer = await fetch("/api/v1/id", {method: "POST"});
	const text = await answer.text();
	const id = JSON.parse(text);
	return {status: answer.status, text, number: String(id.id), str: id.id_str,
				big: BigInt(id.id_str).toString(), next: (BigInt(id.id_str) + 1n).toString()};
})()`

// A script that takes id_str has the very ID; one that takes id has another, which is why there are both.
func TestIDsInJavaScript(t *testing.T) {
	testenv.Slow(t)
	server, ctx := serve(t), open(t)
	do(t, ctx, chromedp.Navigate(server.URL+"/livez"))
	rounded := false
	for range 10 {
		got := run(t, ctx, chromedp.Evaluate[struct {
			Status                       int
			Text, Number, Str, Big, Next string
		}](fetchID, chromedp.EvalAwaitPromise))
		var sent struct {
			ID  json.Number `json:"id"`
			Str firn.ID     `json:"id_str"`
		}
		if err := json.Unmarshal([]byte(got.Text), &sent); err != nil || got.Status != http.StatusOK {
			t.Fatalf("%+v: %v", got, err)
		}
		exact := string(sent.ID)
		if sent.Str <= 1<<53 || sent.Str.String() != exact || got.Str != exact || got.Big != exact ||
			got.Next != (sent.Str+1).String() {
			t.Errorf("%s came to the script as %+v", exact, got)
		}
		rounded = rounded || got.Number != exact
	}
	if !rounded {
		t.Error("no number was rounded: these IDs prove nothing")
	}
}

// A page of another site can't have its visitors' browsers take IDs, nor read what the server says to that.
func TestPagesOfOtherSites(t *testing.T) {
	testenv.Slow(t)
	server, other, ctx := serve(t), elsewhere(t), open(t)
	refused := make(chan [2]string, 10)
	inner := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		inner.ServeHTTP(answer, r)
		refused <- [2]string{r.Method + " " + http.StatusText(answer.Code), answer.Body.String()}
		w.WriteHeader(answer.Code)
	})
	do(t, ctx, chromedp.Navigate(other.URL))
	got := run(t, ctx, chromedp.Evaluate[string](
		`fetch("`+server.URL+`/api/v1/id", {method: "POST"}).then(() => "read", () => "not read")`,
		chromedp.EvalAwaitPromise))
	if got != "not read" {
		t.Errorf("the answer was %s", got)
	}
	opaque := run(t, ctx, chromedp.Evaluate[string](
		`fetch("`+server.URL+`/api/v1/id", {method: "POST", mode: "no-cors"}).then(a => a.type, String)`,
		chromedp.EvalAwaitPromise))
	if opaque != "opaque" {
		t.Errorf("without CORS the answer was %s", opaque)
	}
	for range 2 {
		answer := <-refused
		var failure struct{ Error struct{ Code string } }
		if err := json.Unmarshal([]byte(answer[1]), &failure); err != nil || answer[0] != "POST Forbidden" ||
			failure.Error.Code != "cross_origin" {
			t.Errorf("%q", answer)
		}
	}
}
