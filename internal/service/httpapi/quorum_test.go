package httpapi_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store"
)

func post(h http.Handler, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost"+path, strings.NewReader(body)))
	return w
}

// What is asked reaches the quorum, also while the member has not joined.
func TestQuorumCalls(t *testing.T) {
	q := servertest.ThreeMachines()
	h := handlerWith(t, &servertest.Issuer{}, servertest.Waiting(t, "no answer"), calls.Options{Quorum: q})
	for _, w := range []*httptest.ResponseRecorder{
		call(h, "GET", "/api/v1/quorum"), post(h, "/api/v1/quorum/replace", replacement),
		post(h, "/api/v1/quorum/remove", removal),
	} {
		if w.Code != 200 || !strings.HasPrefix(w.Body.String(),
			`{"cluster":"5f0c3a9be1d24c77","self":"ids-1:7420","majority":true,"record":["ids-1:7420","ids-2:7420",`+
				`"ids-3:7420"],"machines":[{"address":"ids-1:7420",`) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if want := []string{"replace ids-2:7420 ids-4:7420", "remove ids-2:7420 ids-3:7420"}; !slices.Equal(q.Asked(),
		want) {
		t.Errorf("it was asked to %q, want %q", q.Asked(), want)
	}
	w := call(h, "GET", "/api/v1/quorum/backup")
	if w.Code != 200 || w.Body.String() != "everything" ||
		w.Header().Get("Content-Type") != "application/octet-stream" {
		t.Errorf("the backup: %d %v %s", w.Code, w.Header(), w.Body)
	}
	if w := call(h, "HEAD", "/api/v1/quorum/backup"); w.Code != 200 || w.Body.Len() > 0 {
		t.Errorf("HEAD of the backup: %d %s", w.Code, w.Body)
	}
	q.Err = errors.New(`"ids-9:7420" is none of the machines; want one of ids-1:7420, ids-2:7420, ids-3:7420`)
	if w := post(h, "/api/v1/quorum/replace", `{"lost":"ids-9:7420","instead":"ids-4:7420"}`); w.Code != 400 ||
		!strings.Contains(w.Body.String(), "none of the machines") {
		t.Errorf("replacing a machine that is none: %d %s", w.Code, w.Body)
	}
}

// Only administrators change the quorum or get a backup, which has everything in it. Others may look where they may
// look at the cluster.
func TestQuorumRights(t *testing.T) {
	service := calls.New(example(t).Member, calls.Options{Quorum: servertest.ThreeMachines()})
	secret := auth.NewSecret()
	secret.Kept("/run/firn/admin.token", nil)
	anyone, looks := httpapi.New(service, new(auth.Policy)),
		httpapi.New(service, &auth.Policy{Trusted: true, Secret: secret})
	for target, want := range map[string][2]int{
		"GET /api/v1/quorum": {403, 200}, "GET /api/v1/quorum/backup": {403, 401},
		"HEAD /api/v1/quorum/backup":  {403, 401},
		"POST /api/v1/quorum/replace": {403, 401}, "POST /api/v1/quorum/remove": {403, 401},
	} {
		method, path, _ := strings.Cut(target, " ")
		for i, h := range []http.Handler{anyone, looks} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(bodies[target])))
			if w.Code != want[i] {
				t.Errorf("%s = %d %s, want %d", target, w.Code, w.Body, want[i])
			}
		}
	}
}

// A backup that fails halfway can't be taken for a whole one.
func TestBrokenBackup(t *testing.T) {
	q := &servertest.Quorum{
		Data: strings.Repeat("half ", 1<<18),
		Err:  fmt.Errorf("%w: no leader", store.ErrUnavailable),
	}
	s := httptest.NewServer(handlerWith(t, &servertest.Issuer{}, nil, calls.Options{Quorum: q}))
	defer s.Close()
	response, err := http.Get(s.URL + "/api/v1/quorum/backup")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if data, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("it looks whole: %d with %d bytes", response.StatusCode, len(data))
	}
}

// One backup is made at a time.
func TestBackupsAtATime(t *testing.T) {
	q := servertest.ThreeMachines()
	h := handlerWith(t, &servertest.Issuer{}, nil, calls.Options{Quorum: q})
	inner := httptest.NewRecorder()
	w := &during{httptest.NewRecorder(), func() {
		h.ServeHTTP(inner, httptest.NewRequest(http.MethodGet, "http://localhost/api/v1/quorum/backup", nil))
	}}
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/api/v1/quorum/backup", nil))
	if inner.Code != 503 || !strings.Contains(inner.Body.String(), `"overloaded"`) || w.Body.String() != "everything" {
		t.Errorf("the second: %d %s; the first: %s", inner.Code, inner.Body, w.Body)
	}
}

// during calls a function when something is written.
type during struct {
	*httptest.ResponseRecorder
	call func()
}

func (d *during) Write(b []byte) (int, error) {
	d.call()
	return d.ResponseRecorder.Write(b)
}
