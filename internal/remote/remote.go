// Package remote asks a running server over HTTP, for the commands of firn: for IDs, and about its cluster. Where a server
// has no tokens, and its secret is in a file that the user may read, it shows that.
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
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/secretfile"
	"github.com/firn-id/firn/internal/server/httpapi"
	"github.com/firn-id/firn/member"
)

// Client asks a server.
type Client struct {
	Base      string // its URL
	Token     string // to show; may be empty
	HTTP      *http.Client
	Sequencer string // whose IDs Fill asks for; empty: the default one's
	Hint      string // what to do where no server answers; may be empty

	// Showed is told the URL to which the secret of a node was shown. Nil: nobody is.
	Showed func(url string)
}

// answerWithin is how long an answer may take, and longestAnswer how many bytes of it are read.
const (
	answerWithin  = 30 * time.Second
	longestAnswer = 64 << 20
)

// Fill takes as many IDs as ids has room for, in ascending order.
func (c Client) Fill(ctx context.Context, ids []firn.ID) error {
	var answer struct {
		IDs []firn.ID `json:"ids_str"`
	}
	path := "/api/v1"
	if c.Sequencer != "" {
		path = SequencerPath(c.Sequencer, "")
	}
	if _, err := c.Call(ctx, http.MethodPost, fmt.Sprintf("%s/ids?count=%d", path, len(ids)), nil, &answer); err != nil {
		return err
	}
	if len(answer.IDs) != len(ids) {
		return fmt.Errorf("the server %s gives %d IDs, not %d", c.Base, len(answer.IDs), len(ids))
	}
	copy(ids, answer.IDs)
	return nil
}

// Do sends a request, and once more with the node's own secret if the server wants that and this user may read it. The
// caller closes the answer's body. An error is returned when the server does not answer, and an *AnswerError when it
// answers with an error.
func (c Client) Do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	response, err := c.send(ctx, method, path, body)
	answer, ok := errors.AsType[*AnswerError](err)
	if c.Token != "" || !ok || answer.Failure.SecretFile == "" {
		return response, err
	}
	owner, why := c.withSecret(answer.Failure.SecretFile)
	if why != nil {
		return nil, fmt.Errorf("%w; that file: %w", err, why)
	}
	return owner.send(ctx, method, path, body)
}

// withSecret is a client that shows the secret in a file. It connects to nothing but the address that the secret is for.
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
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	if u, err := url.Parse(c.Base); err == nil && c.Showed != nil {
		u.Host = address
		c.Showed(u.String())
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // it follows no redirection
	c.Token, c.HTTP = token, &http.Client{Transport: transport, CheckRedirect: stay}
	return c, nil
}

// send sends a request once.
func (c Client) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.Base+path, bytes.NewReader(body))
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

// Read sends a request and returns the status and the body of the answer, which is cut off after 64 MiB.
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

// Call sends a request, reads what is answered into answer, and returns it as it came.
func (c Client) Call(ctx context.Context, method, path string, body []byte, answer any) ([]byte, error) {
	_, text, err := c.CallStatus(ctx, method, path, body, answer)
	return text, err
}

// CallStatus is Call, and returns the status too.
func (c Client) CallStatus(ctx context.Context, method, path string, body []byte, answer any) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	status, text, err := c.Read(ctx, method, path, body)
	if err == nil {
		err = c.Understand(text, answer)
	}
	return status, text, err
}

// AnswerError is an answer of a server that tells of an error.
type AnswerError struct {
	Body           []byte
	Failure        httpapi.Locked // empty when the answer is not one of a firn server
	server, status string
}

func (e *AnswerError) Error() string {
	if e.Failure.Error.Message == "" {
		return fmt.Sprintf("the server %s answers: %s, and not as a firn server does", e.server, e.status)
	}
	return fmt.Sprintf("the server %s answers: %s (%s)", e.server, e.Failure.Error.Message, e.Failure.Error.Code)
}

// Is makes it a member.ErrWaiting when it is one.
func (e *AnswerError) Is(target error) bool {
	return target == member.ErrWaiting && e.Failure.Error.Code == "waiting"
}

// Understand reads the body of an answer.
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

// SequencerPath is where a sequencer is, and what can be done with it.
func SequencerPath(name, do string) string {
	return "/api/v1/sequencers/" + url.PathEscape(name) + do
}
