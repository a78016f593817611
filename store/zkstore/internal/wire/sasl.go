package wire

import (
	"context"
	"crypto/md5"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn/internal/base/fresh"
)

// Login is a user of ZooKeeper's SASL mechanism DIGEST-MD5. The password itself is not sent.
type Login struct{ User, Password string }

// What the mechanism calls ZooKeeper.
const digestURI = "zookeeper/zk-sasl-md5"

// login logs in, as RFC 2831 says.
func (c *Conn) login(ctx context.Context, l Login) error {
	token, err := c.token(ctx, nil)
	if err != nil {
		return err
	}
	if len(token) == 0 {
		return fmt.Errorf("%w: the server has no users of SASL", ErrAuthFailed)
	}
	challenge := directives(string(token))
	if challenge["nonce"] == "" || challenge["algorithm"] != "md5-sess" {
		return fmt.Errorf("%w: the server asks for another login than DIGEST-MD5", ErrAuthFailed)
	}
	random := fresh.Bytes()
	nonce := hex.EncodeToString(random[:16])
	answer := fmt.Sprintf(`charset=utf-8,username=%s,realm=%s,nonce=%s,nc=00000001,cnonce=%s,digest-uri="%s",`+
		`maxbuf=65536,response=%s,qop=auth`,
		quote(l.User), quote(challenge["realm"]), quote(challenge["nonce"]), quote(nonce), digestURI,
		digest(l, challenge["realm"], challenge["nonce"], nonce, "AUTHENTICATE:"))
	if token, err = c.token(ctx, []byte(answer)); err != nil {
		return err
	}
	proof := directives(string(token))["rspauth"]
	if want := digest(l, challenge["realm"], challenge["nonce"], nonce, ":"); subtle.ConstantTimeCompare([]byte(proof),
		[]byte(want)) == 0 {
		return fmt.Errorf("%w: the server does not know the password", ErrAuthFailed)
	}
	return nil
}

// token sends one step of the login, and returns the server's.
func (c *Conn) token(ctx context.Context, token []byte) ([]byte, error) {
	replies, err := c.Do(ctx, Request{code: codeSASL, data: token})
	switch {
	case errors.Is(err, ErrLost) && ctx.Err() == nil && !errors.Is(err, errSilent):
		return nil, fmt.Errorf("%w: %w", ErrAuthFailed, err) // servers hang up on a wrong password
	case err != nil:
		return nil, err
	case replies[0].Err != 0:
		return nil, replies[0].Err
	}
	return replies[0].Data, nil
}

// digest proves that whoever makes it knows the password.
func digest(l Login, realm, nonce, clientNonce, method string) string {
	secret := md5.Sum([]byte(l.User + ":" + realm + ":" + l.Password))
	a1 := sum(string(secret[:]) + ":" + nonce + ":" + clientNonce)
	return sum(a1 + ":" + nonce + ":00000001:" + clientNonce + ":auth:" + sum(method+digestURI))
}

func sum(s string) string {
	all := md5.Sum([]byte(s))
	return hex.EncodeToString(all[:])
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// directives reads name=value and name="value", with commas between them.
func directives(s string) map[string]string {
	all := map[string]string{}
	for s != "" {
		name, rest, found := strings.Cut(s, "=")
		if !found {
			break
		}
		var value strings.Builder
		quoted, i := false, 0
		for ; i < len(rest) && (quoted || rest[i] != ','); i++ {
			switch {
			case rest[i] == '"':
				quoted = !quoted
			case quoted && rest[i] == '\\' && i+1 < len(rest):
				i++
				value.WriteByte(rest[i])
			default:
				value.WriteByte(rest[i])
			}
		}
		all[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value.String())
		s = strings.TrimPrefix(rest[i:], ",")
	}
	return all
}
