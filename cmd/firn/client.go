package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/server/httpapi"
)

// client asks a server.
type client struct {
	base    string
	without string // what the error says to do without one; may be empty
}

// answerWithin is how long an answer may take, longestAnswer how long the text of a batch may be, and
// longestValue that of a cluster.
const (
	answerWithin  = 30 * time.Second
	longestAnswer = httpapi.MaxCount*48 + 1024
	longestValue  = 64 << 20
)

func (c client) fill(ctx context.Context, ids []firn.ID) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var answer struct {
		IDs []firn.ID `json:"ids_str"`
	}
	body, err := c.read(ctx, http.MethodPost, fmt.Sprintf("/api/v1/ids?count=%d", len(ids)), longestAnswer)
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

// do sends a request. The answer's body is to be closed. An error is returned when there is none, or one with
// another status than 200.
func (c client) do(ctx context.Context, method, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return nil, c.unreachable(err)
	}
	return nil, fmt.Errorf("the server %s answers: %s", c.base, failure(response.Status, body))
}

// read sends a request and returns the body of the answer, cut off where it is too long.
func (c client) read(ctx context.Context, method, path string, longest int64) ([]byte, error) {
	response, err := c.do(ctx, method, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	body, err := io.ReadAll(io.LimitReader(response.Body, longest))
	if err != nil {
		return nil, c.unreachable(err)
	}
	return body, nil
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
	return fmt.Errorf("no answer from %s: %w; is `firn serve` running there? --server or FIRN_SERVER says where to ask%s", c.base, err, c.without)
}

// addServer adds the flag that says which server to ask.
func addServer(fs *pflag.FlagSet, into *string) {
	add(fs, into, "server", "URL", "http://127.0.0.1:8080", "the server to ask", parseServer)
}

// parseServer reads the URL of a server, or its host:port.
func parseServer(text string) (string, error) {
	full := text
	if !strings.Contains(text, "://") {
		full = "http://" + text
	}
	u, err := url.Parse(full)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%.80q is no URL of a server; want one such as http://127.0.0.1:8080", text)
	}
	return strings.TrimSuffix(full, "/"), nil
}
