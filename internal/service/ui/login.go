package ui

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/service/httpapi"
)

// Login is the code of a login address: Root with "#login=" and the code. A browser does not send that part; the page
// exchanges it for the secret of the node, which it keeps like a token. A code works once.
type Login struct {
	Code string `json:"code"`
}

// A POST to LoginPath with the secret returns another Login, and the page exchanges one by a POST to exchangePath.
const (
	LoginPath    = Root + "logins"
	exchangePath = Root + "login"
)

// Address is the login address of a node that serves at a URL; without a code that of the dashboard.
func (l Login) Address(url string) string {
	if l.Code == "" {
		return url + Root
	}
	return url + Root + "#login=" + l.Code
}

// login makes or exchanges a Login.
func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	if err := h.browsers.Check(r); err != nil {
		httpapi.RefuseCrossOrigin(w, r, h.service, err)
		return
	}
	secret := h.policy.Secret
	var answer any
	var err error
	switch {
	case secret == nil || h.policy.Tokens != nil:
		err = calls.Input(fmt.Errorf("this server requires tokens: enter one on the dashboard instead of a login " +
			"address"))
	case r.URL.Path == LoginPath:
		var who *auth.Caller
		if who, err = h.policy.Admit(httpapi.Token(r)); err == nil {
			err = who.May(auth.Admin, "")
		}
		if err == nil {
			answer = Login{secret.NewLogin()}
		}
	default:
		answer, err = h.exchange(w, r, secret)
	}
	if err != nil {
		httpapi.Refuse(w, r, h.service, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(answer) // if it fails the caller has gone away
}

func (h *Handler) exchange(w http.ResponseWriter, r *http.Request, secret *auth.Secret) (any, error) {
	const most = 1 << 10
	var l Login
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, most)).Decode(&l); err != nil {
		return nil, calls.Input(fmt.Errorf(`the body is not {"code":"..."}: %w`, err))
	}
	token, err := secret.Login(l.Code)
	if err != nil {
		return nil, err
	}
	h.service.Audited(calls.Audit{Origin: httpapi.Origin(r), Who: auth.LocalSecret, Call: "login", Outcome: codes.OK})
	return struct {
		Token string `json:"token"`
	}{token}, nil
}
