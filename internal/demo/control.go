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

	"github.com/firn-id/firn/internal/node"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/internal/server/httpapi"
)

// Where a demo is told what to do. Everything else that is asked of it a node answers that runs.
const (
	path       = "/demo/v1/"
	StatusPath = path + "status"
	StorePath  = path + "store/"
	NodesPath  = path + "nodes/"
)

// Answer is what comes of a command.
type Answer struct {
	Text string `json:"text"` // for people: what was done, and what to look at
}

// openFront listens for those who administer the demo, who must be on this machine: there are no tokens.
func (d *demo) openFront(address string) error {
	listener, err := node.Listen(node.Admin, address)
	if err != nil {
		return err
	}
	d.listener = listener
	d.admin = "http://" + node.Reachable(listener.Addr().String())
	return nil
}

// serveFront serves those who administer it.
func (d *demo) serveFront() {
	d.front = &http.Server{
		Handler: d.handler(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(d.config.Logs, "demo: ", 0),
	}
	go func() { _ = d.front.Serve(d.listener) }() // until it is closed
}

func (d *demo) handler() http.Handler {
	policy := &auth.Policy{Trusted: true, Secret: d.secret}
	mux := http.NewServeMux()
	mux.Handle("/", d.proxy())
	own := http.NewServeMux()
	own.HandleFunc("GET "+StatusPath, func(w http.ResponseWriter, _ *http.Request) { writeDemo(w, d.status(), nil) })
	tell := func(path string, do func(r *http.Request) (string, error)) {
		own.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			who, err := policy.Admit(httpapi.Token(r))
			if err == nil {
				err = who.May(auth.Admin, "")
			}
			if err != nil {
				writeDemo(w, nil, err)
				return
			}
			d.commands.Lock()
			defer d.commands.Unlock()
			text, err := do(r)
			writeDemo(w, Answer{text}, err)
		})
	}
	for name, do := range map[string]func(*host) (string, error){"kill": d.kill, "start": d.start, "pause": d.pause, "resume": d.resume} {
		tell(NodesPath+"{node}/"+name, func(r *http.Request) (string, error) {
			n, err := d.node(r.PathValue("node"))
			if err != nil {
				return "", err
			}
			return do(n)
		})
	}
	tell(NodesPath+"{node}/step-clock", func(r *http.Request) (string, error) {
		n, err := d.node(r.PathValue("node"))
		if err != nil {
			return "", err
		}
		step, err := time.ParseDuration(r.FormValue("step"))
		if err != nil {
			return "", server.Input(err)
		}
		return d.stepClock(n, step)
	})
	tell(StorePath+"stop", func(*http.Request) (string, error) { return d.stopStore() })
	tell(StorePath+"start", func(*http.Request) (string, error) { return d.startStore() })
	own.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeDemo(w, nil, server.Input(fmt.Errorf("%s %s is nothing that a demo does", r.Method, r.URL.Path)))
	})
	mux.Handle(path, onlyFromHere(policy, http.NewCrossOriginProtection().Handler(own)))
	return mux
}

// onlyFromHere refuses browsers that another site's page has sent.
func onlyFromHere(policy *auth.Policy, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := policy.AdmitHost(r.Host); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// node is the node of a number.
func (d *demo) node(text string) (*host, error) {
	i, err := strconv.Atoi(text)
	if err != nil || i < 1 || i > len(d.nodes) {
		return nil, server.Input(fmt.Errorf("there is no node %.20q; want 1 to %d", text, len(d.nodes)))
	}
	return d.nodes[i-1], nil
}

// proxy has a node answer that runs, so that who looks at the cluster can go on when one is killed.
func (d *demo) proxy() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(d.answering())
			r.Out.Host = r.In.Host // by which the node knows where a browser was sent
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			message := fmt.Sprintf("no node of the demo answers: %v; firn demo status shows them", err)
			writeJSON(w, http.StatusServiceUnavailable, httpapi.Failure{Error: httpapi.Error{Code: server.NotReady, Message: message}})
		},
		ErrorLog: log.New(d.config.Logs, "demo: ", 0),
	}
}

// answering is where the first node is that runs: one that is ready, if there is any.
func (d *demo) answering() *url.URL {
	best := d.nodes[0].admin
	for _, n := range d.nodes {
		l := n.running()
		if l == nil || l.paused.Load() {
			continue
		}
		best = n.admin
		if l.ready() == nil {
			break
		}
	}
	return best
}

// writeDemo answers a command.
func writeDemo(w http.ResponseWriter, answer any, err error) {
	if err == nil {
		writeJSON(w, http.StatusOK, answer)
		return
	}
	code := server.CodeOf(err)
	failed := httpapi.Locked{Failure: httpapi.Failure{Error: httpapi.Error{Code: code, Message: err.Error()}}}
	var secret *auth.SecretError
	if errors.As(err, &secret) {
		failed.SecretFile = secret.File
	}
	writeJSON(w, httpapi.StatusOf(code), failed)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // who asked has gone away if it fails
}
