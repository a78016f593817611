package respapi

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
)

// command is a command that clients can send.
type command struct {
	name    string // in lower case
	least   int    // arguments, after the name
	most    int
	key     int  // the argument that names a sequencer, from 1; 0: none
	open    bool // it needs no token
	run     func(c *conn, args [][]byte)
	usage   string // the arguments
	summary string

	calls calls.Call // counts it
	timed bool
}

// all are the commands. Args are those after the name.
func all() []command {
	const many = maxArgs
	return []command{
		{
			name: "auth", least: 1, most: 2, open: true, run: (*conn).auth, usage: "[name] token",
			summary: "Send a token; the name does not matter.",
		},
		{
			name: "client", least: 1, most: many, run: (*conn).client,
			usage:   "SETNAME|GETNAME|SETINFO|ID|NO-EVICT|NO-TOUCH ...",
			summary: "Accepts what clients say about themselves.",
		},
		{
			name: "command", most: many, run: (*conn).command, usage: "[COUNT|INFO|DOCS [name ...]]",
			summary: "List the commands.",
		},
		{
			name: "config", least: 1, most: many, run: (*conn).config, usage: "GET name ...",
			summary: "Settings that redis-benchmark reads; nothing can be configured.",
		},
		{name: "echo", least: 1, most: 1, run: (*conn).echo, usage: "message", summary: "Return the message."},
		{
			name: "firn.decode", least: 1, most: 4, key: 1, run: (*conn).decode,
			usage:   "[sequencer] id, or sequencer id form [as]",
			summary: "Decode an ID, in any form: its time, node and sequence.",
		},
		{
			name: "firn.id", least: 1, most: 4, key: 1, run: (*conn).takeID, usage: "sequencer [form] [AFTER id]",
			summary: "Take an ID, as text: exact in every client. It exceeds the ID after AFTER.",
		},
		{
			name: "firn.ids", least: 2, most: 5, key: 1, run: (*conn).takeIDs,
			usage: "sequencer count [form] [AFTER id]",
			summary: "Take count IDs in ascending order, as texts: exact in every client. They exceed the ID " +
				"after AFTER.",
		},
		{
			name: "firn.next", least: 1, most: 4, key: 1, run: (*conn).next, usage: "sequencer [count] [AFTER id]",
			summary: "Take an ID, or count IDs in ascending order, as integers" + inexact("FIRN.ID and FIRN.IDS"),
		},
		{
			name: "hello", most: many, open: true, run: (*conn).hello, usage: "[2|3 [AUTH name token] [SETNAME name]]",
			summary: "Select RESP2 or RESP3.",
		},
		{
			name: "incr", least: 1, most: 1, key: 1, run: (*conn).incr, usage: "sequencer",
			summary: "Take an ID, as an integer" + inexact("FIRN.ID"),
		},
		{
			name: "incrby", least: 2, most: 2, key: 1, run: (*conn).incrBy, usage: "sequencer number",
			summary: "Take an ID, as INCR does, by 1; of a counter, take as many consecutive numbers, and reply with " +
				"the last" + inexact("FIRN.ID"),
		},
		{name: "info", most: many, run: (*conn).info, usage: "[section ...]", summary: "Show the state of the server."},
		{name: "ping", most: 1, run: (*conn).ping, usage: "[message]", summary: "PONG, or the message."},
		{name: "quit", most: many, open: true, run: (*conn).bye, summary: "Close the connection."},
		{name: "reset", open: true, run: (*conn).again, summary: "Reset the connection to its initial state."},
		{
			name: "select", least: 1, most: 1, run: (*conn).choose, usage: "number",
			summary: "Accepted; all databases are the same.",
		},
	}
}

// inexact warns of commands that reply with integers, and names those that don't.
func inexact(instead string) string {
	return ". Clients in JavaScript round integers above 2^53, so that IDs repeat: use " + instead + " there."
}

// do answers a command.
func (c *conn) do(args [][]byte) {
	k, ok := c.find(args[0])
	c.starts(c.s, k)
	defer c.counts(c.s)
	switch {
	case !ok && (equal(args[0], "post") || equal(args[0], "host:")):
		// Another site's page may have made a browser send HTTP here: nothing in the request may be obeyed.
		c.s.log.Debug("a client sends HTTP to the Redis address", "client", c.net.RemoteAddr())
		c.quit, c.code = true, codes.BadRequest
	case c.who == nil && !k.open:
		c.unauthenticated("NOAUTH", "Authentication required.", cmp.Or(strings.ToUpper(k.name), "another"))
	case c.crowded && !k.open && k.name != "ping":
		c.refuse(k.name, calls.ErrCrowded)
		c.quit = true
	case !ok:
		c.fail("ERR", unknown(args))
	case len(args)-1 < k.least || len(args)-1 > k.most:
		c.fail("ERR", fmt.Sprintf("wrong number of arguments for '%s' command; want %s %s", k.name,
			strings.ToUpper(k.name), k.usage))
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

// equal tells whether an argument is a word, in any case.
func equal(arg []byte, word string) bool {
	return len(arg) == len(word) && strings.EqualFold(string(arg), word)
}

// unknown words the error for an unknown command as Redis does.
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

// unknownSubcommand answers a subcommand that does not exist.
func (c *conn) unknownSubcommand(command string, arg []byte) {
	c.fail("ERR", fmt.Sprintf("unknown subcommand '%.128s'; want %s %s", arg, strings.ToUpper(command),
		c.s.commands[command].usage))
}

// command is COMMAND. COMMAND and COMMAND INFO answer as Redis 2.8 did, which all clients understand.
func (c *conn) command(args [][]byte) {
	names := slices.Sorted(maps.Keys(c.s.commands))
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
				c.describe(k)
			} else {
				c.null()
			}
		}
		return
	}
	c.array(len(names))
	for _, name := range names {
		c.describe(c.s.commands[name])
	}
}

// describe replies with a command's name, number of words (negative: or more), flags, and the positions of its keys.
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

// docs documents the chosen commands, or all.
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
		c.bulks("summary", k.summary, "since", "1.0.0", "group", "firn")
	}
}
