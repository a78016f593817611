// Package remote asks a running server over HTTP for IDs and about its cluster, for the commands of firn. If a
// server has no tokens, and the user may read its secret in a file, the package sends that secret.
package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/unixsocket"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/secretfile"
	"github.com/firn-id/firn/internal/service/httpapi"
)

// Client asks a server.
type Client struct {
	Base      string       // its URL, or the address of its Unix socket
	Token     string       // to send; empty: none
	HTTP      *http.Client // connects to the Unix socket, if Base is one's
	Sequencer string       // for Fill; empty: the default sequencer
	After     firn.ID      // IDs of Fill and Texts exceed this one; zero: any
	Hint      string       // what to do if no server answers; may be empty

	// Owner, if not nil, keeps who sends the node's secret once a server has required it, so that later requests send
	// it at once.
	Owner *atomic.Pointer[Client]

	// Showed gets the URL to which the client sent a node's secret. Nil: no call.
	Showed func(url string)

	// Answered gets the header of each answer that is no error. Nil: no call.
	Answered func(http.Header)
}

// answerWithin is how long an answer may take, longestAnswer the most bytes of it that are read.
const (
	answerWithin  = 30 * time.Second
	longestAnswer = 64 << 20
)

// Fill fills ids with new IDs, in the order in which they were made.
func (c Client) Fill(ctx context.Context, ids []firn.ID) error {
	var answer struct {
		IDs []firn.ID `json:"ids_str"`
	}
	if err := c.take(ctx, fmt.Sprintf("count=%d", len(ids)), &answer); err != nil {
		return err
	}
	if len(answer.IDs) != len(ids) {
		return c.miscounts(len(answer.IDs), len(ids))
	}
	copy(ids, answer.IDs)
	return nil
}

// Texts takes n new IDs in a form, and the IDs themselves; nil: the caller may not have these.
func (c Client) Texts(ctx context.Context, form string, n int) (texts []string, ids []firn.ID, err error) {
	var answer struct {
		Texts []string  `json:"ids"`
		IDs   []firn.ID `json:"ids_str"`
	}
	if err := c.take(ctx, fmt.Sprintf("count=%d&form=%s", n, form), &answer); err != nil {
		return nil, nil, err
	}
	if len(answer.Texts) != n || answer.IDs != nil && len(answer.IDs) != n {
		return nil, nil, c.miscounts(len(answer.Texts), n)
	}
	return answer.Texts, answer.IDs, nil
}

func (c Client) take(ctx context.Context, query string, answer any) error {
	path := "/api/v1"
	if c.Sequencer != "" {
		path = SequencerPath(c.Sequencer, "")
	}
	if c.After != 0 {
		query += "&after=" + c.After.String()
	}
	_, err := c.Call(ctx, http.MethodPost, path+"/ids?"+query, nil, answer)
	return err
}

func (c Client) miscounts(got, want int) error {
	return fmt.Errorf("the server %s gives %d IDs, not %d", c.Base, got, want)
}

// Do sends a request, and once more with the node's own secret if the server requires that and this user may read
// it. The caller closes the answer's body. Do returns an error when the server does not answer, and an
// *AnswerError when it answers with an error.
func (c Client) Do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	first := c
	if c.Owner != nil && c.Owner.Load() != nil {
		first = *c.Owner.Load()
	}
	response, err := first.send(ctx, method, path, body)
	answer, ok := errors.AsType[*AnswerError](err)
	if c.Token != "" || !ok || answer.Failure.SecretFile == "" {
		return response, err
	}
	owner, why := c.withSecret(answer.Failure.SecretFile)
	if why != nil {
		return nil, fmt.Errorf("%w; that file: %w", err, why)
	}
	if c.Owner != nil {
		c.Owner.Store(&owner)
	}
	return owner.send(ctx, method, path, body)
}

