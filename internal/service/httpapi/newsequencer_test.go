package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store/memstore"
)

// Whatever is sent, the answer is an error in the usual shape, or a sequencer that is valid, can be read back, and is
// the same when it is created again.
func FuzzNewSequencer(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", "[]", orders, oneNode, `{"name":"a"}`,
		`{"name":"a","nodes":null,"allocation":null,"epoch":null}`,
		`{"name":"b","allocation":{"kind":"percent","percent":50},"layout":"41/5/5/12@10ms","after":"1234567"}`,
		`{"name":"c","tick":"1s","time_bits":62,"node_bits":0,"sequence_bits":0,"node_lowest":true}`,
		`{"name":"default","nodes":5}`, `{"name":"d","Nodes":3,"nodes":4}`, `{"name":".."}`,
		`{"name":"e","nodes":8,"reserve":3}`, `{"name":"e","nodes":8,"reserve":-1}`, `{"name":"e","reserve":null}`,
	} {
		f.Add(seed)
	}
	client := memstore.NewService().Client("a")
	m, err := peer.Join(f.Context(), client, peer.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		m.Leave()
		client.Close()
	})
	h := newHandler(f, &servertest.Issuer{Same: true}, m, nil)
	post := func(body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w,
			httptest.NewRequest(http.MethodPost, "http://localhost/api/v1/sequencers", strings.NewReader(body)))
		return w
	}
	f.Fuzz(func(t *testing.T, body string) {
		w := post(body)
		var got struct {
			calls.Created
			httpapi.Failure
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatalf("%q = %d %q: %v", body, w.Code, w.Body, err)
		}
		switch w.Code {
		case 400, 413:
			if got.Error.Code == "" || got.Error.Message == "" {
				t.Errorf("%q = %d %s", body, w.Code, w.Body)
			}
			return
		case 200, 201, 409:
		default:
			t.Fatalf("%q = %d %s", body, w.Code, w.Body)
		}
		var n httpapi.NewSequencer
		if err := json.Unmarshal([]byte(body), &n); err != nil || cluster.CheckName(n.Name) != nil ||
			n.Definition.Validate() != nil {
			t.Fatalf("%q = %d %s, but it is %+v, %v", body, w.Code, w.Body, n, err)
		}
		if w.Code == 409 {
			return
		}
		if got.Name != n.Name || !got.Definition.Equal(n.Definition) || got.Until.Year() > 9999 {
			t.Errorf("%q = %d %s", body, w.Code, w.Body)
		}
		again, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if w := post(string(again)); w.Code != 200 {
			t.Errorf("%q again, as %s = %d %s", body, again, w.Code, w.Body)
		}
		if _, err := n.Definition.Check(time.Now()); err != nil && w.Code == 201 {
			t.Errorf("%q = %d %s, but: %v", body, w.Code, w.Body, err)
		}
		if n.Name != peer.DefaultSequencer { // keep the cluster small
			if n.Reserve > 0 {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost,
					"http://localhost/api/v1/sequencers/"+n.Name+"/release",
					strings.NewReader(`{"for":"later","used_until":"2026-11-28T12:00:00Z"}`)))
			}
			r := httptest.NewRecorder()
			if h.ServeHTTP(r, httptest.NewRequest(http.MethodDelete, "http://localhost/api/v1/sequencers/"+n.Name,
				nil)); r.Code != 200 {
				t.Errorf("DELETE %s = %d %s", n.Name, r.Code, r.Body)
			}
		}
	})
}

// What a client writes is what a server reads.
func TestNewSequencerIsReadAsWritten(t *testing.T) {
	for _, body := range []string{
		orders, `{"name":"a","allocation":{"kind":"count","count":3},"layout":"sonyflake","nodes":100,"after":17,` +
			`"reserve":7}`,
	} {
		var n, again httpapi.NewSequencer
		if err := json.Unmarshal([]byte(body), &n); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(n)
		if err == nil {
			err = json.Unmarshal(data, &again)
		}
		if err != nil || !reflect.DeepEqual(n, again) {
			t.Errorf("%+v was written as %s, and read as %+v, %v", n, data, again, err)
		}
	}
}

// A named sequencer costs no more than to find it.
func BenchmarkNextOf(b *testing.B) {
	client := memstore.NewService().Client("a")
	m, err := peer.Join(b.Context(), client, peer.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		m.Leave()
		client.Close()
	})
	if _, err := m.EnsureSequencer(b.Context(), "orders", cluster.Define(firn.Default)); err != nil {
		b.Fatal(err)
	}
	h := newHandler(b, &servertest.Issuer{Same: true}, m, nil)
	r := httptest.NewRequest(http.MethodPost, "http://localhost/api/v1/sequencers/orders/id", nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
}
