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

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/server/httpapi"
)

// client asks a server for IDs.
type client struct{ base string }

// answerWithin is how long a batch may take, and longestAnswer how long its text may be.
const (
	answerWithin  = 30 * time.Second
	longestAnswer = httpapi.MaxCount*48 + 1024
)

func (c client) fill(ctx context.Context, ids []firn.ID) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	target := fmt.Sprintf("%s/api/v1/ids?count=%d", c.base, len(ids))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return c.unreachable(err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	body, err := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	switch {
	case err != nil:
		return c.unreachable(err)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("the server %s answers: %s", c.base, failure(response.Status, body))
	}
	var answer struct {
		IDs []firn.ID `json:"ids_str"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("the server %s answers, but not as a firn server does: %w", c.base, err)
	}
	if len(answer.IDs) != len(ids) {
		return fmt.Errorf("the server %s gives %d IDs, not %d", c.base, len(answer.IDs), len(ids))
	}
	copy(ids, answer.IDs)
	return nil
}

func (c client) unreachable(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("no answer from %s: %w; is `firn serve` running there? --server or FIRN_SERVER says where to ask, and --local asks nobody", c.base, err)
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