// withSecret returns a client that sends the secret in a file. It connects only to the address that the secret is
// for.
func (c Client) withSecret(file string) (Client, error) {
	token, address, err := secretfile.Read(file, c.Base)
	if err != nil {
		return c, err
	}
	transport, ok := c.HTTP.Transport.(*http.Transport)
	if !ok {
		transport = http.DefaultTransport.(*http.Transport)
	}
	transport = transport.Clone()
	transport.Proxy, transport.DisableKeepAlives = nil, true
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		network, at := unixsocket.Network(address)
		return new(net.Dialer).DialContext(ctx, network, at)
	}
	if u, err := url.Parse(c.Base); err == nil && c.Showed != nil {
		if !unixsocket.Is(c.Base) {
			u.Host = address
		}
		c.Showed(u.String())
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // it follows no redirects
	c.Token, c.HTTP = token, &http.Client{Transport: transport, CheckRedirect: stay}
	return c, nil
}

// send sends a request once.
func (c Client) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	base := c.Base
	if unixsocket.Is(base) {
		base = unixsocket.URL
	}
	request, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if response.StatusCode/100 == 2 {
		if c.Answered != nil {
			c.Answered(response.Header)
		}
		return response, nil
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	answer, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return nil, c.unreachable(err)
	}
	failed := &AnswerError{server: c.Base, status: response.Status, Body: answer}
	if json.Unmarshal(answer, &failed.Failure) != nil {
		failed.Failure = httpapi.Locked{}
	}
	return nil, failed
}

// Read sends a request and returns the status and the body of the answer, cut off after 64 MiB.
func (c Client) Read(ctx context.Context, method, path string, body []byte) (status int, answer []byte, err error) {
	response, err := c.Do(ctx, method, path, body)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	answer, err = io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	if err != nil {
		return 0, nil, c.unreachable(err)
	}
	return response.StatusCode, answer, nil
}

// Call sends a request, decodes the body of the answer into answer, and returns that body.
func (c Client) Call(ctx context.Context, method, path string, body []byte, answer any) ([]byte, error) {
	_, text, err := c.CallStatus(ctx, method, path, body, answer)
	return text, err
}

// CallStatus is Call with the status.
func (c Client) CallStatus(ctx context.Context, method, path string, body []byte, answer any) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	status, text, err := c.Read(ctx, method, path, body)
	if err == nil {
		err = c.Understand(text, answer)
	}
	return status, text, err
}

// AnswerError is a server's answer with an error.
type AnswerError struct {
	Body           []byte
	Failure        httpapi.Locked // zero: not a firn server's answer
	server, status string
}

func (e *AnswerError) Error() string {
	if e.Failure.Error.Message == "" {
		return fmt.Sprintf("the server %s answers: %s, and not as a firn server does", e.server, e.status)
	}
	return fmt.Sprintf("the server %s answers: %s (%s)", e.server, e.Failure.Error.Message, e.Failure.Error.Code)
}

// Is makes an answer with the code "waiting" a peer.ErrWaiting.
func (e *AnswerError) Is(target error) bool {
	return target == peer.ErrWaiting && e.Failure.Error.Code == "waiting"
}

// Passing reports whether the status is one with which a proxy says that there is no server now.
func (e *AnswerError) Passing() bool {
	return strings.HasPrefix(e.status, "502 ") || strings.HasPrefix(e.status, "503 ") ||
		strings.HasPrefix(e.status, "504 ")
}

// Understand decodes the body of an answer.
func (c Client) Understand(body []byte, answer any) error {
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("the server %s answers, but not as a firn server does: %w", c.Base, err)
	}
	return nil
}

func (c Client) unreachable(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return fmt.Errorf("no answer from %s: %w%s", c.Base, err, c.Hint)
}

// SequencerPath returns the path of a sequencer, or of one of its actions.
func SequencerPath(name, do string) string {
	return "/api/v1/sequencers/" + url.PathEscape(name) + do
}
