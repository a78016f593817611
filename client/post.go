package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/packed"
	"github.com/firn-id/firn/internal/base/unixsocket"
)

// accept asks for packed IDs. A node that does not know them gives JSON.
var accept = []string{packed.Type}

// query is what a request asks for: new IDs, new texts, or a text converted to another form.
type query struct {
	n    int    // 1 to maxCount
	form string // of the texts; empty: IDs
	text string // to be converted; empty: new ones
	as   string // the form of text; empty: the node recognises it

	after firn.ID // new IDs are to exceed it; zero: any
}

func (q query) request() (method, path string) {
	switch {
	case q.text != "":
		path = "/ids/" + url.PathEscape(q.text) + "?form=" + url.QueryEscape(q.form)
		if q.as != "" {
			path += "&as=" + url.QueryEscape(q.as)
		}
		return http.MethodGet, path
	case q.form != "":
		return http.MethodPost, "/ids?count=" + strconv.Itoa(q.n) + "&form=" + url.QueryEscape(q.form)
	case q.n > 1:
		return http.MethodPost, "/ids?count=" + strconv.Itoa(q.n)
	}
	return http.MethodPost, "/id"
}

// post sends one request, and tells whether the node closes the connection after it.
func (c *Client) post(ctx context.Context, node, path string, q query) (g given, leaving bool, err error) {
	at, transport := node, c.transport
	if socket := c.sockets[node]; socket != nil {
		at, transport = unixsocket.URL, socket
	}
	method, rest := q.request()
	request, err := http.NewRequestWithContext(ctx, method, at+path+rest, http.NoBody)
	if err != nil {
		return given{}, false, &nodeError{node, err}
	}
	// Makes package http send the request again when an idle connection turns out to be closed. An empty value is not
	// sent.
	request.Header["Idempotency-Key"] = []string{}
	if q.form == "" {
		request.Header["Accept"] = accept
	}
	if q.after > 0 && q.text == "" {
		request.Header["Firn-After"] = []string{q.after.String()}
	}
	if c.config.token != nil {
		if token := c.config.token(); token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
	}
	response, err := transport.RoundTrip(request) // an http.Client would follow redirects
	if err != nil {
		return given{}, false, &nodeError{node, err}
	}
	defer response.Body.Close()
	if err := c.clusters.take(node, response); err != nil {
		return given{}, response.Close, err
	}
	g, err = readAnswer(node, response, q)
	return g, response.Close, err
}

func isCanceled(err error) bool { return errors.Is(err, context.Canceled) }
