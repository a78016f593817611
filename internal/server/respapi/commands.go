package respapi

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/firn-id/firn/internal/server"
)

// command is what clients can ask for.
type command struct {
	name    string // in lower case
	least   int    // arguments, after the name
	most    int
	key     int  // which argument names a sequencer; 0: none
	open    bool // it needs no token
	run     func(c *conn, args [][]byte)
	usage   string // the arguments
	summary string

	calls server.Call // counts it
	timed bool
}

// all are the commands. Args are those after the name.
func all() []command {
	const many = maxArgs
	return []command{
		{name: "auth", least: 1, most: 2, open: true, run: (*conn).auth, usage: "[name] token", summary: "Show a token; the name does not matter."},
		{name: "client", least: 1, most: many, run: (*conn).client, usage: "SETNAME|GETNAME|SETINFO|ID|NO-EVICT|NO-TOUCH ...", summary: "What clients tell about themselves."},
		{name: "command", most: many, run: (*conn).command, usage: "[COUNT|INFO|DOCS [name ...]]", summary: "What commands there are."},
		{name: "config", least: 1, most: many, run: (*conn).config, usage: "GET name ...", summary: "There is nothing to configure: what redis-benchmark asks for."},
		{name: "echo", least: 1, most: 1, run: (*conn).echo, usage: "message", summary: "The message."},
		{name: "firn.decode", least: 1, most: 2, key: 1, run: (*conn).decode, usage: "[sequencer] id", summary: "What an ID says: its time, node and sequence."},
		{name: "firn.next", least: 1, most: 2, key: 1, run: (*conn).next, usage: "sequencer [count]", summary: "An ID, or as many as count says, in ascending order."},
		{name: "hello", most: many, open: true, run: (*conn).hello, usage: "[2|3 [AUTH name token] [SETNAME name]]", summary: "Choose RESP2 or RESP3."},
		{name: "incr", least: 1, most: 1, key: 1, run: (*conn).incr, usage: "sequencer", summary: "An ID."},
		{name: "incrby", least: 2, most: 2, key: 1, run: (*conn).incrBy, usage: "sequencer n", summary: "Take n consecutive IDs; the reply is the last."},
		{name: "info", most: many, run: (*conn).info, usage: "[section ...]", summary: "How things are here."},
		{name: "ping", most: 1, run: (*conn).ping, usage: "[message]", summary: "PONG, or the message."},
		{name: "quit", most: many, open: true, run: (*conn).bye, summary: "End the connection."},
		{name: "reset", open: true, run: (*conn).again, summary: "Make the connection as it was at first."},
		{name: "select", least: 1, most: 1, run: (*conn).choose, usage: "number", summary: "Accepted; all databases are the same."},
	}
}

func byName() map[string]command {
	commands := map[string]command{}
	for _, k := range all() {
		commands[k.name] = k
	}
	return commands
}

// do answers a command.
func (c *conn) do(args [][]byte) {
	k, ok := c.find(args[0])
	c.starts(c.s, k)
	defer c.counts(c.s)
	switch {
	case !ok && (equal(args[0], "post") || equal(args[0], "host:")):
		// A browser was made to send HTTP here by somebody else's page. Nothing of what follows shall be done.
		c.s.log.Debug("a client speaks HTTP to the Redis port", "client", c.net.RemoteAddr())
		c.quit, c.code = true, server.BadRequest
	case c.who == nil && !k.open:
		c.unauthenticated("NOAUTH", "Authentication required.", cmp.Or(strings.ToUpper(k.name), "another"))
	case c.crowded && !k.open && k.name != "ping":
		c.refuse(k.name, server.ErrCrowded)
		c.quit = true
	case !ok:
		c.fail("ERR", unknown(args))
	case len(args)-1 < k.least || len(args)-1 > k.most:
		c.fail("ERR", fmt.Sprintf("wrong number of arguments for '%s' command; want %s %s", k.name, strings.ToUpper(k.name), k.usage))
	default:
		k.run(c, args[1:])
	}
}

func (c *conn) find(name []byte) (command, bool) {
	var lower [16]byte // no name is longer
	if len(name) > len(lower) {
		return command{}, false
	}
	for i, b := range name {
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		lower[i] = b
	}
	k, ok := c.s.commands[string(lower[:len(name)])]
	return k, ok
}

// equal tells whether an argument is a word, which is in lower case.
func equal(arg []byte, word string) bool {
	return len(arg) == len(word) && strings.EqualFold(string(arg), word)
}

// unknown words it as Redis does.
func unknown(args [][]byte) string {
	const most = 128
	var rest strings.Builder
	for _, a := range args[1:] {
		if rest.Len() >= most {
			break
		}
		fmt.Fprintf(&rest, "'%.*s' ", most-rest.Len(), a)
	}
	return fmt.Sprintf("unknown command '%.*s', with args beginning with: %s", most, args[0], rest.String())
}

// subcommand answers what follows a command that has none of this name.
func (c *conn) unknownSubcommand(command string, arg []byte) {
	c.fail("ERR", fmt.Sprintf("unknown subcommand '%.128s'; want %s %s", arg, strings.ToUpper(command), c.s.commands[command].usage))
}

// command says what commands there are: COMMAND and COMMAND INFO as Redis 2.8 did, which all clients understand.
func (c *conn) command(args [][]byte) {
	names := slices.Sorted(maps.Keys(c.s.commands))
	describe := (*conn).describe
	switch {
	case len(args) == 0:
	case equal(args[0], "count") && len(args) == 1:
		c.integer(int64(len(names)))
		return
	case equal(args[0], "info"):
	case equal(args[0], "docs"):
		c.docs(names, args[1:])
		return
	default:
		c.unknownSubcommand("command", args[0])
		return
	}
	if len(args) > 1 {
		c.array(len(args) - 1)
		for _, a := range args[1:] {
			if k, ok := c.find(a); ok {
				describe(c, k)
			} else {
				c.null()
			}
		}
		return
	}
	c.array(len(names))
	for _, name := range names {
		describe(c, c.s.commands[name])
	}
}

// describe says how a command is called: its name, how many words it has (negative: or more), flags, and where its keys are.
func (c *conn) describe(k command) {
	words := 1 + k.least
	if k.most != k.least {
		words = -words
	}
	c.array(6)
	c.bulk(k.name)
	c.integer(int64(words))
	c.array(1)
	c.simple("fast")
	c.integer(int64(k.key))
	c.integer(int64(k.key))
	c.integer(int64(min(k.key, 1)))
}

// docs says what commands are for; without chosen ones, of all.
func (c *conn) docs(names []string, chosen [][]byte) {
	if len(chosen) > 0 {
		names = slices.DeleteFunc(names, func(name string) bool {
			return !slices.ContainsFunc(chosen, func(a []byte) bool { return equal(a, name) })
		})
	}
	c.pairs(len(names))
	for _, name := range names {
		k := c.s.commands[name]
		c.bulk(name)
		c.pairs(3)
		for _, s := range []string{"summary", k.summary, "since", "1.0.0", "group", "firn"} {
			c.bulk(s)
		}
	}
}
