package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
)

// writes is a node that knows forms.
func writes(f *fleet, r *http.Request, n int) (*http.Response, error) {
	form := r.URL.Query().Get("form")
	if form == "" {
		return gives(0)(f, r, n)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var texts []string
	for range n {
		f.last++
		texts = append(texts, fmt.Sprintf("%q", form+"-"+f.last.String()))
	}
	return answer(200, `{"ids":[`+strings.Join(texts, ",")+`],"ids_str":[]}`), nil
}

func TestTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{"a": writes})
		c := f.of(t, "a")
		orders := c.Sequencer("orders")
		for _, n := range []int{0, 1, 3, 100_001} {
			texts, err := orders.Texts(t.Context(), "a form", n)
			if err != nil || len(texts) != n || n > 0 && !strings.HasPrefix(texts[n-1], "a form-115") {
				t.Errorf("%d texts: %d, %v", n, len(texts), err)
			}
		}
		path := "/api/v1/sequencers/orders/ids?count="
		if want := []string{
			path + "1&form=a+form", path + "3&form=a+form", path + "100000&form=a+form",
			path + "1&form=a+form",
		}; !slices.Equal(f.paths, want) {
			t.Errorf("%q; want %q", f.paths, want)
		}
		if texts, err := orders.Texts(t.Context(), "base62", 1); err != nil || len(texts) != 1 ||
			f.paths[4] != "/api/v1/sequencers/orders/id" {
			t.Errorf("base62: %q, %v, by %s", texts, err, f.paths[4])
		} else if id, err := firn.Base62.Parse(texts[0]); err != nil || id != f.last {
			t.Errorf("base62: %q is %v, %v; want %v", texts[0], id, err, f.last)
		}
		if texts, err := orders.Texts(t.Context(), "uuid", -1); err == nil {
			t.Errorf("-1 texts: %q", texts)
		}
	})
}

// A node converts an ID; another one is asked if need be.
func TestConvert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{
			"bad":  refuses(503, "not_ready"),
			"good": says(200, `{"id":5,"id_str":"5","text":"1-0Z8XHYq9t0Y"}`),
		})
		orders := f.of(t, "good bad").Sequencer("orders")
		if text, err := orders.Convert(within(t, time.Second), "ord_5", "sealed"); text != "1-0Z8XHYq9t0Y" ||
			err != nil {
			t.Errorf("%q, %v", text, err)
		}
		if want := "/api/v1/sequencers/orders/ids/ord_5?form=sealed"; f.paths[len(f.paths)-1] != want {
			t.Errorf("asked for %q; want %q", f.paths, want)
		}
		if _, err := orders.ConvertFrom(within(t, time.Second), "hex", "1234567890123456", "decimal"); err != nil {
			t.Error(err)
		}
		const want = "/api/v1/sequencers/orders/ids/1234567890123456?form=decimal&as=hex"
		if f.paths[len(f.paths)-1] != want {
			t.Errorf("asked for %q; want %q", f.paths, want)
		}
		n := len(f.paths)
		for _, c := range [][2]string{{"", "hex"}, {"..", "hex"}, {"a/b", "hex"}, {"5", ""}} {
			if text, err := orders.Convert(t.Context(), c[0], c[1]); err == nil || len(f.paths) > n {
				t.Errorf("%q in the form %q: %q, %v, with %d requests", c[0], c[1], text, err, len(f.paths)-n)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{"a": refuses(403, "forbidden")})
		_, err := f.of(t, "a").Convert(within(t, time.Second), "1-0Z8XHYq9t0Y", "decimal")
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != "forbidden" {
			t.Errorf("without the right to open: %v", err)
		}
	})
}

// What may be the text of an ID is sent as it is; what can't be is refused, in the words of all clients where it was
// never whole.
func TestWhatIsConverted(t *testing.T) {
	data, err := os.ReadFile("../clients/conformance/whole.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Says         string
		NotWhole     []string `json:"not_whole"`
		Converted    []string
		NotConverted []string `json:"not_converted"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Converted) < 5 || len(v.NotConverted) < 5 {
		t.Errorf("%+v lacks cases", v)
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{"a": func(_ *fleet, r *http.Request, _ int) (*http.Response, error) {
			return answer(200, fmt.Sprintf(`{"text":%q}`, strings.TrimPrefix(r.URL.Path, "/api/v1/ids/"))), nil
		}})
		c := f.of(t, "a")
		for _, id := range v.Converted {
			if text, err := c.Convert(within(t, time.Second), id, "hex"); text != id || err != nil {
				t.Errorf("%q is sent as %q, %v", id, text, err)
			}
		}
		n := len(f.paths)
		for _, id := range v.NotConverted {
			if text, err := c.Convert(within(t, time.Second), id, "hex"); err == nil || len(f.paths) > n {
				t.Errorf("%q: %q, %v, with %d requests", id, text, err, len(f.paths)-n)
			}
		}
		for _, id := range v.NotWhole {
			if !strings.Contains(id, ".") {
				continue // base58 has such texts
			}
			if text, err := c.Convert(within(t, time.Second), id, "hex"); err == nil ||
				!strings.Contains(err.Error(), v.Says) || len(f.paths) > n {
				t.Errorf("%q: %q, %v; want %q", id, text, err, v.Says)
			}
		}
	})
}

// An answer with texts that are missing, empty or there twice is wrong, and one that the caller must put right is
// returned.
func TestWrongTexts(t *testing.T) {
	for _, c := range []struct {
		bad  behaviour
		want string // of the error; empty: another node is asked
	}{
		{says(200, `{"ids":["a","b","a"]}`), ""},
		{says(200, `{"ids":["a","b",""]}`), ""},
		{says(200, `{"ids":["a","b"]}`), ""},
		{says(200, `{"ids":[1,2,3],"ids_str":["1","2","3"]}`), ""},
		{says(200, `{"ids":["a","b","`+strings.Repeat("c", 1<<20)+`"]}`), ""},
		{says(200, `<html>`), ""},
		{refuses(503, "not_ready"), ""},
		{refuses(400, "bad_request"), "bad_request"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(map[string]behaviour{"bad": c.bad, "good": writes})
			texts, err := f.of(t, "good bad").Texts(within(t, time.Second), "uuid", 3)
			e, refused := errors.AsType[*Error](err)
			switch {
			case f.requests("bad") != 1:
				t.Errorf("the bad node was asked %d times; want once", f.requests("bad"))
			case c.want == "" && (err != nil || len(texts) != 3 || !strings.HasPrefix(texts[0], "uuid-")):
				t.Errorf("%q, %v; want those of the good node", texts, err)
			case c.want != "" && (!refused || e.Code != c.want || texts != nil):
				t.Errorf("%q, %v; want %s", texts, err, c.want)
			}
		})
	}
}
