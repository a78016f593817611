package client

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/packed"
	"github.com/firn-id/firn/internal/unixsocket"
)

// accept asks for packed IDs. A node that does not know them gives JSON.
var accept = []string{packed.Type}

// post sends one request for n IDs, and tells whether the node closes the connection after it.
func (c *Client) post(ctx context.Context, node, path string, n int) (ids []firn.ID, leaving bool, err error) {
	url, transport := node, c.transport
	if socket := c.sockets[node]; socket != nil {
		url, transport = unixsocket.URL, socket
	}
	url += path + "/id"
	if n > 1 {
		url += "s?count=" + strconv.Itoa(n)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return nil, false, &nodeError{node, err}
	}
	// Makes package http send the request again when an idle connection turns out to be closed. An empty value is not sent.
	request.Header["Idempotency-Key"] = []string{}
	request.Header["Accept"] = accept
	if c.config.token != nil {
		if token := c.config.token(); token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
	}
	response, err := transport.RoundTrip(request) // an http.Client would follow redirects
	if err != nil {
		return nil, false, &nodeError{node, err}
	}
	defer response.Body.Close()
	ids, err = readAnswer(node, response, n)
	return ids, response.Close, err
}

func isCanceled(err error) bool { return errors.Is(err, context.Canceled) }
