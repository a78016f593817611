package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/firn-id/firn/internal/packed"
	"github.com/firn-id/firn/internal/unixsocket"
)

// accept asks for packed IDs. A node that does not know them gives JSON.
var accept = []string{packed.Type}

// post sends one request for n IDs, or for texts in a form, and tells whether the node closes the connection after it.
func (c *Client) post(ctx context.Context, node, path string, n int, form string) (g given, leaving bool, err error) {
	at, transport := node, c.transport
	if socket := c.sockets[node]; socket != nil {
		at, transport = unixsocket.URL, socket
	}
	at += path + "/id"
	if n > 1 || form != "" {
		at += "s?count=" + strconv.Itoa(n)
	}
	if form != "" {
		at += "&form=" + url.QueryEscape(form)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at, http.NoBody)
	if err != nil {
		return given{}, false, &nodeError{node, err}
	}
	// Makes package http send the request again when an idle connection turns out to be closed. An empty value is not sent.
	request.Header["Idempotency-Key"] = []string{}
	if form == "" {
		request.Header["Accept"] = accept
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
	g, err = readAnswer(node, response, n, form)
	return g, response.Close, err
}

func isCanceled(err error) bool { return errors.Is(err, context.Canceled) }
