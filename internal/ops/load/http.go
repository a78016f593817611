package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/clusterid"
	"github.com/firn-id/firn/internal/base/packed"
	"github.com/firn-id/firn/internal/base/unixsocket"
)

// httpConnection asks over HTTP/1.1, on one connection that stays open.
type httpConnection struct {
	transport *http.Transport
	base      string // URL of the sequencer's calls
	token     string
	json      bool // to ask for
	server    string
	clusters  *Clusters
	body      bytes.Buffer
}

const (
	perID         = len(`9223372036854775807,"9223372036854775807",`)
	aroundIDs     = 4 << 10
	connectWithin = 5 * time.Second
)

func dialHTTP(u *url.URL, a Access) (Connection, error) {
	base := strings.TrimSuffix(u.String(), "/")
	if u.Scheme == "unix" {
		base = unixsocket.URL
	}
	base += "/api/v1"
	if a.Sequencer != "" {
		base += "/sequencers/" + url.PathEscape(a.Sequencer)
	}
	t := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: connectWithin}).DialContext,
		TLSClientConfig:     a.TLS.Clone(),
		TLSHandshakeTimeout: connectWithin,
		MaxConnsPerHost:     1,
		DisableCompression:  true,
		Protocols:           new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	if u.Scheme == "unix" {
		t = unixsocket.Transport(t, u.Path)
	}
	return &httpConnection{
		transport: t, base: base, token: a.Token, json: a.JSON, server: u.String(),
		clusters: a.Clusters,
	}, nil
}

func (c *httpConnection) Close() { c.transport.CloseIdleConnections() }

func (c *httpConnection) Take(ctx context.Context, ids []firn.ID) error {
	path := c.base + "/id"
	if len(ids) > 1 {
		path += "s?count=" + strconv.Itoa(len(ids))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, path, http.NoBody)
	if err != nil {
		return err
	}
	if !c.json {
		request.Header.Set("Accept", packed.Type)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // reading needs no Close error
	if err := c.clusters.take(c.server, response.Header.Get(clusterid.Header)); err != nil {
		return err
	}
	c.body.Reset()
	if _, err := c.body.ReadFrom(io.LimitReader(response.Body, int64(aroundIDs+len(ids)*perID))); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return httpError(response, c.body.Bytes())
	}
	if response.Header.Get("Content-Type") == packed.Type {
		if err := packed.Read(ids, c.body.Bytes()); err != nil {
			return badAnswer("the answer can't be read: %w", err)
		}
		return nil
	}
	return parseHTTP(c.body.Bytes(), ids)
}

func parseHTTP(body []byte, ids []firn.ID) error {
	var answer struct {
		ID  *firn.ID  `json:"id_str"`
		IDs []firn.ID `json:"ids_str"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return badAnswer("the answer can't be read: %w", err)
	}
	if answer.ID != nil {
		answer.IDs = append(answer.IDs, *answer.ID)
	}
	return fill(ids, answer.IDs)
}

func httpError(r *http.Response, body []byte) error {
	var failure struct {
		Error struct{ Code, Message string }
	}
	if json.Unmarshal(body, &failure) != nil || failure.Error.Code == "" {
		return &CodeError{
			fmt.Sprintf("http_%d", r.StatusCode),
			"the server answers " + r.Status + ", and not as a firn server does",
		}
	}
	return &CodeError{failure.Error.Code, failure.Error.Message}
}
