// Package ui is the dashboard: a page that shows administrators the cluster as it changes.
//
//	GET /ui/         the page, and its files below, without a token
//	GET /ui/stream   what the page shows, and then each change, as server-sent events; administration
//	POST /ui/logins  a Login, for the secret of the node
//	POST /ui/login   the secret, for a Login
//
// The page also uses calls of package httpapi, which must be served on the same listener. Programs should use only
// those, as the stream may change.
package ui

import (
	"embed"
	"net/http"
	"sync"

	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/service/pages"
)

// Root is the path below which it is served.
const Root = "/ui/"

// maxViewers limits the pages that are kept up to date at a time: IDs matter more.
const maxViewers = 32

//go:embed page
var embedded embed.FS

// files are read when a browser first asks for one, and not at the start of every command.
var files = sync.OnceValue(func() pages.Files {
	all := pages.Files{}
	all.Read(embedded, "page")
	return all
})

// Options are settings of a dashboard. The zero value is for a process with one node.
type Options struct {
	// Given returns how many IDs each node of this process has given since its start. Nil: the service is the only one.
	// It is called once a second for each page, concurrently.
	Given func() []NodeGiven
}

// NodeGiven is how many IDs a node has given, by sequencer.
type NodeGiven struct {
	Name  string            `json:"name"` // of the node, for people; empty: the only one
	Given map[string]uint64 `json:"given"`
}

// Handler serves the dashboard below Root. Make it with New. Its methods are safe for concurrent use.
type Handler struct {
	service  *calls.Service
	policy   *auth.Policy
	given    func() []NodeGiven
	browsers *http.CrossOriginProtection
	scenes   scenes
	viewers  chan struct{} // has one for each page that is kept up to date
}

// New returns the dashboard of a service, for callers under a policy.
func New(s *calls.Service, p *auth.Policy, o Options) *Handler {
	h := &Handler{
		service: s, policy: p, given: o.Given, browsers: http.NewCrossOriginProtection(),
		scenes: scenes{service: s}, viewers: make(chan struct{}, maxViewers),
	}
	if h.given == nil {
		h.given = func() []NodeGiven { return []NodeGiven{{Given: s.Given()}} }
	}
	return h
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pages.Secure(w.Header(), "'self'")
	login := r.Method == http.MethodPost && (r.URL.Path == LoginPath || r.URL.Path == exchangePath)
	if !login && r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the method "+r.Method+" is not allowed for the dashboard; want GET", http.StatusMethodNotAllowed)
		return
	}
	if err := h.policy.AdmitHost(r.Host); err != nil {
		httpapi.RefuseCrossOrigin(w, r, h.service, err)
		return
	}
	switch {
	case login:
		h.login(w, r)
	case r.URL.Path == Root+"stream":
		h.stream(w, r)
	default:
		httpapi.Page(w, r, h.service, serveFile)
	}
}

func serveFile(w http.ResponseWriter, r *http.Request) {
	if !files().Serve(w, r, Root) {
		http.Error(w, "there is nothing here; the dashboard is at "+Root, http.StatusNotFound)
	}
}
