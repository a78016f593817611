package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"time"

	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/service/node"
)

// The paths of a demo's commands. A running node answers all other requests.
const (
	path       = "/demo/v1/"
	StatusPath = path + "status"
	StorePath  = path + "store/"
	NodesPath  = path + "nodes/"
)

// All stands for the number of a node where a command is for all of them: step-clock.
const All = "all"

// Answer is the answer to a command.
type Answer struct {
	Text string `json:"text"` // for people: what it did, and what to look at
}

// command changes a demo, or one of its hosts; nil: all. Only step-clock needs the request. It returns an Answer's
// text.
type command func(h *host, r *http.Request) (string, error)

// listen listens for administrators, who must be on this machine: there are no tokens.
func (d *demo) listen() (err error) {
	if d.listener, err = node.Defaults().Listen(node.Admin, d.config.AdminAddr); err == nil {
		d.admin = "http://" + node.Reachable(d.listener.Addr().String())
	}
	return err
}

// serve serves administrators.
func (d *demo) serve() {
	d.server = &http.Server{
		Handler: d.handler(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       log.New(d.config.Logs, "demo: ", 0),
	}
	go func() { _ = d.server.Serve(d.listener) }() // until Close
}

func (d *demo) handler() http.Handler {
	policy := &auth.Policy{Trusted: true, Secret: d.secret}
	own := http.NewServeMux()
	own.HandleFunc("GET "+StatusPath, func(w http.ResponseWriter, _ *http.Request) { answer(w, d.status(), nil) })
	for path, do := range map[string]command{
		NodesPath + "{node}/kill": d.kill, NodesPath + "{node}/start": d.start, NodesPath + "{node}/pause": d.pause,
		NodesPath + "{node}/resume": d.resume, NodesPath + "{node}/step-clock": d.stepClock,
		NodesPath + All + "/step-clock": d.stepClocks,
		StorePath + "stop":              d.stopStore, StorePath + "start": d.startStore,
	} {
		own.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			text, err := d.do(do, policy, r)
			answer(w, Answer{text}, err)
		})
	}
	own.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer(w, nil, calls.Input(fmt.Errorf("%s %s is not a call of the demo", r.Method, r.URL.Path)))
	})
	protected := http.NewCrossOriginProtection().Handler(own)
	mux := http.NewServeMux()
	mux.Handle("/", d.proxy())
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		if err := policy.AdmitHost(r.Host); err != nil { // another site's page has sent this browser
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		protected.ServeHTTP(w, r)
	})
	return mux
}

// do executes one command at a time, if the caller may administer the demo.
func (d *demo) do(do command, policy *auth.Policy, r *http.Request) (string, error) {
	who, err := policy.Admit(httpapi.Token(r))
	if err == nil {
		err = who.May(auth.Admin, "")
	}
	if err != nil {
		return "", err
	}
	var h *host
	if number := r.PathValue("node"); number != "" {
		i, err := strconv.Atoi(number)
		if err != nil || i < 1 || i > len(d.hosts) {
			return "", calls.Input(fmt.Errorf("there is no node %.20q; want 1 to %d", number, len(d.hosts)))
		}
		h = d.hosts[i-1]
	}
	d.commands.Lock()
	defer d.commands.Unlock()
	return do(h, r)
}

// proxy passes requests to a running node, so that the cluster's page still works when one is killed.
func (d *demo) proxy() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(d.answering())
			r.Out.Host = r.In.Host // the node checks the browser's host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			message := fmt.Sprintf("no node of the demo answers: %v; firn demo status shows them", err)
			writeJSON(w, http.StatusServiceUnavailable,
				httpapi.Failure{Error: httpapi.Error{Code: codes.NotReady, Message: message}})
		},
		ErrorLog: log.New(d.config.Logs, "demo: ", 0),
	}
}

// answering returns the URL of the first ready node, or of a running one if none is ready.
func (d *demo) answering() *url.URL {
	best := d.hosts[0].admin
	for _, h := range d.hosts {
		p := h.running()
		if p == nil || p.paused.Load() {
			continue
		}
		best = h.admin
		if p.node.Ready() == nil {
			break
		}
	}
	return best
}

// answer writes the answer to a command.
func answer(w http.ResponseWriter, v any, err error) {
	if err == nil {
		writeJSON(w, http.StatusOK, v)
		return
	}
	code := calls.CodeOf(err)
	failed := httpapi.Locked{Failure: httpapi.Failure{Error: httpapi.Error{Code: code, Message: err.Error()}}}
	if secret, ok := errors.AsType[*auth.SecretError](err); ok {
		failed.SecretFile = secret.File
	}
	writeJSON(w, code.HTTP(), failed)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it fails if the caller has disconnected
}
