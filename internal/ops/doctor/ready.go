package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
)

// Ready asks the node with this configuration on this machine whether it gives IDs (GET /readyz): at its address for
// metrics if it has one, else at the one for callers. It shows no token, and accepts any certificate. An error is
// returned when the node is not ready, with its reason, when it does not answer, and when it can't be asked.
func (c Config) Ready(ctx context.Context) error {
	at := c.Addresses[0]
	if i := slices.IndexFunc(c.Addresses, func(a Address) bool { return a.Flag == "metrics-addr" }); i >= 0 {
		at = c.Addresses[i]
	}
	const other = "want a --metrics-addr that can be asked, such as 127.0.0.1:9100 or unix:/run/firn/metrics.sock"
	if at.Passed {
		return fmt.Errorf("systemd passes the socket of --%s, %s, whose address is not known here; %s",
			at.Flag, at.At, other)
	}
	status, body, err := ask(ctx, at, "/readyz")
	if c.wantsCertificate(err) {
		return fmt.Errorf("%s requires a client certificate; want --metrics-addr unix:PATH, which requires none",
			at.URL)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	switch {
	case err != nil:
		return fmt.Errorf("no answer from %s: %w; is `firn serve` running there, with these settings?", at.URL, err)
	case status != http.StatusOK:
		return fmt.Errorf("%s is not ready: %s", at.URL, notReady(status, body))
	default:
		return nil
	}
}
