package main

import (
	"bytes"
	"cmp"
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
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/httpapi"
	"github.com/firn-id/firn/internal/setting"
	"github.com/firn-id/firn/member"
)

// client asks a server.
type client struct {
	base      string
	flag      string // that says so
	token     string // to show; may be empty
	http      *http.Client
	sequencer string           // whose IDs it asks for; empty: the default one's
	program   string           // that should run there; empty: firn serve
	showed    func(url string) // told to whom a secret was shown; may be nil
	without   string           // what the error says to do without one; may be empty
}

// answerWithin is how long an answer may take, longestAnswer how long the text of a batch may be, and
// longestValue that of a cluster.
const (
	answerWithin  = 30 * time.Second
	longestAnswer = server.MaxCount*48 + 1024
	longestValue  = 64 << 20
)

func (c client) fill(ctx context.Context, ids []firn.ID) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var answer struct {
		IDs []firn.ID `json:"ids_str"`
	}
	path := "/api/v1"
	if c.sequencer != "" {
		path = sequencerPath(c.sequencer, "")
	}
	_, body, err := c.read(ctx, http.MethodPost, fmt.Sprintf("%s/ids?count=%d", path, len(ids)), nil, longestAnswer)
	if err == nil {
		err = c.understand(body, &answer)
	}
	if err != nil {
		return err
	}
	if len(answer.IDs) != len(ids) {
		return fmt.Errorf("the server %s gives %d IDs, not %d", c.base, len(answer.IDs), len(ids))
	}
	copy(ids, answer.IDs)
	return nil
}

// do sends a request, and once more with the node's own secret if the server wants that and this user may read it. The
// caller closes the answer's body. An error is returned when the server does not answer, and an *answerError when it
// answers with an error.
func (c client) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	response, err := c.send(ctx, method, path, body)
	var answer *answerError
	if c.token != "" || !errors.As(err, &answer) || answer.failure.SecretFile == "" {
		return response, err
	}
	owner, why := c.withSecret(answer.failure.SecretFile)
	if why != nil {
		return nil, fmt.Errorf("%w; that file: %w", err, why)
	}
	return owner.send(ctx, method, path, body)
}

// withSecret is a client that shows the secret in a file. It connects to nothing but the address that the secret is for.
func (c client) withSecret(file string) (client, error) {
	token, address, err := secretfile.Read(file, c.base)
	if err != nil {
		return c, err
	}
	transport, ok := c.http.Transport.(*http.Transport)
	if !ok {
		transport = http.DefaultTransport.(*http.Transport)
	}
	transport = transport.Clone()
	transport.Proxy, transport.DisableKeepAlives = nil, true
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	if u, err := url.Parse(c.base); err == nil && c.showed != nil {
		u.Host = address
		c.showed(u.String())
	}
	c.token, c.http = token, &http.Client{Transport: transport, CheckRedirect: stay}
	return c, nil
}

// stay follows no redirection.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// send sends a request once.
func (c client) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
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
	return nil, newAnswerError(c.base, response.Status, answer)
}

// read sends a request and returns the status and the body of the answer, which is cut off where it is too long.
func (c client) read(ctx context.Context, method, path string, body []byte, longest int64) (status int, answer []byte, err error) {
	response, err := c.do(ctx, method, path, body)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	answer, err = io.ReadAll(io.LimitReader(response.Body, longest))
	if err != nil {
		return 0, nil, c.unreachable(err)
	}
	return response.StatusCode, answer, nil
}

// call sends a request, reads what is answered into answer, and returns it as it came.
func (c client) call(ctx context.Context, method, path string, body []byte, answer any) ([]byte, error) {
	_, text, err := c.callStatus(ctx, method, path, body, answer)
	return text, err
}

// callStatus is call, and returns the status too.
func (c client) callStatus(ctx context.Context, method, path string, body []byte, answer any) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	status, text, err := c.read(ctx, method, path, body, longestValue)
	if err == nil {
		err = c.understand(text, answer)
	}
	return status, text, err
}

// answerError is an answer of a server that tells of an error.
type answerError struct {
	server, status string
	body           []byte
	failure        httpapi.Locked // empty when the answer is not one of a firn server
}

func newAnswerError(server, status string, body []byte) *answerError {
	e := &answerError{server: server, status: status, body: body}
	var f httpapi.Locked
	if json.Unmarshal(body, &f) == nil {
		e.failure = f
	}
	return e
}

func (e *answerError) Error() string {
	if e.failure.Error.Message == "" {
		return fmt.Sprintf("the server %s answers: %s, and not as a firn server does", e.server, e.status)
	}
	return fmt.Sprintf("the server %s answers: %s (%s)", e.server, e.failure.Error.Message, e.failure.Error.Code)
}

// Is makes it a member.ErrWaiting when it is one.
func (e *answerError) Is(target error) bool {
	return target == member.ErrWaiting && e.failure.Error.Code == "waiting"
}

// understand reads the body of an answer.
func (c client) understand(body []byte, answer any) error {
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("the server %s answers, but not as a firn server does: %w", c.base, err)
	}
	return nil
}

func (c client) unreachable(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("no answer from %s: %w; is `%s` running there? --%s or %s says where to ask%s", c.base, err, cmp.Or(c.program, "firn serve"), c.flag, setting.Variable(c.flag), c.without)
}
