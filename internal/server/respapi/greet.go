package respapi

import (
	"fmt"
	"time"
)

// likeRedis is the version of Redis that clients may take the server for, when they decide by it what to send.
const likeRedis = "7.0.0"

// reset makes the connection what it was at first.
func (c *conn) reset() {
	c.resp3, c.name, c.token = false, "", ""
	c.who, _ = c.s.policy.Admit("") // nobody, when a token is wanted
}

// admit asks again, every second at most, whether who has shown a token is still let in.
func (c *conn) admit() {
	if c.token == "" {
		return
	}
	if now := time.Now(); now.Sub(c.admitted) >= admitAgain {
		c.admitted = now
		c.who, _ = c.s.policy.Admit(c.token)
	}
}

// show shows a token, and tells whether it was answered with an error. Then all is as before.
func (c *conn) show(token string) (refused bool) {
	who, err := c.s.policy.Admit(token)
	if err != nil {
		c.unauthenticated("WRONGPASS", "invalid username-password pair or user is disabled: this token is nobody's", "AUTH")
		return true
	}
	c.who, c.token, c.admitted = who, token, time.Now()
	return false
}

func (c *conn) auth(args [][]byte) {
	if !c.show(string(args[len(args)-1])) {
		c.ok()
	}
}

// hello is HELLO [2|3 [AUTH name token] [SETNAME name]].
func (c *conn) hello(args [][]byte) {
	resp3, name := c.resp3, c.name
	var token *string // nil: none is shown
	if len(args) > 0 {
		switch string(args[0]) {
		case "2", "3":
			resp3 = args[0][0] == '3'
		default:
			c.fail("NOPROTO", fmt.Sprintf("unsupported protocol version %.20q; want 2 or 3", args[0]))
			return
		}
		for rest := args[1:]; len(rest) > 0; {
			switch {
			case equal(rest[0], "auth") && len(rest) >= 3:
				shown := string(rest[2])
				token, rest = &shown, rest[3:]
			case equal(rest[0], "setname") && len(rest) >= 2:
				if !c.named(rest[1]) {
					return
				}
				name, rest = string(rest[1]), rest[2:]
			default:
				c.fail("ERR", fmt.Sprintf("syntax error in HELLO option '%.128s'; want HELLO %s", rest[0], c.s.commands["hello"].usage))
				return
			}
		}
	}
	if token != nil && c.show(*token) {
		return
	}
	if c.who == nil {
		c.unauthenticated("NOAUTH", "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time", "HELLO")
		return
	}
	c.resp3, c.name = resp3, name
	c.greet()
}

func (c *conn) greet() {
	proto := int64(2)
	if c.resp3 {
		proto = 3
	}
	c.pairs(7)
	c.bulk("server")
	c.bulk("firn")
	c.bulk("version")
	c.bulk(likeRedis)
	c.bulk("proto")
	c.integer(proto)
	c.bulk("id")
	c.integer(c.id)
	c.bulk("mode")
	c.bulk("standalone")
	c.bulk("role")
	c.bulk("master")
	c.bulk("modules")
	c.array(0)
}

// again is RESET.
func (c *conn) again([][]byte) {
	c.reset()
	c.simple("RESET")
}

func (c *conn) bye([][]byte) {
	c.ok()
	c.quit = true
}

// longestName is how many bytes a client's name may have.
const longestName = 128

// named tells whether a client may have that name, and says so if not.
func (c *conn) named(name []byte) bool {
	ok := len(name) <= longestName
	for _, b := range name {
		ok = ok && '!' <= b && b <= '~'
	}
	if !ok {
		c.fail("ERR", fmt.Sprintf("Client names cannot contain spaces, newlines or special characters, nor have more than %d bytes.", longestName))
	}
	return ok
}

// client takes what clients tell about themselves when they connect.
func (c *conn) client(args [][]byte) {
	switch what := args[0]; {
	case equal(what, "setname") && len(args) == 2:
		if c.named(args[1]) {
			c.name = string(args[1])
			c.ok()
		}
	case equal(what, "getname") && len(args) == 1:
		if c.name == "" {
			c.null()
		} else {
			c.bulk(c.name)
		}
	case equal(what, "id") && len(args) == 1:
		c.integer(c.id)
	case equal(what, "setinfo") && len(args) == 3, equal(what, "no-evict") && len(args) == 2, equal(what, "no-touch") && len(args) == 2:
		c.ok()
	default:
		c.unknownSubcommand("client", what)
	}
}
