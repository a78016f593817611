// Package ui is the dashboard: a page that shows the cluster as it changes, for administrators and their browsers. All of
// it is in the program, and the page asks nobody but the server that it comes from.
//
//	GET /ui/         the page, and its files below; for whoever reaches the listener
//	GET /ui/stream   what the page shows, and then what changes, as server-sent events; see Stream. Administration
//	POST /ui/logins  a Login, for who shows the secret of the node
//	POST /ui/login   the secret, for a Login
//
// The rest of what it shows it gets from package httpapi, which must be served beside it.
//
// It is not how programs should look at a cluster: package httpapi has calls for them, whose form does not change.
package ui

import (
	"net/http"

	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/internal/server/httpapi"
)

// Root is the path below which it is served.
const Root = "/ui/"

// maxViewers is how many pages are kept up to date at a time: IDs matter more.
const maxViewers = 32

// Options are how a dashboard differs from others. The zero value is that of a process with one node.
type Options struct {
	// Given tells how many IDs the nodes of this process have given since it began. Nil: the service tells, and is the
	// only one. It is called once a second for each page, concurrently.
	Given func() []NodeGiven
}

// NodeGiven is how many IDs a node has given, by sequencer.
type NodeGiven struct {
	Name  string            `json:"name"` // of the node, for people; empty: the only one
	Given map[string]uint64 `json:"given"`
}

// Handler serves the dashboard below Root. Make it with New. Its methods are safe for concurrent use.
type Handler struct {
	service  *server.Service
	policy   *auth.Policy
	given    func() []NodeGiven
	browsers *http.CrossOriginProtection
	scenes   scenes
	viewers  chan struct{} // one for each page that is kept up to date
}

// New returns the dashboard of a service, for callers under a policy.
func New(s *server.Service, e *auth.Policy, o Options) *Handler {
	h := &Handler{service: s, policy: e, given: o.Given, browsers: http.NewCrossOriginProtection(), scenes: scenes{service: s}, viewers: make(chan struct{}, maxViewers)}
	if h.given == nil {
		h.given = func() []NodeGiven { return []NodeGiven{{Given: s.Given()}} }
	}
	return h
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if r.Method == http.MethodPost && (r.URL.Path == LoginPath || r.URL.Path == exchangePath) {
		if err := h.policy.AdmitHost(r.Host); err != nil {
			httpapi.RefuseCrossOrigin(w, r, h.service, err)
			return
		}
		h.login(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the method "+r.Method+" is not allowed for the dashboard; want GET", http.StatusMethodNotAllowed)
		return
	}
	if err := h.policy.AdmitHost(r.Host); err != nil {
		httpapi.RefuseCrossOrigin(w, r, h.service, err)
		return
	}
	if r.URL.Path == Root+"stream" {
		h.stream(w, r)
		return
	}
	if !serveFile(w, r) {
		http.Error(w, "there is nothing here; the dashboard is at "+Root, http.StatusNotFound)
	}
}
