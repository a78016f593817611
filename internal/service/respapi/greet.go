package respapi

import (
	"fmt"
	"time"
)

// likeRedis is the version of Redis that clients are told, as some decide by it what to send.
const likeRedis = "7.0.0"

// reset sets the connection to its initial state.
func (c *conn) reset() {
	c.resp3, c.name, c.token = false, "", ""
	c.who, _ = c.s.policy.Admit("") // nil if a token is required
}

// admit checks the client's token again, at most once a second.
func (c *conn) admit() {
	if c.token == "" {
		return
	}
	if now := time.Now(); now.Sub(c.admitted) >= admitAgain {
		c.admitted = now
		c.who, _ = c.s.policy.Admit(c.token)
	}
}

// login uses a token. If it is refused, login replies with an error, and nothing changes.
func (c *conn) login(token string) (ok bool) {
	who, err := c.s.policy.Admit(token)
	if err != nil {
		c.unauthenticated("WRONGPASS", "invalid username-password pair or user is disabled: unknown token", "AUTH")
		return false
	}
	c.who, c.token, c.admitted = who, token, time.Now()
	return true
}

func (c *conn) auth(args [][]byte) {
	if c.login(string(args[len(args)-1])) {
		c.ok()
	}
}

// hello is HELLO [2|3 [AUTH name token] [SETNAME name]].
func (c *conn) hello(args [][]byte) {
	resp3, name := c.resp3, c.name
	var token *string // nil: none
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
				token, rest = new(string(rest[2])), rest[3:]
			case equal(rest[0], "setname") && len(rest) >= 2:
				if !c.named(rest[1]) {
					return
				}
				name, rest = string(rest[1]), rest[2:]
			default:
				c.fail("ERR", fmt.Sprintf("syntax error in HELLO option '%.128s'; want HELLO %s", rest[0],
					c.s.commands["hello"].usage))
				return
			}
		}
	}
	if token != nil && !c.login(*token) {
		return
	}
	if c.who == nil {
		c.unauthenticated("NOAUTH",
			"HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> "+
				"<pass> option can be used to authenticate the client and select the RESP protocol version at the "+
				"same time", "HELLO")
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
	c.pairs(8)
	c.bulks("server", "firn", "version", likeRedis, "proto")
	c.integer(proto)
	c.bulks("id")
	c.integer(c.id)
	c.bulks("mode", "standalone", "role", "master", "modules")
	c.array(0)
	c.bulks("cluster", c.s.service.Cluster())
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

// named tells whether a client may have a name, and replies with an error if not.
func (c *conn) named(name []byte) bool {
	ok := len(name) <= longestName
	for _, b := range name {
		ok = ok && '!' <= b && b <= '~'
	}
	if !ok {
		c.fail("ERR",
			fmt.Sprintf("Client names cannot contain spaces, newlines or special characters, nor have more than "+
				"%d bytes.", longestName))
	}
	return ok
}

// client is CLIENT, by which clients introduce themselves.
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
	case equal(what, "setinfo") && len(args) == 3, equal(what, "no-evict") && len(args) == 2,
		equal(what, "no-touch") && len(args) == 2:
		c.ok()
	default:
		c.unknownSubcommand("client", what)
	}
}
