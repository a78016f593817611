//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// refused is an answer that tells of an error.
type refused struct {
	status     int
	code       string
	retryAfter string
	body       string
}

func (r *refused) Error() string { return fmt.Sprintf("%d: %s", r.status, r.body) }

// exchange sends a request, and returns the status of the answer and reads its body. Above 299 the error is a *refused,
// and it is read all the same.
func exchange(client *http.Client, method, url, body string, into any) (int, error) {
	return exchangeAs(client, "", method, url, body, into)
}

// exchangeAs shows a token, unless that is empty.
func exchangeAs(client *http.Client, token, method, url, body string, into any) (int, error) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			return 0, fmt.Errorf("%s %s: the answer %q: %w", method, url, text, err)
		}
	}
	if response.StatusCode < 300 {
		return response.StatusCode, nil
	}
	var failure struct{ Error struct{ Code string } }
	if err := json.Unmarshal(text, &failure); err != nil {
		return 0, fmt.Errorf("%s %s: the answer %q: %w", method, url, text, err)
	}
	return response.StatusCode,
		&refused{response.StatusCode, failure.Error.Code, response.Header.Get("Retry-After"), string(text)}
}

// caller makes the calls that nobody makes all the time.
var caller = &http.Client{Timeout: patience}

// call asks as an administrator.
func (n *node) call(method, path, body string, into any) (int, error) {
	status, err := exchange(caller, method, n.admin+path, body, into)
	var no *refused
	var locked struct {
		File string `json:"secret_file"`
	}
	if !errors.As(err, &no) || json.Unmarshal([]byte(no.body), &locked) != nil || locked.File == "" {
		return status, err
	}
	secret, err := os.ReadFile(locked.File) // as the command line does
	if err != nil {
		return 0, err
	}
	token, _, _ := strings.Cut(string(secret), "\n")
	return exchangeAs(caller, token, method, n.admin+path, body, into)
}
